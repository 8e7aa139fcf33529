"""Who answers commands about a crawl: a server over HTTP, or a data folder opened in this process."""

from __future__ import annotations

import socket
from contextlib import closing, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crawlguide.cli.common import check_place, compile_first, say, settings
from crawlguide.core.errors import ConfigError, CrawlGuideError, NotFound, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.config import Config
    from crawlguide.gateway.client.verbs import Verbs

CONNECT_S = 5.0
USUAL_CRAWL = "default"
RETRIES = 2  # a person waits: what does not pass by then is said


@contextmanager
def answering(url: str | None, data: str | None, config: Path | None, *, new: bool = False) -> Iterator[Verbs]:
    """The folder if one is named (a `new` one is made), else the server that is named or configured."""
    from crawlguide import Client

    options = settings(config, {"store.data": data})
    guide: Verbs
    if data is not None:
        check_place(options, data, url, must_exist=not new)
        compile_first(options)
        from crawlguide import Guide

        guide = Guide.open(Path(options.store.data), config=options)
    else:
        guide = Client(check_answers(url or configured(options)), retries=RETRIES)
    with closing(guide):
        yield guide
        if isinstance(guide, Client) and guide.notice.text:
            say(f"crawlguide: {guide.notice.text}")


@contextmanager
def said_if_new(guide: Verbs, crawl: str) -> Iterator[None]:
    """A crawl that is not there begins with what is asked or told of it: who has mistyped its name is to see that."""
    hint = _hint_if_missing(guide, crawl)
    yield
    if hint is not None:
        say(f"crawlguide: crawl {crawl!r} was not there and is made now" + (f"; {hint}" if hint else ""))


def _hint_if_missing(guide: Verbs, crawl: str) -> str | None:
    """Which one may be meant. None: it is there, or is the one that nobody names, or it is not for us to know."""
    if crawl == USUAL_CRAWL:
        return None
    try:
        guide.stats(crawl)
    except NotFound as missing:
        return missing.message.partition("; ")[2]
    except CrawlGuideError:  # a credential may ask without being allowed to look
        return None
    return None


def configured(options: Config) -> str:
    """Where `crawlguide serve` listens with the same configuration."""
    from crawlguide.gateway.arguments import bracketed

    host, port = options.server.host, options.server.port
    if port == 0:
        raise ConfigError("--url: expected one, since server.port is 0 and the server has picked its port by itself")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - whoever listens everywhere, here too
    scheme = "https" if options.server.tls_certificate else "http"
    return f"{scheme}://{bracketed(host)}:{port}"


def check_answers(url: str) -> str:
    """The address, if anybody listens there."""
    from crawlguide.gateway.arguments import SCHEMES, address

    parts = urlsplit(address(url))
    port = parts.port or SCHEMES[parts.scheme]
    try:
        socket.create_connection((parts.hostname or "", port), CONNECT_S).close()
    except OSError as problem:
        option = "--grpc-port" if parts.scheme.startswith("grpc") else "--port"
        start = "crawlguide serve" if port == 8080 else f"crawlguide serve {option} {port}"
        why = problem.strerror or str(problem) or type(problem).__name__
        where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"  # without a password
        here = f"start one with `{start}`, or open a folder with --data"
        advice = here if _is_here(parts.hostname or "") else "check the name, and whether this machine can reach it"
        raise UnavailableError(f"no server answers at {where} ({why}): {advice}") from None
    return url


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
