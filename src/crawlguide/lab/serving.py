"""Any web of the lab over loopback HTTP, under all its host names, with a log of every request.

One port serves all hosts: a crawler sets it as its HTTP proxy, or connects to it and says in `Host` whom it means.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, NamedTuple, Self

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response

from crawlguide.core.clock import SystemClock
from crawlguide.gateway.access.entrance import LOOPBACK
from crawlguide.gateway.listener import bound
from crawlguide.gateway.serve import Server
from crawlguide.lab.synthetic import SyntheticWeb

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from crawlguide.core.clock import Clock
    from crawlguide.lab.pages import Page, Web

SLOWEST_MS = 10_000.0  # what a web of the lab says of a fetch that timed out
STARTS_WITHIN_S = 30.0
FILES = {".txt": "text/plain", ".xml": "application/xml"}


class Request(NamedTuple):
    """One line of the log."""

    at: float  # seconds since the server started
    method: str
    url: str
    status: int
    agent: str


@dataclass
class Site:
    """The application: every request is a fetch of the web."""

    web: Web
    slowest_s: float
    clock: Clock
    log: list[Request] = field(default_factory=list)
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock.now()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, at = Headers(scope=scope), self.clock.now() - self.began
        host = headers.get("host", "").lower().rpartition(":")
        name = host[0] if host[2].isdecimal() else "".join(host)
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        response = await self._answer(scope["method"], name, path, at)
        agent = headers.get("user-agent", "")
        self.log.append(Request(at, scope["method"], f"http://{name}{path}", response.status_code, agent))
        await response(scope, receive, send)

    async def _answer(self, method: str, host: str, path: str, at: float) -> Response:
        if method not in {"GET", "HEAD"}:
            return PlainTextResponse(f"{method} is not a method of this web; expected GET or HEAD\n", 405)
        if host in LOOPBACK:
            return PlainTextResponse(self._instructions())
        page = self._fetched(host, path, at)
        await asyncio.sleep(min(1.0, (page.elapsed_ms or 0.0) / SLOWEST_MS) * self.slowest_s)
        response = _response(page)
        if method == "HEAD":
            response.body = b""
        return response

    def _fetched(self, host: str, path: str, at: float) -> Page:
        """A recorded web may know the page by HTTPS only."""
        if isinstance(self.web, SyntheticWeb):
            return self.web.fetch(f"http://{host}{path}", at)
        page = self.web.fetch(f"https://{host}{path}")
        return page if page.status != 404 else self.web.fetch(f"http://{host}{path}")

    def _instructions(self) -> str:
        """For whoever opens the port itself."""
        seeds = sorted({plain_http(url) for task in self.web.tasks() for its in task.seeds.values() for url in its})
        return "This port is an HTTP proxy for a web of the lab. Pages to begin with:\n\n" + "\n".join(seeds) + "\n"


class Served:
    """A server that runs in a thread of its own, until it is closed or the program ends."""

    def __init__(self, site: Site, port: int) -> None:
        self._site, ready = site, threading.Event()
        listener = bound("127.0.0.1", port)
        self.port: int = listener.getsockname()[1]
        self._server = Server(_uvicorn(site), ready.set)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        if not ready.wait(STARTS_WITHIN_S):
            raise TimeoutError(f"the server of the lab did not start within {STARTS_WITHIN_S:.0f} s")

    @property
    def log(self) -> list[Request]:
        """Every request so far."""
        return self._site.log

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def served(web: Web, port: int = 0, *, slowest_s: float = 1.0, clock: Clock | None = None) -> Served:
    """Serve a web; port 0 is any free one.

    Slow answers are scaled so that the slowest takes `slowest_s` seconds; that one is given in place of a time-out.
    """
    return Served(Site(web, slowest_s, clock or SystemClock()), port)


def as_html(page: Page) -> str:
    """A page as real HTML: title, text and links.

    What was recorded as a text is the main part of a page. So its links stand beside it: a crawler that reads HTML
    reads the text that the lab tells, and not their anchors after it.

    All links are plain HTTP, as a loopback server cannot speak for other people's hosts.
    """
    pairs = [(escape(plain_http(link.url)), escape(link.anchor)) for link in page.links]
    links = "\n".join(f'<li><a href="{url}">{anchor}</a></li>' for url, anchor in pairs)
    return (
        f'<!doctype html>\n<html lang="{escape(page.language)}">\n'
        f'<head><meta charset="utf-8"><title>{escape(page.title)}</title></head>\n'
        f"<body>\n<h1>{escape(page.title)}</h1>\n<main>\n<p>{escape(page.text)}</p>\n</main>\n"
        f"<nav>\n<ul>\n{links}\n</ul>\n</nav>\n</body>\n</html>\n"
    )


def plain_http(url: str) -> str:
    return "http://" + url.removeprefix("https://") if url.startswith("https://") else url


def _response(page: Page) -> Response:
    if page.redirected_to:
        return Response(status_code=page.status, headers={"location": plain_http(page.redirected_to)})
    if page.error:
        return PlainTextResponse(f"{page.error}\n", 504)
    if page.status != 200:
        return PlainTextResponse(f"{page.status}\n", page.status, {"retry-after": "1"} if page.status == 503 else None)
    kind = next((kind for end, kind in FILES.items() if page.url.endswith(end)), "")
    if kind and not page.links and not page.title:
        return Response(page.text, media_type=kind)
    return Response(as_html(page), media_type="text/html")


def _uvicorn(site: Site) -> uvicorn.Config:
    return uvicorn.Config(
        site,
        loop="asyncio",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
