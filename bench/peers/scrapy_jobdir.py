"""Scrapy's scheduler with a disk queue (JOBDIR), driven without an engine.

    .venv-peers/scrapy/bin/python -m bench.peers.scrapy_jobdir COUNT HOSTS

The plain priority queue, not the default one: DownloaderAwarePriorityQueue keeps an open file per host and looks at
all hosts on every pop, which with thousands of hosts costs more than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.trial import Peer, main
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.utils.test import get_crawler

LACKS = (
    "no fsync, and the queue can be read again only after a clean stop: a crash loses what waits and what was taken, "
    "though the dedup file may still call it seen; no leases, no politeness in this queue"
)


@dataclass(frozen=True)
class JobDir:
    scheduler: Any

    async def add(self, batch: Sequence[str]) -> None:
        for url in batch:
            self.scheduler.enqueue_request(Request(url))

    async def next(self, most: int) -> list[str]:
        taken: list[str] = []
        while len(taken) < most and (request := self.scheduler.next_request()) is not None:
            taken.append(request.url)
        return taken

    async def close(self) -> None:
        self.scheduler.close("finished")


async def opened(folder: Path) -> JobDir:
    settings = {"JOBDIR": str(folder), "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
    crawler: Any = get_crawler(settings_dict=settings)
    crawler.spider = Spider.from_crawler(crawler, name="peer")
    scheduler: Any = Scheduler.from_crawler(crawler)
    scheduler.open(crawler.spider)
    return JobDir(scheduler)


if __name__ == "__main__":
    main(Peer("scrapy_jobdir", "scrapy", LACKS, opened))
