"""How a strategy comes by what was learned before: from its crawl's notebook, or first from another crawl's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.notebook import Remembers, Transfers
from crawlguide.core.protocols import Rests
from crawlguide.core.telemetry import happened
from crawlguide.guide.crawl.composition import WARM_START, warm_start

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.protocols import Store
    from crawlguide.core.types import Crawl
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl

AT_REST = "at rest: "


async def remember(store: Store, crawl: Crawl, active: ActiveCrawl) -> None:
    """Before a strategy judges anything: whatever of it learns goes on from what lies in the notebook."""
    await store.hold_due(crawl, active.refresher is not None)
    parts = _parts(active)
    if not parts:
        return
    notebook = await store.notebook(crawl)
    await _begin_warm(store, crawl, active, notebook)
    for part in parts:
        part.remember(notebook)


async def newcomers(store: Store, crawl: Crawl, new: ActiveCrawl, old: ActiveCrawl) -> None:
    """The same for filters that a crawl did not have before it was defined anew: others go on as they are."""
    await store.hold_due(crawl, new.refresher is not None)
    known = {rule.name: type(rule) for rule in old.learning_filters}
    fresh: list[Remembers] = [
        rule for rule in new.learning_filters if known.get(rule.name) is not type(rule) and isinstance(rule, Remembers)
    ]
    if new.refresher is not None and old.refresher is None:
        fresh.append(new.refresher)
    if fresh:
        notebook = await store.notebook(crawl)
        for rule in fresh:
            rule.remember(notebook)


async def put_to_rest(store: Store, crawl: Crawl, active: ActiveCrawl) -> None:
    """Nobody uses the crawl for now: what its filters know besides their notebook is left with the store."""
    for rule in active.learning_filters:
        if isinstance(rule, Rests):
            await _leave(store, crawl, rule.name, rule.at_rest())
    (await store.notebook(crawl)).pack()


async def wake(store: Store, crawl: Crawl, active: ActiveCrawl) -> None:
    """Filters go on with what they left when their crawl was put to rest; it is theirs again, and grows old there."""
    for rule in active.learning_filters:
        left = await store.state_get(crawl, AT_REST + rule.name) if isinstance(rule, Rests) else None
        if left is not None and left[0] and isinstance(rule, Rests):
            rule.awake(left[0])
            await _leave(store, crawl, rule.name, b"")


async def _leave(store: Store, crawl: Crawl, name: str, known: bytes) -> None:
    before = await store.state_get(crawl, AT_REST + name)
    await store.state_put(crawl, AT_REST + name, known, 1 if before is None else before[1] + 1)


async def check(store: Store, crawl: Crawl, new: ActiveCrawl, old: ActiveCrawl | None) -> None:
    """Whether a crawl can begin with what the one that it names has learned.

    A name that was there before is left alone: that crawl may be gone by now, and was only needed at the beginning.
    """
    name = warm_start(new.definition)
    if name is None or (old is not None and warm_start(old.definition) == name):
        return
    if not _transferable(new):
        raise MalformedRequest(
            f"{WARM_START}: strategy {new.strategy.kind!r} learns nothing for other crawls", field=WARM_START
        )
    if name == crawl.name or await store.crawl_get(crawl._replace(name=name)) is None:
        raise MalformedRequest(f"{WARM_START}: expected another crawl, none is named {name[:80]!r}", field=WARM_START)


async def _begin_warm(store: Store, crawl: Crawl, active: ActiveCrawl, notebook: Notebook) -> None:
    """A crawl that has learned nothing yet begins with what another one knows, if it still exists."""
    name, sheets = warm_start(active.definition), _transferable(active)
    other = crawl._replace(name=name) if name else crawl
    if other == crawl or not sheets or await store.crawl_get(other) is None:
        return
    if notebook.take_over(await store.notebook(other), sheets):
        words = "crawl {crawl} begins with what {source} has learned"
        happened("warm_start", words, **crawl.logged, source=other.name)


def _parts(active: ActiveCrawl) -> list[Remembers]:
    """The strategy with all that is in it; some filters learn too."""
    learners = (
        active.strategy.guarded,
        active.judge,
        active.rewards,
        active.sitemap_facts,
        active.regathers,
        active.refresher,
        *active.learning_filters,
    )
    parts = {id(part): part for part in learners}
    return [part for part in parts.values() if isinstance(part, Remembers)]


def _transferable(active: ActiveCrawl) -> list[str]:
    return [name for part in _parts(active) if isinstance(part, Transfers) for name in part.transferable]
