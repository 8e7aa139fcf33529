"""What many tests need: a batch of candidates from a real store, and short ways to ask and tell."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.config import Config
from crawlguide.core.messages import VERSION
from crawlguide.core.tables import Fact, Table
from crawlguide.core.types import Ask, Batch, Budget, Crawl, Hosts, Seed
from crawlguide.guide.tell.intake import IntakeRules, seeded
from crawlguide.store import memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide import Guide
    from crawlguide.core.protocols import Store
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl

NOW = 1_700_000_000.0
CRAWL = Crawl("default", "default")
Columns = TypeVar("Columns", Batch, Hosts)


def batch(urls: Sequence[str], **columns: Any) -> Batch:
    """These URLs as a fresh memory store shows them, in this order, with some columns replaced.

    A column is named as `Batch` or `Hosts` names it; one of `Hosts` has a row for each host, in order of appearance.
    """
    found = asyncio.run(_looked_up(urls))
    for name, values in columns.items():
        if name in _names(Batch):
            found = _replaced(found, name, values)
        else:
            found = found.attach(hosts=_replaced(found.hosts, name, values))
    return found


def question(at: float = NOW, max_urls: int = 100, **more: Any) -> Ask:
    """An ask as a filter or the scoring sees it; `max_bytes` and `timeout_ms` belong to its budget."""
    limits = {name: more.pop(name) for name in ("max_bytes", "timeout_ms") if name in more}
    return replace(Ask(CRAWL, "c-1", at, Budget(max_urls, **limits)), **more)


def ask(guide: Guide, crawler_id: str = "c-1", max_urls: int = 10, **more: Any) -> dict[str, Any]:
    """Ask; `max_bytes` and `timeout_ms` go into the budget, what is not of the ask itself into its context."""
    budget = {"max_urls": max_urls}
    budget |= {name: more.pop(name) for name in ("max_bytes", "timeout_ms") if name in more}
    message = {"mcp_version": VERSION, "crawler_id": crawler_id, "budget": budget}
    message |= {name: more.pop(name) for name in ("request_id", "crawl_id", "request_timestamp") if name in more}
    return guide.ask(message | ({"context": more} if more else {}))


def asked(guide: Guide, crawler_id: str = "c-1", max_urls: int = 10, **more: Any) -> list[str]:
    """Only the URLs of the answer, best first."""
    return [given["url"] for given in ask(guide, crawler_id, max_urls, **more)["assigned_urls"]]


def tell(guide: Guide, *fetches: dict[str, Any], crawler_id: str = "c-1", **more: Any) -> dict[str, Any]:
    """Tell these fetches."""
    return guide.tell({"mcp_version": VERSION, "crawler_id": crawler_id, "fetches": list(fetches)} | more)


def fetched(url: str, *links: str, **more: Any) -> dict[str, Any]:
    """A fetch that went well and found these links, unless `more` says otherwise."""
    outlinks = [{"url": link} for link in links]
    return {"url": url, "outlinks": outlinks} | ({} if "error" in more else {"status": 200}) | more


def store_of(guide: Guide) -> Store:
    """The store behind a guide, for what no door shows yet."""
    return guide._guide._guide.store


def state_of(guide: Guide, url: str, crawl_id: str = "default") -> str:
    """queued, leased, done or dropped; "unknown" for a URL the crawl never heard of."""
    ids = np.array([addresses.identity(addresses.canonical(url))], np.uint64)
    found = guide._run(store_of(guide).find(Crawl("default", crawl_id), ids))[0]
    return found.state if found else "unknown"


async def _looked_up(urls: Sequence[str]) -> Batch:
    store = memory.build(Config().store)
    await store.crawl_put(CRAWL, b"", NOW)
    rules = IntakeRules(judge=lambda _: float("nan"), verdict=lambda _: None)
    await store.discover(CRAWL, seeded([Seed(url) for url in urls], rules), None, NOW)
    return await store.look(CRAWL, np.array([addresses.identity(url) for url in urls], np.uint64))


def _names(table: type[Table]) -> set[str]:
    facts = {name for name, value in vars(table).items() if isinstance(value, Fact)}
    return facts | {column.name for column in fields(table)}


def _replaced(table: Columns, name: str, values: Any) -> Columns:
    """The table with one column replaced, be it a column of its own or one of its block of numbers."""
    if isinstance(vars(type(table)).get(name), Fact):
        return table.attach(**{name: values})
    return table.attach(**{name: np.array(values, getattr(table, name).dtype)})


def running(guide: Guide, name: str = "default") -> ActiveCrawl:
    """A crawl as it runs, loaded if nobody has used it yet."""
    local = guide._guide._guide
    return guide._run(local.crawls.get(Crawl("default", name), local.clock.now(), create=False))
