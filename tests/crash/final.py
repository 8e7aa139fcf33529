"""What is there at the end: as a running server tells it, and as the library finds it in the folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from crawlguide import AsyncGuide
from crawlguide.core.types import Crawl

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from crawlguide.core.protocols import Store
    from crawlguide.guide.local import LocalGuide

TENANT = "default"
SCANNED_AT_ONCE = 5_000


class Known(NamedTuple):
    """One URL of a crawl."""

    url: str
    state: str


@dataclass(frozen=True)
class Crawled:
    """One crawl; `urls` is None where nobody looked."""

    definition: dict[str, Any]
    numbers: dict[str, Any]
    urls: list[Known] | None = None

    @property
    def paused(self) -> bool:
        return bool(self.numbers["state"] == "paused")


Final = dict[str, Crawled]


async def of_server(http: httpx.AsyncClient) -> Final:
    """What a running server says of itself."""
    stats = (await http.get("/v1/stats")).raise_for_status().json()
    crawls = (await http.get("/v1/crawls")).raise_for_status().json()
    definitions = {crawl["crawl_id"]: crawl["definition"] for crawl in crawls["crawls"]}
    return {name: Crawled(definitions[name], numbers) for name, numbers in stats["crawls"].items()}


async def of_folder(folder: Path) -> Final:
    """What the library finds in the folder of a server that has ended."""
    async with AsyncGuide.open(folder) as guide:
        return await of_guide(guide)


async def of_guide(guide: AsyncGuide) -> Final:
    """No door shows every URL yet, so this looks at the store behind."""
    local = guide._guide
    stats = await guide.stats()
    return {name: await _crawled(local, name, numbers) for name, numbers in stats["crawls"].items()}


async def _crawled(local: LocalGuide, name: str, numbers: dict[str, Any]) -> Crawled:
    crawl = Crawl(TENANT, name)
    outline = await local.crawls.outline(crawl, local.clock.now())
    definition: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(outline.shown))
    return Crawled(definition, numbers, await _scanned(local.store, crawl))


async def _scanned(store: Store, crawl: Crawl) -> list[Known]:
    found: list[Known] = []
    cursor: str | None = None
    while True:
        records, cursor = await store.scan(crawl, None, None, SCANNED_AT_ONCE, cursor)
        found += [Known(record.url, record.state) for record in records]
        if cursor is None:
            return found
