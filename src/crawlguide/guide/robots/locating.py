"""Where crawlers found hosts, for politeness that counts by address."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Store
    from crawlguide.core.types import Recorded, Report


async def located(store: Store, report: Report, recorded: Recorded, messages: Sequence[Fetch]) -> None:
    """Of fetches that were taken and led to no other host: the address says where that other one is."""
    told = report.fetches
    for item, host, target, skipped in zip(
        told.item.tolist(), told.host.tolist(), told.target_host.tolist(), recorded.skipped, strict=True
    ):
        address = messages[item].ip
        if address and skipped is None and host == target:
            await store.located(host, address)
