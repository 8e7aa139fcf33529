"""Open a guide over a data folder or over memory, where store, clock and guide are put together; say what was found."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlguide.core.clock import SystemClock
from crawlguide.core.definition import Definition
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.messages import DEFAULT_TENANT
from crawlguide.core.telemetry import happened
from crawlguide.guide.crawl import composition
from crawlguide.guide.local import LocalGuide

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.clock import Clock
    from crawlguide.core.config import Config
    from crawlguide.core.types import Crawl

MEMORY = ":memory:"


def open_guide(path: str | Path, config: Config, clock: Clock | None = None, seed: int = 0) -> LocalGuide:
    """A guide over the store that lives at `path`."""
    try:
        composition.load(config)
        composition.filters(config.guide.filters, Definition())  # what cannot work is said before anything is opened
        composition.check_default(config)
    except MalformedRequest as wrong:
        raise ConfigError(wrong.message) from None
    if str(path) == MEMORY:
        memory = import_module("crawlguide.store.memory").build(config.store)
        return LocalGuide(memory, config, clock or SystemClock(), seed)
    store = import_module("crawlguide.store.embedded").build(config.store, Path(path))
    return LocalGuide(store, config, clock or SystemClock(store.latest), seed)


async def counts(guide: LocalGuide) -> dict[Crawl, Mapping[str, Any]]:
    """The numbers of each crawl of every tenant as they lie there: nothing expires by looking."""
    store = guide.store
    crawls = [crawl for tenant in await store.tenants() for crawl in await store.crawl_list(tenant)]
    return {crawl: await store.stats(crawl) for crawl in crawls}


def title(crawl: Crawl) -> str:
    """What an operator reads of a crawl: most have one tenant only."""
    return crawl.name if crawl.tenant == DEFAULT_TENANT else f"{crawl.name} of tenant {crawl.tenant}"


def url_count(numbers: Mapping[str, Any]) -> int:
    """How many URLs a crawl knows."""
    return int(numbers["queued"] + numbers["leased"] + numbers["done"] + sum(numbers["dropped"].values()))


async def greet(guide: LocalGuide, took_s: float) -> None:
    """Say what was found on opening to whoever watches a server start."""
    folder = guide.store.folder
    if folder is None:
        happened("opened", "data: in memory alone; all is forgotten at the end", data=":memory:")
        return
    found = await counts(guide)
    known: dict[str, int] = {"crawls": len(found), "urls": sum(url_count(numbers) for numbers in found.values())}
    sentence = "data: {data} opened in {opened_s} s: crawls {crawls}, URLs {urls}"
    old = getattr(guide.store, "migrated_from", None)
    if old is not None:
        sentence += f"; it was of format {old} and has been brought up to date"
    happened("opened", sentence, data=str(folder), opened_s=round(took_s, 1), **known)
