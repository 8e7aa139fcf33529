"""A process that tells, repeats what failed, and says every ack: `python -m tests.store.telling_child FOLDER`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config
from crawlguide.core.errors import CrawlGuideError
from crawlguide.core.messages import VERSION, Fetch, Outlink, ReportMessage
from crawlguide.guide.local import LocalGuide
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.moves.rank import Quota

QUOTA = Quota(urls=100_000, urls_per_host=100_000, links=100_000)
REPORTS, LINKS, TRIES = 40, 20, 40
FAILED, ACKED, OPENING = "failed", "acked", "opening"


def page(number: int) -> str:
    return f"https://p{number % 5}.org/{number}"


def report(number: int, links: int = LINKS, words: str = "") -> ReportMessage:
    """A page that nobody told of before, with links that lead nowhere else."""
    outlinks = [Outlink(f"https://h{number}.org/{link}", anchor=f"{words} {link}") for link in range(links)]
    fetch = Fetch(page(number), status=200, fetch_time=f"time {number}", outlinks=outlinks)
    return ReportMessage(VERSION, "c-1", [fetch], report_id=f"report {number}")


def opened(folder: Path) -> LocalGuide:
    return LocalGuide(EmbeddedStore(folder, QUOTA), Config(), ManualClock())


async def tell(guide: LocalGuide, number: int) -> None:
    for _ in range(TRIES):
        try:
            ack = await guide.tell(report(number))
        except CrawlGuideError as problem:
            say(f"{FAILED} {number} {problem.message}")
        else:
            assert (ack.accepted, ack.discovered) == (1, LINKS)
            say(f"{ACKED} {number}")
            return


def insisted(folder: Path) -> LocalGuide:
    """A disk may fail before there is anything on it."""
    for _ in range(TRIES):
        try:
            return opened(folder)
        except CrawlGuideError as problem:
            say(f"{FAILED} {OPENING} {problem.message}")
    raise SystemExit(f"{folder} cannot be opened")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(folder: Path) -> None:
    guide = insisted(folder)
    for number in range(REPORTS):
        await tell(guide, number)
    with suppress(CrawlGuideError):  # all is written that was acknowledged
        await guide.close()


if __name__ == "__main__":
    writer.LOG_AT_LEAST = 20_000  # so that snapshots are among what fails
    asyncio.run(main(Path(sys.argv[1])))
