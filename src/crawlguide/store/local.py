"""The store of one process: columns in memory, texts and other bytes in keyspaces.

Whether the keyspaces are in memory, and whether anything lasts, is up to the kinds built on it: `memory`, `embedded`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.telemetry import SILENT
from crawlguide.store.moves.discover import Discovering
from crawlguide.store.moves.forget import Forgetting
from crawlguide.store.moves.gather import Gathering
from crawlguide.store.moves.lease import Leasing
from crawlguide.store.moves.queues import Queueing
from crawlguide.store.moves.rank import Ranking
from crawlguide.store.moves.record import Recording
from crawlguide.store.moves.transfer import Transferring
from crawlguide.store.moves.withhold import Withholding
from crawlguide.store.views import Views

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from crawlguide.core.telemetry import Telemetry


class LocalStore(
    Discovering, Gathering, Leasing, Recording, Ranking, Withholding, Forgetting, Transferring, Queueing, Views
):
    """All crawls in this process. Only `commit` and long purges suspend, so every other call is atomic."""

    opened_s = 0.0
    telemetry: Telemetry = SILENT

    @property
    def folder(self) -> Path | None:
        return None

    def listen(self, telemetry: Telemetry) -> None:
        self.telemetry = telemetry

    async def figures(self) -> Mapping[str, float]:
        tables = [table for one in self.frontiers() for table in (one.table, one.index.ids, one.hosts.rows)]
        learned = sum(data.notebook.nbytes for data in self.crawls.values())
        return {"columns_bytes": float(sum(table.nbytes for table in tables) + learned)}

    async def close(self) -> None:
        self.crawls.clear()
