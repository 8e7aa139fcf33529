"""Lost answers, killed servers and many threads: nothing is done twice."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.gateway.clients.answering import (
    BROKEN,
    Answering,
    Heard,
    Told,
)
from tests.gateway.clients.common import (
    FREE,
    GONE_WITHIN_S,
    Kind,
    asking,
    free_port,
    given,
    numbers,
    pages,
    telling,
)
from tests.gateway.conftest import SCRIPT, Served, _port

from crawlguide import AsyncClient, Client
from crawlguide.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Losing:
    """Stands before a guide, and of every call the first answer is lost on its way back."""

    def __init__(self, guide: str) -> None:
        self._guide = httpx.Client(base_url=guide, trust_env=False)
        self._seen = set[tuple[str, str, bytes]]()
        self._server = Answering(BROKEN)
        self._server.listening.answer = self._answer
        self.url = self._server.url

    def __enter__(self) -> Losing:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()
        self._guide.close()

    def _answer(self, request: Heard) -> Told:
        answer = self._guide.request(request.method, request.path, content=request.body)
        call = (request.method, request.path, request.body)
        if call in self._seen:
            return Told(answer.status_code, answer.content, {"content-type": answer.headers["content-type"]})
        self._seen.add(call)
        return BROKEN


def test_lost_answers_change_nothing(served: Served, kind: Kind, crawl: str) -> None:
    with Losing(served.url) as lossy, kind(lossy.url) as guide:
        guide.define(crawl, {"policy": FREE})
        guide.seed(crawl, pages(20))
        first, second = (given(guide.ask(asking(crawl, 5))) for _ in range(2))
        assert guide.tell(telling(crawl, *first))["accepted"] == 5
        assert len({*first, *second}) == 10
        counted = numbers(guide, crawl)
        assert (counted["asks"], counted["assigned"], counted["fetches"]) == (2, 10, 5)
        assert (counted["leased"], counted["done"], counted["failed"]) == (5, 5, 0)
        guide.pause(crawl)
        assert numbers(guide, crawl)["state"] == "paused"


def test_a_crawl_whose_deletion_was_not_heard_of_is_deleted_all_the_same(
    served: Served, kind: Kind, crawl: str
) -> None:
    with Losing(served.url) as lossy, kind(lossy.url) as guide:
        guide.define(crawl, {})
        guide.delete(crawl)
        with pytest.raises(NotFound):
            guide.stats(crawl)


@contextmanager
def serving(folder: Path, port: int) -> Iterator[Served]:
    """A server that remembers in this folder, on this port."""
    ready, stderr = folder / "ready.json", folder / "stderr.txt"
    ready.unlink(missing_ok=True)
    command = [str(SCRIPT), "serve", "--data", str(folder / "data"), "--port", str(port), "--ready-file", str(ready)]
    with stderr.open("w") as said, subprocess.Popen(command, stderr=said, text=True, cwd=folder) as process:
        try:
            yield Served(process, _port(process, ready, stderr), stderr)
        finally:
            if process.poll() is None:
                process.kill()


@dataclass
class Fleet:
    """Three crawlers that go on asking and telling until they are stopped."""

    kind: Kind
    url: str
    told: list[str] = field(default_factory=list)
    stopped: bool = False

    def crawled(self, name: str) -> None:
        with self.kind(self.url, retries=100) as guide:
            while not self.stopped:
                urls = given(guide.ask(asking("default", 3, crawler_id=name)))
                ack = guide.tell(telling("default", *urls, crawler_id=name))
                assert [result["status"] for result in ack["results"]] == ["ok"] * 3
                self.told += urls

    def gets_on(self) -> None:
        until, more = time.monotonic() + GONE_WITHIN_S, len(self.told) + 60
        while len(self.told) < more:
            assert time.monotonic() < until, "no crawler gets on"
            time.sleep(0.01)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(3) as pool:
            crawlers = [pool.submit(self.crawled, f"c-{number}") for number in range(3)]
            try:
                yield
            finally:
                self.stopped = True
            for crawler in crawlers:
                crawler.result(GONE_WITHIN_S)


def test_a_guide_that_is_killed_and_started_again_is_not_noticed(tmp_path: Path, kind: Kind) -> None:
    port = free_port()
    with ExitStack() as servers, Client(f"http://127.0.0.1:{port}") as guide:
        first = servers.enter_context(serving(tmp_path, port))
        guide.define("default", {"policy": FREE})
        guide.seed("default", pages(5_000))
        fleet = Fleet(kind, first.url)
        with fleet.running():
            fleet.gets_on()
            first.stop(signal.SIGKILL)
            servers.enter_context(serving(tmp_path, port))
            fleet.gets_on()
        counted = numbers(guide, "default")
    assert len(set(fleet.told)) == len(fleet.told)
    assert (counted["fetches"], counted["done"], counted["leased"]) == (len(fleet.told), len(fleet.told), 0)


def test_eight_threads_share_a_client(served: Served, crawl: str) -> None:
    with Client(served.url) as guide:
        guide.define(crawl, {"policy": FREE})
        guide.seed(crawl, pages(400))

        def crawled(number: int) -> list[str]:
            name, found = f"c-{number}", list[str]()
            while urls := given(guide.ask(asking(crawl, 5, crawler_id=name))):
                if urls[0].endswith("next"):
                    break
                found += urls
                fetches = [{"url": url, "status": 200} for url in urls]
                assert guide.tell(telling(crawl, crawler_id=name, fetches=fetches))["accepted"] == len(urls)
            return found

        with ThreadPoolExecutor(8) as pool:
            found = [url for urls in pool.map(crawled, range(8)) for url in urls]
        assert sorted(found) == sorted(pages(400))
        assert numbers(guide, crawl)["done"] == 400


async def test_tasks_share_a_client(served: Served, crawl: str) -> None:
    async with AsyncClient(served.url) as guide:
        await guide.define(crawl, {"policy": FREE})
        await guide.seed(crawl, pages(100))
        found = await asyncio.gather(*(guide.ask(asking(crawl, 5, crawler_id=f"c-{n}")) for n in range(20)))
    assert sorted(url for advice in found for url in given(advice)) == sorted(pages(100))


async def test_a_call_can_be_cancelled(served: Served) -> None:
    with Answering(Told(503)) as server:
        async with AsyncClient(server.url) as guide:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(guide.stats(), 0.1)


def test_who_only_speaks_to_a_guide_loads_none() -> None:
    program = (
        "import sys; from crawlguide import AsyncClient, Client; Client('http://127.0.0.1:1').close();"
        "print([name for name in ('numba', 'numpy', 'uvicorn', 'rocksdict', 'starlette') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert printed.stdout.strip() == "[]"
