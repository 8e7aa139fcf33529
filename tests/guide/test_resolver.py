"""Names whose servers say nothing hold up nobody else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from crawlguide.core.config import Config
from crawlguide.core.config import OutgoingOptions as Options
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import open_guide
from crawlguide.guide.robots.outgoing import Outgoing
from crawlguide.guide.robots.resolver import MOST_AT_ONCE, MOST_OF_DOMAIN, Resolver, looked_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.guide.local import LocalGuide

PLACES_OF_A_CRAWL = 96  # of 256: half of what is left to a tenant, which is three quarters of what is left at all


class Names:
    """A system's resolver: names that begin with "silent" are answered when the test ends."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host.startswith("silent"):
            self.end.wait(60)
        if host.startswith("nowhere"):
            raise OSError("no such name")
        return ["192.0.2.1"]


@contextmanager
def names() -> Iterator[Names]:
    found = Names()
    try:
        yield found
    finally:
        found.end.set()


async def test_two_hundred_silent_names_do_not_delay_another() -> None:
    with names() as system:
        resolve = Resolver(system)
        silent = [asyncio.create_task(resolve(f"silent.{number}.org", 80)) for number in range(200)]
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            assert await resolve("a.org", 80) == ["192.0.2.1"]
        assert not any(task.done() for task in silent)
        system.end.set()
        assert await asyncio.gather(*silent) == [["192.0.2.1"]] * 200


async def test_a_thread_that_cannot_be_started_blocks_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with names() as system:
        resolve = Resolver(system)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", full)
            for _ in range(2 * MOST_OF_DOMAIN):
                with pytest.raises(OSError, match="no thread"):
                    await asyncio.wait_for(resolve("a.org", 80), 10)
        assert await resolve("a.org", 80) == ["192.0.2.1"]


async def test_a_silent_domain_is_asked_for_few_names_at_once_and_each_once() -> None:
    with names() as system:
        resolve = Resolver(system)
        again = [asyncio.create_task(resolve("silent.a.org", 80)) for _ in range(5)]
        many = [asyncio.create_task(resolve(f"silent{number}.a.org", 80)) for number in range(9)]
        await asyncio.sleep(0.01)
        assert len(system.asked) == MOST_OF_DOMAIN
        assert sum(task.done() for task in many) == 9 - (MOST_OF_DOMAIN - 1)
        system.end.set()
        await asyncio.gather(*again, *many, return_exceptions=True)
        assert await resolve("silent9.a.org", 80) == ["192.0.2.1"]  # all is forgotten by then


async def test_who_gives_up_leaves_the_answer_to_others() -> None:
    with names() as system:
        resolve = Resolver(system)
        patient = asyncio.create_task(resolve("silent.a.org", 80))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await resolve("silent.a.org", 80)
        system.end.set()
        assert await patient == ["192.0.2.1"]


async def test_a_name_that_is_none_is_a_problem_of_its_request_alone() -> None:
    with names() as system:
        fetcher = Outgoing(Options(), Resolver(system))
        assert "no such name" in (await fetcher.get("http://nowhere.a.org/", "bot", 9)).problem


async def test_a_silent_name_is_given_up_in_time() -> None:
    with names() as system:
        began = time.monotonic()
        answer = await Outgoing(Options(timeout_s=0.1), Resolver(system)).get("http://silent.a.org/", "bot", 9)
        assert "within" in answer.problem
        assert time.monotonic() - began < 10


async def test_a_crawl_of_silent_names_leaves_room_to_look_up_those_of_others() -> None:
    """Its requests are given up soon, and its names are looked up for much longer."""
    guide = open_guide(":memory:", Config())
    with names() as system:
        outgoing = Outgoing(Options(timeout_s=0.05), Resolver(system))
        reading = asyncio.create_task(guide.robots.run(outgoing))
        await wanted(guide, "silent", *(f"https://silent.{number}.org/" for number in range(1_000)))
        async with asyncio.timeout(10):
            while len(system.asked) < PLACES_OF_A_CRAWL:  # noqa: ASYNC110 - nobody says when
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)  # its first requests are given up ten times over
        assert len(system.asked) == PLACES_OF_A_CRAWL < MOST_AT_ONCE / 2
        await wanted(guide, "other", "https://a.org/")
        async with asyncio.timeout(10):
            while "a.org" not in system.asked:  # noqa: ASYNC110 - nobody says when
                await asyncio.sleep(0.01)
        system.end.set()
        async with asyncio.timeout(10):
            while len(system.asked) <= 1_000:  # noqa: ASYNC110 - the silent ones have their turns, too
                await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    await guide.close()


async def test_the_errands_end_at_once_though_names_are_silent() -> None:
    guide = open_guide(":memory:", Config())
    with names() as system:
        errands = asyncio.create_task(guide.robots.run(Outgoing(Options(), Resolver(system))))
        await wanted(guide, "silent", *(f"https://silent.{number}.org/" for number in range(9)))
        async with asyncio.timeout(10):
            while len(system.asked) < 9:  # noqa: ASYNC110 - nobody says when
                await asyncio.sleep(0.01)
        errands.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(errands, return_exceptions=True)
    await guide.close()


async def wanted(guide: LocalGuide, name: str, *urls: str) -> None:
    await guide.seed(Crawl("default", name), SeedsMessage(list(urls)))
    await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(10_000), crawl_id=name))


def test_the_file_of_hosts_counts() -> None:
    assert looked_up("localhost", 80)[0] in ("127.0.0.1", "::1")


def test_a_process_ends_although_a_name_is_still_being_looked_up() -> None:
    program = """
import asyncio, time
from crawlguide.guide.robots.resolver import Resolver
async def main():
    try:
        await asyncio.wait_for(Resolver(lambda host, port: time.sleep(100))("silent.org", 80), 0.1)
    except TimeoutError:
        print("given up")
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "given up\n")
