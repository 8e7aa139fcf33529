"""Disks that fail: at any call, for want of room, under our feet.

EVERY_IO_CALL=1 lets every single call fail in its turn instead of some.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.errors import CrawlGuideError, StorageFull, StoreUnavailable
from crawlguide.core.messages import SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import backup
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.memory import MemoryStore
from crawlguide.store.moves.rank import Quota

from . import telling_child
from .builders import ids
from .crawling import MAIN, SPARE, WEB, Crawler
from .faults import AFTER, BEFORE, READS, WRITES, Fault, after_a_crash, check_states
from .plain import known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from crawlguide.core.messages import ReportMessage
    from crawlguide.core.protocols import Store

QUOTA = Quota(urls=1_000, urls_per_host=1_000, links=1_000)
EVERY_CALL = bool(os.environ.get("EVERY_IO_CALL"))
IDS = ids(*WEB)
WORDY_LINKS = 20


# every nth call fails


async def worked(crawler: Crawler) -> None:
    """Something of everything that reaches the disk."""
    await crawler.begin()
    for _ in range(4):
        await crawler.step()
    await crawler.insist(crawler.guide.upkeep)
    await crawler.insist(lambda: crawler.guide.seed(SPARE, SeedsMessage([*WEB[:3]])))
    await crawler.insist(lambda: removed(crawler))


async def removed(crawler: Crawler) -> None:
    """A crawl whose removal failed may be gone by the time it is tried again."""
    if await crawler.store.crawl_get(SPARE) is not None:
        await crawler.guide.delete(SPARE)
    await crawler.store.commit()


async def expected() -> dict[str, object]:
    crawler = Crawler(MemoryStore(QUOTA), ManualClock())
    await worked(crawler)
    await crawler.finish()
    await crawler.correct()
    await crawler.finish()
    return await known(crawler.store, MAIN, IDS)


async def failing_at(fault: Fault) -> Crawler:
    """The whole work, on a disk of which some call fails, with a backup and a restart on the way."""
    folder = fault.folder

    async def look() -> None:
        """After a failure nothing is missing, neither here nor in the files."""
        here = crawler.store if isinstance(crawler.store, EmbeddedStore) else None
        if here is not None:
            with suppress(CrawlGuideError):  # this may fail as well
                await check_states(here, crawler.acked)
        async with after_a_crash(folder, QUOTA, here) as found:
            await check_states(found, crawler.acked)

    crawler = Crawler(EmbeddedStore(folder, QUOTA), ManualClock(), look)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "LOG_AT_LEAST", 2_000)
        fault.arm(patch)
        await worked(crawler)
        await crawler.insist(lambda: backup.backup(crawler.guide, folder.with_name("backup")))
        await reopen(crawler, folder)
        await crawler.finish()
        await crawler.correct()
        await crawler.finish()
    return crawler


async def reopen(crawler: Crawler, folder: Path) -> None:
    async def opened() -> EmbeddedStore:
        return EmbeddedStore(folder, QUOTA)

    try:
        await crawler.store.close()
    except CrawlGuideError as problem:
        crawler.failures.append(problem)
    crawler.go_on_with(MemoryStore(QUOTA))  # nobody speaks to a store that is closed
    crawler.go_on_with(await crawler.insist(opened))


def whole(found: dict[str, Any]) -> dict[str, Any]:
    return found


def whatever_the_order(found: dict[str, Any]) -> dict[str, Any]:
    """What is the same in the end in whatever order pages were given out: a failed ask may leave leases behind."""
    counts = ("discovered", "fetches", "failed", "relevant", "queued", "leased", "done", "dropped", "hosts")
    evidence, host = ("id", "parents", "parent_sum", "parent_best"), ("host", "pages", "failures", "judged", "leases")
    return {
        "stats": {name: found["stats"][name] for name in counts},
        "find": [(one["url"], one["state"], one["status"]) for one in found["find"]],
        "look": [[row[name] for name in evidence] + [row["on"][name] for name in host] for row in found["look"]],
        "children": found["children"],
        "learned": paid(found["notebook"]["hosts"]),
        "parents": found["parents"],
    }


def paid(hosts: dict[str, Any]) -> dict[bytes, tuple[int, float]]:
    """What was learned of each host."""
    return dict(zip(hosts["name"], zip(hosts["pages"], hosts["paid"], strict=True), strict=True))


async def check_all_calls(fault: Fault, stride: int, of: Callable[[dict[str, Any]], dict[str, Any]] = whole) -> None:
    """Call number 1, 2, … fails, until there is no such call any more."""
    wanted, number, folder = of(await expected()), fault.number, fault.folder
    while True:
        fault = replace(fault, folder=folder / str(number) / "data", number=number)
        crawler = await failing_at(fault)
        where = f"{fault.when} call {number} ({fault.struck})"
        async with after_a_crash(fault.folder, QUOTA, crawler.store) as found:  # type: ignore[arg-type]
            await check_states(found, crawler.acked)
            assert of(await known(found, MAIN, IDS)) == wanted, where
        await crawler.store.close()
        if not fault.struck:
            return
        number += 1 if EVERY_CALL else stride


@pytest.mark.parametrize(("first", "when", "times"), [(1, BEFORE, 1), (9, AFTER, 1), (17, BEFORE, 3), (25, AFTER, 3)])
async def test_a_write_that_fails_costs_nothing_but_another_try(
    tmp_path: Path, first: int, when: str, times: int
) -> None:
    await check_all_calls(Fault(tmp_path, WRITES, 1 if EVERY_CALL else first, when, times), stride=64)


@pytest.mark.parametrize(("first", "when", "times"), [(1, BEFORE, 1), (6, AFTER, 1), (11, BEFORE, 4)])
async def test_a_read_that_fails_costs_nothing_but_another_try(
    tmp_path: Path, first: int, when: str, times: int
) -> None:
    fault = Fault(tmp_path, READS, 1 if EVERY_CALL else first, when, times)
    await check_all_calls(fault, 46, whatever_the_order)


@pytest.mark.parametrize("number", [1, 2])
async def test_a_crawl_that_began_with_a_failure_begins_with_the_next_try(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody defined it, so the first tell does, and is not heard to its end."""
    guide, fault = telling_child.opened(tmp_path), Fault(tmp_path, READS, number)
    fault.arm(monkeypatch)
    with pytest.raises(StoreUnavailable):
        await guide.tell(telling_child.report(0))
    assert (await guide.tell(telling_child.report(0))).discovered == telling_child.LINKS
    await guide.close()


# no room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MiB."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "crawlguide", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root, where mounting is permitted")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


async def test_a_full_disk_refuses_and_goes_on_once_there_is_room(small_disk: Path) -> None:
    guide, acked = telling_child.opened(small_disk / "data"), 0
    with pytest.raises(StorageFull) as full:  # noqa: PT012 - which of them fills the disk is not known
        while acked < 10_000:
            await guide.tell(wordy(acked))
            acked += 1
    assert full.value.code == "storage_full"
    for _ in range(2):
        with pytest.raises(StorageFull):
            await guide.tell(wordy(acked))
    stats = (await guide.stats()).crawls["default"]  # reading goes on
    assert stats.fetches >= acked
    assert await urls_of(guide.store, range(acked)) == [telling_child.page(number) for number in range(acked)]
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)  # noqa: ASYNC221
    assert (await guide.tell(wordy(acked))).discovered == WORDY_LINKS
    assert (await guide.tell(wordy(acked + 1))).accepted == 1
    await guide.close()
    guide = telling_child.opened(small_disk / "data")
    stats = (await guide.stats()).crawls["default"]
    assert (stats.fetches, stats.done) == (acked + 2, acked + 2)
    assert stats.queued == WORDY_LINKS * (acked + 2)
    assert await urls_of(guide.store, range(acked + 2)) == [telling_child.page(number) for number in range(acked + 2)]
    await guide.close()


def wordy(number: int) -> ReportMessage:
    words = "".join(hashlib.sha512(f"{number} {part}".encode()).hexdigest() for part in range(8))  # cannot be packed
    return telling_child.report(number, WORDY_LINKS, words)


async def urls_of(store: Store, numbers: Iterable[int]) -> list[str]:
    """What the store has under the ids of pages that were told."""
    pages = [telling_child.page(number) for number in numbers]
    found = await store.find(Crawl("default", "default"), ids(*pages))
    return [record.url for record in found if record and record.state == "done"]


# a kernel that says no


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed; `make test` installs it")
@pytest.mark.parametrize(
    "injected", ["fdatasync:error=EIO:when=12..15", "fdatasync:error=ENOSPC:when=10..12", "fsync:error=EIO:when=6..9"]
)
async def test_what_was_acknowledged_is_there_whatever_the_kernel_said(tmp_path: Path, injected: str) -> None:
    told = ["-e", "trace=fsync,fdatasync", "-e", f"inject={injected}", "-o", str(tmp_path / "trace")]
    traced = ["strace", "-f", "--seccomp-bpf", "-qq", *told]
    child = [sys.executable, "-m", "tests.store.telling_child", str(tmp_path / "data")]
    ended = subprocess.run([*traced, *child], capture_output=True, text=True, check=False, timeout=60)  # noqa: ASYNC221
    said = [line.split() for line in ended.stdout.splitlines()]
    acked = [int(number) for word, number, *_ in said if word == telling_child.ACKED]
    assert "INJECTED" in (tmp_path / "trace").read_text(), ended.stderr
    assert "Traceback" not in ended.stderr
    assert acked == list(range(telling_child.REPORTS))  # it got better, and nothing had to be started anew
    guide = telling_child.opened(tmp_path / "data")
    stats = (await guide.stats()).crawls["default"]
    assert await urls_of(guide.store, acked) == [telling_child.page(number) for number in acked]
    assert (stats.fetches, stats.queued) == (len(acked), telling_child.LINKS * len(acked))
    await guide.close()
