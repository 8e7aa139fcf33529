"""A script's own client crawls a small web: guided, polite, and leaving nothing behind however it ends."""

from __future__ import annotations

import asyncio
import gc
import gzip
import logging
import subprocess
import sys
import tracemalloc
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import brotli
import httpx
import pytest
import requests

from crawlguide import AsyncClient, AsyncGuide, Client, Guide
from crawlguide.core.errors import ConfigError, MalformedRequest, UnavailableError
from crawlguide.crawler import reading
from crawlguide.crawler.hops import MOST
from crawlguide.crawler.readers import HTML, Document
from crawlguide.crawler.reading import Reader
from crawlguide.integrations._answers import fetching, fetching_sync
from crawlguide.integrations._crawl import side_by_side
from crawlguide.integrations.guided import Page, guided, guided_sync
from tests.crawler.strangers import stranger
from tests.gateway.clients.common import free_port
from tests.integrations.web import (
    BUSY,
    DELAY_S,
    EVERY,
    FREE,
    GARDEN,
    GONE,
    HARBOUR,
    MOVED,
    NEW,
    PRIVATE,
    ROSES,
    TOPIC,
    paced,
    requested,
    settled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from crawlguide.lab.serving import Served
    from tests.gateway.conftest import Served as ServedGuide


@asynccontextmanager
async def with_httpx(proxy: str) -> AsyncIterator[Any]:
    async with httpx.AsyncClient(proxy=proxy or None, headers={"user-agent": "rosebot/1.0"}) as client:
        yield client


@asynccontextmanager
async def with_aiohttp(proxy: str) -> AsyncIterator[Any]:
    async with aiohttp.ClientSession(proxy=proxy or None, headers={"User-Agent": "rosebot/1.0"}) as session:
        yield session


def by_requests(proxy: str) -> requests.Session:
    session = requests.Session()
    session.proxies = {"http": proxy} if proxy else {}
    session.headers["User-Agent"] = "rosebot/1.0"
    return session


def crawled(kind: str, proxy: str, seeds: Any = GARDEN, goal: Any = TOPIC, **options: Any) -> list[Page]:
    """All pages of a crawl, by one of the four clients."""

    async def by_async(opened: Callable[[str], Any]) -> list[Page]:
        async with opened(proxy) as client:
            return [page async for page in guided(client, seeds, goal, **options)]

    if kind in {"httpx", "aiohttp"}:
        return asyncio.run(by_async(with_httpx if kind == "httpx" else with_aiohttp))
    if kind == "requests":
        with by_requests(proxy) as session:
            return list(guided_sync(session, seeds, goal, **options))
    with httpx.Client(proxy=proxy or None, headers={"user-agent": "rosebot/1.0"}) as client:
        return list(guided_sync(client, seeds, goal, **options))


CLIENTS = ["httpx", "aiohttp", "requests", "httpx-sync"]


# what every client does


@pytest.mark.parametrize("kind", CLIENTS)
def test_all_that_may_be_fetched_is_fetched_once(kind: str, web: Served, proxy: str) -> None:
    pages = crawled(kind, proxy, policy=FREE)
    assert {page.url for page in pages} == EVERY
    assert sorted(requested(web)) == sorted([*EVERY, MOVED, GONE, BUSY])
    assert all(page.ok and page.response.status_code == 200 for page in pages if hasattr(page.response, "status_code"))


@pytest.mark.parametrize("kind", CLIENTS)
def test_robots_is_read_through_the_client_before_anything_of_its_host(kind: str, web: Served, proxy: str) -> None:
    crawled(kind, proxy, policy=FREE)
    assert sorted(requested(web, robots=True)) == [GARDEN + "robots.txt", HARBOUR + "robots.txt"]
    for host in (GARDEN, HARBOUR):
        assert next(one.url for one in web.log if one.url.startswith(host)) == host + "robots.txt"
    assert PRIVATE not in requested(web)
    assert {one.agent for one in web.log} == {"rosebot/1.0"}


@pytest.mark.parametrize("kind", ["httpx", "requests"])
def test_the_delay_is_kept_where_requests_arrive(kind: str, web: Served, proxy: str) -> None:
    crawled(kind, proxy, policy=FREE | {"default_delay_s": DELAY_S}, max_pages=8)
    assert paced(web, GARDEN)


@pytest.mark.parametrize("kind", CLIENTS)
def test_bytes_beyond_ascii_in_headers_are_read_as_text(kind: str) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=\xff\r\nContent-Length: %d\r\n\r\n%s"
    links = b"<a href=/moved>x</a><a href=/plain>y</a>"
    moved = "HTTP/1.1 302 Found\r\nLocation: /café\r\nContent-Length: 0\r\n\r\n".encode()

    async def asked() -> list[str]:
        async with stranger() as there:
            for path, body in (("/", links), ("/plain", b"roses"), ("/caf%C3%A9", b"tulips")):
                there.lay_raw(path, page % (len(body), body))
            there.lay_raw("/moved", moved)
            await asyncio.to_thread(crawled, kind, "", there.url(), policy=FREE | {"robots": "ignore"})
            return [request.split()[1].decode() for request in there.requests]

    assert sorted(asyncio.run(asked())) == ["/", "/caf%C3%A9", "/moved", "/plain"]


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_a_header_says_to_robots_counts_unless_it_names_another(kind: str) -> None:
    async def asked() -> list[str]:
        async with stranger() as there:
            there.lay("/", b"<a href=/mine>x</a><a href=/theirs>y</a>", Content_Type="text/html")
            there.lay("/mine", b"<a href=/a>x</a>", X_Robots_Tag="noarchive\r\nX-Robots-Tag: nofollow")
            there.lay("/theirs", b"<a href=/b>x</a>", X_Robots_Tag="otherbot: noindex, nofollow")
            await asyncio.to_thread(crawled, kind, "", there.url(), policy=FREE)
            return [request.split()[1].decode() for request in there.requests]

    assert sorted(asyncio.run(asked())) == ["/", "/b", "/mine", "/robots.txt", "/theirs"]


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_pages_say_to_the_client_by_its_name_counts(kind: str) -> None:
    async def said() -> dict[str, Any]:
        async with stranger() as there:
            page, html = b"<a href=/meta>x</a><a href=/header>x</a><a href=/text>x</a><a href=/after>x</a>", "text/html"
            there.lay("/", page, Content_Type=html)
            there.lay("/meta", b"<meta name=RoseBot content=noindex><meta name=crawlguide content=none>")
            there.lay("/header", X_Robots_Tag="rosebot: nofollow", Content_Type=html)
            there.lay("/text", b"roses", X_Robots_Tag="rosebot: noindex", Content_Type="text/plain")
            there.lay("/after", X_Robots_Tag="otherbot: none\r\nX-Robots-Tag: noarchive", Content_Type=html)
            pages = await asyncio.to_thread(crawled, kind, "", there.url(), policy=FREE)
            return {page.url.rpartition("/")[2]: page._report()["robots_meta"] for page in pages}

    assert asyncio.run(said()) == {
        "": None, "meta": ["noindex"], "header": ["nofollow"], "text": ["noindex"], "after": ["noarchive"]
    }  # fmt: skip


async def test_a_page_that_takes_long_to_read_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient, beats = Reader(limit_s=1.0), 0
    monkeypatch.setattr(reading, "_reader", lambda: impatient)
    impatient.read(Document(HTML, b"ready", GARDEN, "", ""))

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += bool(there.requests)

    async with stranger() as there, httpx.AsyncClient() as client:
        start = there.lay("/", b"<div>" * (1 << 20), Content_Type="text/html")
        beating = asyncio.create_task(beat())
        async with aclosing(guided(client, start, TOPIC, policy=FREE | {"robots": "ignore"})) as pages:
            assert [page.title async for page in pages] == [""]
        beating.cancel()
    impatient.close()
    assert beats > 20


BOMB = brotli.compress(bytes(64 << 20), quality=4)
PACKED = gzip.compress(b"<title>Roses</title>")


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("way", ["/", "/robots.txt"])
def test_a_bomb_is_not_unpacked(kind: str, way: str) -> None:
    """Neither as a page nor on the way to a robots.txt."""

    async def crawl() -> tuple[list[Page], int]:
        async with stranger() as there:
            there.lay("/", Content_Type="text/html")
            there.lay(way, BOMB, "302 Found" if way != "/" else "200 OK", Content_Encoding="br", Location="/rules")
            there.lay("/rules", b"User-agent: *\nAllow: /")
            await asyncio.to_thread(crawled, kind, "", there.url("/else"), policy=FREE | {"robots": "ignore"})
            tracemalloc.start()
            pages = await asyncio.to_thread(crawled, kind, "", there.url(), policy=FREE, failures=True)
            _, peak_bytes = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return pages, peak_bytes

    (page,), peak_bytes = asyncio.run(crawl())
    assert (page.status, page.error) == ((None, "too_large") if way == "/" else (200, None))
    assert peak_bytes < 48 << 20


async def test_a_robots_txt_that_leads_nowhere_is_an_error() -> None:
    async with stranger() as there, httpx.AsyncClient() as client:
        url = there.lay("/robots.txt", status="302 Found", Location="/robots.txt")
        assert (await fetching(client)[0](url, True)).error == "other"
        with requests.Session() as session:
            assert (await asyncio.to_thread(fetching_sync(session)[0], url, True)).error == "other"


@pytest.mark.parametrize("kind", CLIENTS)
def test_the_clients_own_response_is_unpacked(kind: str) -> None:
    async def crawl() -> list[Page]:
        async with stranger() as there:
            there.lay("/", PACKED, Content_Encoding="gzip", Content_Type="text/html")
            return await asyncio.to_thread(crawled, kind, "", there.url(), policy=FREE)

    (page,) = asyncio.run(crawl())
    body = asyncio.run(page.response.text()) if kind == "aiohttp" else page.response.text
    assert body == page.html == "<title>Roses</title>"


async def test_a_session_that_unpacks_nothing_is_helped() -> None:
    async with stranger() as there, aiohttp.ClientSession(auto_decompress=False) as session:
        there.lay("/", PACKED, Content_Encoding="gzip", Content_Type="text/html")
        assert [page.title async for page in guided(session, there.url(), policy=FREE)] == ["Roses"]


async def test_what_a_client_has_read_already_is_taken_as_it_is() -> None:
    """As of a cache, or of a transport of somebody's tests."""

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip", "content-type": "text/html"}, content=PACKED)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        pages = guided(client, "http://a.example/", policy=FREE | {"robots": "ignore"})
        assert [page.title async for page in pages] == ["Roses"]


def test_without_the_crawlers_codings_those_that_python_has_are_undone() -> None:
    program = (
        "import sys; sys.modules |= {'brotli': None, 'backports.zstd': None}\n"
        "from crawlguide.integrations._answers import _asking\n"
        "import httpx; print(_asking(httpx.Client(headers={'accept-encoding': 'gzip, deflate;q=1, br, zstd'})))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == "{'accept-encoding': 'gzip, deflate;q=1'}"


@pytest.mark.parametrize("kind", CLIENTS)
def test_names_and_passwords_in_strangers_links_are_nobodys(kind: str) -> None:
    async def asked() -> list[bytes]:
        async with stranger() as there:
            links = b"".join(b"<a href='//u%d:p@127.0.0.1:%d/same'>x</a>" % (n, there.port) for n in range(3))
            there.lay("/", links + b"<a href=/moved>x</a>", Content_Type="text/html")
            there.lay("/moved", status="302 Found", Location=there.url("/same").replace("http://", "http://u:p@"))
            there.lay("/same", b"roses")
            await asyncio.to_thread(crawled, kind, "", there.url(), policy=FREE | {"robots": "ignore"})
            return there.requests

    requests = asyncio.run(asked())
    assert sorted(request.split()[1].decode() for request in requests) == ["/", "/moved", "/same"]
    assert not any(b"authorization" in request.lower() for request in requests)


def test_a_client_that_sends_no_name_has_none() -> None:
    with httpx.Client() as client:
        del client.headers["user-agent"]
        assert fetching_sync(client)[1] == ""


@pytest.mark.parametrize("kind", CLIENTS)
def test_failures_are_shown_to_those_who_want_them(kind: str, proxy: str) -> None:
    pages = crawled(kind, proxy, policy=FREE, failures=True)
    assert {page.url: page.status for page in pages if not page.ok} == {GONE: 404, BUSY: 503}


@pytest.mark.parametrize("kind", CLIENTS)
def test_no_more_pages_are_requested_than_wanted(kind: str, web: Served, proxy: str) -> None:
    crawled(kind, proxy, policy=FREE, max_pages=5)
    assert len(requested(web)) == 5


@pytest.mark.parametrize("kind", CLIENTS)
def test_the_clients_own_response_can_be_read(kind: str, proxy: str) -> None:
    (page,) = crawled(kind, proxy, policy=FREE, max_pages=1)
    body = asyncio.run(page.response.text()) if kind == "aiohttp" else page.response.text
    assert "<title>Garden</title>" in body
    assert body == page.html


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_host_that_does_not_answer_is_a_failure_and_not_the_end(kind: str) -> None:
    (page,) = crawled(kind, f"http://127.0.0.1:{free_port()}", policy=FREE | {"robots": "ignore"}, failures=True)
    assert (page.status, page.error) == (None, "connect")


async def test_a_script_without_a_network_is_told_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its pages wait for ever, and it has set up no log."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    address, said = f"http://127.0.0.1:{free_port()}", ""
    async with with_httpx("") as client, aclosing(guided(client, address, TOPIC, policy=FREE)) as pages:
        nothing = asyncio.ensure_future(anext(pages))
        async with asyncio.timeout(20):
            while not said:
                await asyncio.sleep(0.05)
                said = capsys.readouterr().err
        nothing.cancel()
        await asyncio.wait([nothing])
    assert said == f"robots.txt of {address} could not be read: connect; its URLs wait, and it is tried again\n"


# what is told


def told(data: Path, crawl: str = "default") -> dict[str, Any]:
    with Guide.open(data) as guide:
        found: dict[str, Any] = guide.stats(crawl)["crawls"][crawl]
        return found


def test_every_outcome_is_in_the_data_folder_afterwards(proxy: str, tmp_path: Path) -> None:
    pages = crawled("httpx", proxy, policy=FREE, data=tmp_path)
    others = 5  # a redirect, two failures, two files of rules, of which one is missing
    numbers = told(tmp_path)
    assert numbers["state"] == "exhausted"
    assert numbers["dropped"] == {"robots": 1}
    assert settled({"crawls": {"default": numbers}}) == {
        "leased": 0, "queued": 0, "done": len(pages) + others, "fetches": len(pages) + others, "failed": 3
    }  # fmt: skip


def test_robots_is_read_by_the_name_that_the_client_sends(proxy: str, tmp_path: Path) -> None:
    crawled("httpx", proxy, policy=FREE, data=tmp_path, max_pages=1)
    with Guide.open(tmp_path) as guide:
        policy = guide.patch("default", {})["definition"]["policy"]
    assert (policy["user_agent"], policy["robots"]) == ("rosebot", "crawler")


def test_pages_are_judged_by_the_goal(proxy: str, tmp_path: Path) -> None:
    pages = crawled("httpx", proxy, policy=FREE, data=tmp_path)
    assert 0 < told(tmp_path)["relevant"] < len(pages)


def test_the_relevance_that_is_set_is_told(proxy: str, tmp_path: Path) -> None:
    with by_requests(proxy) as session:
        for page in guided_sync(session, GARDEN, policy=FREE, data=tmp_path):
            page.relevance = float("ships" in page.url)
    assert told(tmp_path)["relevant"] == 6


def test_only_the_links_that_are_set_are_followed(web: Served, proxy: str) -> None:
    with by_requests(proxy) as session:
        for page in guided_sync(session, GARDEN, TOPIC, policy=FREE):
            page.links = [link for link in page.links if "roses" in link.url]
    assert set(requested(web)) == {GARDEN, *ROSES}


def test_links_may_be_plain_urls_or_dictionaries(web: Served, proxy: str) -> None:
    with by_requests(proxy) as session:
        for page in guided_sync(session, GARDEN, TOPIC, policy=FREE):
            page.links = ["/roses/1", {"url": ROSES[2], "anchor": "two"}] if page.url == GARDEN else []
    assert set(requested(web)) == {GARDEN, ROSES[1], ROSES[2]}


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_came_with_a_url_goes_on_with_what_it_leads_to(kind: str, proxy: str) -> None:
    (page,) = crawled(kind, proxy, [{"url": MOVED, "metadata": {"label": "rose"}}], policy=FREE, max_pages=2)
    assert (page.url, page.metadata) == (NEW, {"label": "rose", "redirects": 1})


async def test_redirects_without_end_are_given_up() -> None:
    async with stranger() as there, with_httpx("") as client:
        for number in range(2 * MOST):
            there.lay(f"/{number}", status="302 Found", Location=f"/{number + 1}")
        async for _ in guided(client, there.url("/0"), TOPIC, policy=FREE | {"robots": "ignore"}):
            pass
        assert len(there.requests) == MOST + 1


def test_a_skipped_page_is_worth_nothing_and_leads_nowhere(web: Served, proxy: str, tmp_path: Path) -> None:
    with by_requests(proxy) as session:
        for page in guided_sync(session, GARDEN, TOPIC, policy=FREE, data=tmp_path):
            page.skip()
    assert requested(web) == [GARDEN]
    assert told(tmp_path)["relevant"] == 0


def test_a_page_says_why_it_was_chosen(proxy: str) -> None:
    pages = crawled("httpx", proxy, policy=FREE, max_pages=4)
    assert all(0 <= page.p <= 1 and page.reason and page.score == page.score for page in pages)
    assert pages[0].title == "Garden"
    assert "tulips" in pages[0].text
    assert (NEW, "old") not in [(link.url, link.anchor) for link in pages[0].links]


def test_a_relevance_out_of_range_is_refused_by_name(proxy: str) -> None:
    with by_requests(proxy) as session:
        pages = guided_sync(session, GARDEN, TOPIC, policy=FREE)
        next(pages).relevance = 5.0
        with pytest.raises(MalformedRequest, match=r"garden.example/: .* - at `\$.relevance`"):
            next(pages)


# every way out


def test_a_loop_that_is_broken_off_gives_everything_back(proxy: str, tmp_path: Path) -> None:
    async def broken() -> None:
        async with with_httpx(proxy) as client:
            async for page in guided(client, GARDEN, TOPIC, policy=FREE, data=tmp_path):
                if page.url == ROSES[0]:
                    break

    asyncio.run(broken())
    numbers = told(tmp_path)
    assert numbers["leased"] == 0
    assert numbers["done"] >= 1


async def test_steps_that_fail_together_are_one_error() -> None:
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))

    async def failing() -> str | None:
        raise UnavailableError("the guide is gone")

    with pytest.raises(UnavailableError):
        _ = [found async for found in side_by_side(failing, 8, 100)]
    gc.collect()
    assert unheard == []


async def test_what_was_not_shown_when_a_loop_ends_comes_again(proxy: str, tmp_path: Path) -> None:
    """Pages that were fetched together: only those that the loop has seen are told."""
    options: Any = {"policy": FREE, "data": tmp_path}
    async with with_httpx(proxy) as client:
        seen: list[str] = []
        async with aclosing(guided(client, GARDEN, TOPIC, **options)) as pages:
            async for page in pages:
                seen.append(page.url)
                await asyncio.sleep(0.3)  # the others come meanwhile
                if len(seen) == 3:
                    break
        again = [page.url async for page in guided(client, GARDEN, TOPIC, **options)]
    assert set(again) == EVERY - set(seen[:-1])


def test_it_goes_on_where_it_was_broken_off(web: Served, proxy: str, tmp_path: Path) -> None:
    with by_requests(proxy) as session:
        first = []
        for page in guided_sync(session, GARDEN, TOPIC, policy=FREE, data=tmp_path):
            first.append(page.url)
            if len(first) == 4:
                break
        second = [page.url for page in guided_sync(session, GARDEN, TOPIC, policy=FREE, data=tmp_path)]
    assert set(second) == EVERY - set(first[:-1])  # the page at which the loop ended was not told


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_an_error_in_the_loop_gives_everything_back(kind: str, proxy: str, tmp_path: Path) -> None:
    async def failing() -> None:
        async with with_httpx(proxy) as client:
            async for page in guided(client, GARDEN, TOPIC, policy=FREE, data=tmp_path):
                raise KeyError(page.url)

    def failing_sync() -> None:
        with by_requests(proxy) as session:
            for page in guided_sync(session, GARDEN, TOPIC, policy=FREE, data=tmp_path):
                raise KeyError(page.url)

    with pytest.raises(KeyError, match="garden"):
        asyncio.run(failing()) if kind == "async" else failing_sync()
    numbers = told(tmp_path)
    assert (numbers["leased"], numbers["queued"]) == (0, 1)


def test_a_cancelled_crawl_gives_everything_back(proxy: str, tmp_path: Path) -> None:
    async def cancelled() -> None:
        seen = asyncio.Event()

        async def crawl() -> None:
            async with with_httpx(proxy) as client:
                async for _ in guided(client, GARDEN, TOPIC, policy=FREE | {"default_delay_s": 0.5}, data=tmp_path):
                    seen.set()

        task = asyncio.create_task(crawl())
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert told(tmp_path)["leased"] == 0


INTERRUPTED = """
import asyncio, os, signal, sys
import httpx, requests
from crawlguide.integrations.guided import guided, guided_sync

options = {"policy": {"default_delay_s": 0}, "data": sys.argv[3]}

async def main():
    async with httpx.AsyncClient(proxy=sys.argv[2]) as client:
        async for page in guided(client, "http://garden.example/", "roses", **options):
            if "roses" in page.url:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(60)

if sys.argv[1] == "async":
    asyncio.run(main())
else:
    session = requests.Session()
    session.proxies = {"http": sys.argv[2]}
    for page in guided_sync(session, "http://garden.example/", "roses", **options):
        if "roses" in page.url:
            os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_ctrl_c_gives_everything_back(kind: str, proxy: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, kind, proxy, str(tmp_path / "data")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert ended.stderr.rstrip().endswith("KeyboardInterrupt")
    assert "never retrieved" not in ended.stderr
    numbers = told(tmp_path / "data")
    assert numbers["leased"] == 0
    assert numbers["done"] >= 1


# a guide that is served


@pytest.fixture
def crawl_id(request: pytest.FixtureRequest) -> str:
    return f"crawl-{request.node.name}"


OVER_THE_PROXY = FREE | {"robots": "crawler"}  # the server itself does not know these hosts


def test_a_served_guide_is_named_by_its_address(
    proxy: str, web: Served, guide_server: ServedGuide, crawl_id: str
) -> None:
    pages = crawled("httpx", proxy, policy=OVER_THE_PROXY, guide=guide_server.url, crawl_id=crawl_id)
    assert {page.url for page in pages} == EVERY
    assert PRIVATE not in requested(web)
    with Client(guide_server.url) as client:
        numbers = client.stats(crawl_id)["crawls"][crawl_id]
    assert (numbers["state"], numbers["leased"]) == ("exhausted", 0)
    rules = (
        numbers["done"] - len(EVERY) - 3
    )  # besides a redirect and two failures: robots.txt, unless known from before
    assert 0 <= rules <= 2


def test_two_scripts_share_a_served_guide(proxy: str, web: Served, guide_server: ServedGuide, crawl_id: str) -> None:
    async def both() -> list[list[str]]:
        async def one() -> list[str]:
            async with with_httpx(proxy) as client:
                crawl = guided(client, GARDEN, TOPIC, policy=OVER_THE_PROXY, guide=guide_server.url, crawl_id=crawl_id)
                return [page.url async for page in crawl]

        return list(await asyncio.gather(one(), one()))

    first, second = asyncio.run(both())
    assert sorted(first + second) == sorted(EVERY)
    assert sorted(requested(web)) == sorted([*EVERY, MOVED, GONE, BUSY])


def test_what_others_said_of_a_crawl_stays(proxy: str, guide_server: ServedGuide, crawl_id: str) -> None:
    with Client(guide_server.url) as client:
        client.define(crawl_id, {"policy": OVER_THE_PROXY, "rules": {"ban": {"hosts": ["harbour.example"]}}})
    pages = crawled("requests", proxy, guide=guide_server.url, crawl_id=crawl_id)
    assert {page.url for page in pages} == {url for url in EVERY if not url.startswith(HARBOUR)}
    with Client(guide_server.url) as client:
        assert client.rules(crawl_id)["ban"]["hosts"] == ["harbour.example"]


async def test_a_guide_that_is_open_stays_open(proxy: str) -> None:
    async with AsyncGuide.open() as guide, with_httpx(proxy) as client:
        pages = [page async for page in guided(client, GARDEN, TOPIC, policy=FREE | {"robots": "crawler"}, guide=guide)]
        assert (await guide.stats("default"))["crawls"]["default"]["fetches"] == len(pages) + 5


async def test_breaking_off_gives_back_what_a_server_lent(proxy: str, guide_server: ServedGuide, crawl_id: str) -> None:
    async with with_httpx(proxy) as client:
        options: Any = {"policy": OVER_THE_PROXY, "guide": guide_server.url, "crawl_id": crawl_id}
        async with aclosing(guided(client, GARDEN, TOPIC, **options)) as pages:
            async for page in pages:
                if page.url == ROSES[0]:
                    break
    async with AsyncClient(guide_server.url) as guide:
        assert (await guide.stats(crawl_id))["crawls"][crawl_id]["leased"] == 0


# what cannot work is said at once


def one_page(client: Any, seeds: Any = GARDEN, goal: Any = TOPIC, **options: Any) -> None:
    next(guided_sync(client, seeds, goal, **options))


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


def test_a_server_that_is_not_there_is_named(session: requests.Session) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(UnavailableError, match=f"{address} cannot be reached .*: is a server running there?"):
        one_page(session, guide=address)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": 7}, "goal: expected text or a dictionary .* got int"),
        ({"goal": {"topik": "roses"}}, "topik"),
        ({"seeds": ["not a url"]}, "not a url"),
        ({"max_pages": -1}, "max_pages: expected an integer from 0, got -1"),
        ({"policy": "polite"}, "policy: expected a dictionary, got 'polite'"),
        ({"policy": {"delay": 1}}, "delay"),
        ({"strategy": "layerd"}, "layered"),
        ({"guide": "http://127.0.0.1:1", "data": "x"}, "data: expected either guide= .* or data="),
    ],
)
def test_a_wrong_argument_is_named(session: requests.Session, options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        one_page(session, **options)


def test_an_unknown_option_is_a_type_error(session: requests.Session) -> None:
    with pytest.raises(TypeError, match="max_page"):
        one_page(session, max_page=3)


def test_each_kind_of_client_has_its_own_function(session: requests.Session) -> None:
    with pytest.raises(ConfigError, match=r"got httpx.AsyncClient; for that one there is guided"):
        one_page(httpx.AsyncClient())
    with pytest.raises(ConfigError, match=r"expected requests.Session or httpx.Client, got builtins.str$"):
        one_page("http://garden.example/")
    with pytest.raises(ConfigError, match=r"got requests.Session; for that one there is guided_sync"):
        asyncio.run(anext(guided(session, GARDEN)))


async def test_the_synchronous_one_says_that_it_is_for_scripts(session: requests.Session) -> None:
    with pytest.raises(RuntimeError, match="use guided and async for"):
        one_page(session)
