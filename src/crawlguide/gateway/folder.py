"""A data folder that no server has open: opened for one command, and closed again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from crawlguide.core.messages import SeedsMessage
from crawlguide.core.telemetry import happened
from crawlguide.core.types import Crawl
from crawlguide.gateway import backup
from crawlguide.gateway.library import open_guide
from crawlguide.guide.crawl import transfer
from crawlguide.guide.local import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
    from pathlib import Path

    from crawlguide.core.config import Config
    from crawlguide.core.messages import SeedMessage
    from crawlguide.gateway.backup import Slip
    from crawlguide.guide.crawl.transfer import Imported
    from crawlguide.guide.local import LocalGuide

Result = TypeVar("Result")


class Folder:
    """A guide over the folder, for a program that is not asynchronous. What a call returned is on stable storage."""

    most_bytes = 128 * 1024 * 1024  # more than the longest line an export writes

    def __init__(self, path: Path, config: Config) -> None:
        self._guide = open_guide(path, config)
        self._runner = asyncio.Runner()

    def exported(self, crawl: str) -> Iterator[bytes]:
        lines = transfer.exported(self._guide, _named(crawl))
        while (more := self._run(_next(lines))) is not None:
            yield more

    def imported(self, crawl: str, lines: Sequence[bytes], first: int) -> Imported:
        return self._run(transfer.imported(self._guide, _named(crawl), lines, first))

    def seeded(self, crawl: str, seeds: Sequence[SeedMessage]) -> int:
        return self._run(self._guide.seed(_named(crawl), SeedsMessage([*seeds])))

    def backed_up(self, target: Path) -> Slip:
        return self._run(backup.backup(self._guide, target))

    def counts(self) -> dict[str, Mapping[str, Any]]:
        return self._run(counts(self._guide))

    def close(self) -> None:
        self._run(self._guide.close())
        self._runner.close()

    def _run(self, step: Coroutine[Any, Any, Result]) -> Result:
        return self._runner.run(step)


async def counts(guide: LocalGuide) -> dict[str, Mapping[str, Any]]:
    """The numbers of each crawl as they lie there: nothing expires by looking."""
    crawls = await guide.store.crawl_list(DEFAULT_TENANT)
    return {crawl.name: await guide.store.stats(crawl) for crawl in crawls}


def urls(numbers: Mapping[str, Any]) -> int:
    """How many URLs a crawl knows."""
    return int(numbers["queued"] + numbers["leased"] + numbers["done"] + sum(numbers["dropped"].values()))


async def greet(guide: LocalGuide, took_s: float) -> None:
    """Say what was found on opening to whoever watches a server start."""
    folder = guide.store.folder
    if folder is None:
        happened("opened", "data: in memory alone; all is forgotten at the end", data=":memory:")
        return
    found = await counts(guide)
    known: dict[str, int] = {"crawls": len(found), "urls": sum(urls(numbers) for numbers in found.values())}
    sentence = "data: {data} opened in {opened_s} s: crawls {crawls}, URLs {urls}"
    old = getattr(guide.store, "migrated_from", None)
    if old is not None:
        sentence += f"; it was of format {old} and has been brought up to date"
    happened("opened", sentence, data=str(folder), opened_s=round(took_s, 1), **known)


async def _next(lines: AsyncIterator[bytes]) -> bytes | None:
    return await anext(lines, None)


def _named(crawl: str) -> Crawl:
    return Crawl(DEFAULT_TENANT, crawl)
