"""What ends by itself, every so often: leases, answers, waits, old files. Also notices when nothing can be written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.errors import CrawlGuideError, StorageFull
from crawlguide.core.telemetry import ERROR, happened

if TYPE_CHECKING:
    from crawlguide.core.telemetry import Event
    from crawlguide.guide.local import LocalGuide


@dataclass
class Upkeep:
    guide: LocalGuide
    every_s: float
    trouble: str = ""  # with the data folder: as long as there is any, no ask and no report can be kept

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.every_s)
            await self.once()

    async def once(self) -> None:
        """Trouble with the disk is said when it begins and when it ends."""
        try:
            await self.guide.upkeep()
        except CrawlGuideError as problem:
            if problem.message != self.trouble:
                event: Event = "storage_full" if isinstance(problem, StorageFull) else "storage_failed"
                happened(event, "{problem}", ERROR, code=problem.code, problem=problem.message)
            self.trouble = problem.message
        else:
            if self.trouble:
                happened("storage_recovered", "the data folder can be written again")
            self.trouble = ""
