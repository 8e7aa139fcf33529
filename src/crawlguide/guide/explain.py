"""Why a URL stands where it stands: its state and history, its features and terms, every filter's verdict, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crawlguide import scoring
from crawlguide.core import urls as addresses
from crawlguide.core.clock import iso
from crawlguide.core.errors import NotFound
from crawlguide.core.messages import Explanation, FilterVerdict, LeaseHeld, LinkSeen
from crawlguide.core.tables import Fact
from crawlguide.core.turns import let_others
from crawlguide.core.types import Ask, Budget, Hosts
from crawlguide.core.types import Batch as BatchTable

if TYPE_CHECKING:
    from crawlguide.core.protocols import Defers, Filter
    from crawlguide.core.tables import Table
    from crawlguide.core.types import Batch, Crawl, UrlRecord
    from crawlguide.guide.ask.pipeline import Look
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl
    from crawlguide.guide.local import LocalGuide

ASKER = "explain"
LINKS_SHOWN = 5


async def explain(guide: LocalGuide, crawl: Crawl, url: str) -> Explanation:
    """Everything there is to say about a known URL; `NotFound` with the likely reason for an unknown one."""
    active = await guide.crawls.get(crawl, guide.clock.now(), create=False)
    canonical = addresses.canonical(url)
    ids = np.array([addresses.identity(canonical)], np.uint64)
    record = (await guide.store.find(crawl, ids))[0]
    if record is None:
        raise _unknown(active, url, canonical)
    look = await guide.pipeline.look(active, Ask(crawl, ASKER, guide.clock.now(), Budget(1)), ids)
    batch, terms = look.batch, look.terms
    filters = [_verdict(look, verdict.filter_, bool(verdict.keep[0])) for verdict in look.verdicts]
    links = await _links(guide, crawl, ids)
    rules = active.manual_factors.why(canonical, addresses.queue(canonical))
    known = [*_change_words(active, batch, guide.clock.now()), *active.strategy.guarded.explain(batch)]
    return Explanation(
        url=url,
        canonical=canonical,
        state=record.state,
        reason=record.reason,
        score=float(batch.score[0]),
        p=float(np.clip(batch.value[0], 0.0, 1.0)),
        terms=dict(zip(scoring.TERMS, np.round(terms[0], 6).tolist(), strict=True)),
        features=features(batch) | _sitemap_facts(active, batch) | _changes(active, batch, guide.clock.now()),
        rank=await _rank(guide, crawl, record),
        history=_history(batch, record),
        links=links,
        filters=filters,
        lease=_lease(record),
        rules=rules,
        words=_words(batch, record, filters, [*_linked(batch, links), *known, *rules]),
        needs=_needs(active, record, filters),
    )


def _verdict(look: Look, rule: Filter, kept: bool) -> FilterVerdict:
    """What a filter makes of the first row, and why."""
    word = "keep" if kept else rule.refusal
    if word == "either":
        word = "forbid" if np.isnan(cast("Defers", rule).wait(look.batch, look.ask)[0]) else "defer"
    return FilterVerdict(rule.name, word, rule.why(look.batch, look.ask))


def features(batch: Batch) -> dict[str, float | None]:
    """All numbers that judges see of the first row, and of its host."""
    return _facts(batch, BatchTable) | {f"host_{name}": value for name, value in _facts(batch.hosts, Hosts).items()}


def _sitemap_facts(active: ActiveCrawl, batch: Batch) -> dict[str, float | None]:
    """What sitemaps say of the first row, if they name it."""
    stated = active.sitemap_facts.of(batch.id)
    if stated is None or not stated.priority[0]:
        return {}
    when = float(stated.modified[0])
    return {
        "sitemap_priority": float(stated.priority[0]),
        "sitemap_modified": when if np.isfinite(when) else None,
    }


def _changes(active: ActiveCrawl, batch: Batch, at: float) -> dict[str, float | None]:
    """What is known of how often the first row changes."""
    return {} if active.refresher is None else active.refresher.facts(int(batch.id[0]), at)


def _change_words(active: ActiveCrawl, batch: Batch, at: float) -> list[str]:
    return [] if active.refresher is None else active.refresher.words(int(batch.id[0]), at)


def _facts(table: Table, kind: type[Table]) -> dict[str, float | None]:
    columns = {name: float(getattr(table, name)[0]) for name, fact in vars(kind).items() if isinstance(fact, Fact)}
    return {name: value if np.isfinite(value) else None for name, value in columns.items()}


async def _rank(guide: LocalGuide, crawl: Crawl, record: UrlRecord) -> int | None:
    """How many waiting URLs stand before this one, counted in pieces so that others are served meanwhile."""
    if record.state != "queued":
        return None
    before, cursor = 0, 0
    while True:
        more, end = await guide.store.count_above(crawl, record.priority, cursor)
        before += more
        if end is None:
            return before + 1
        cursor = end
        await let_others()


async def _links(guide: LocalGuide, crawl: Crawl, ids: Any) -> list[LinkSeen]:
    """Some of the pages that lead here, newest first."""
    paths = await guide.store.parents(crawl, ids)
    pages = await guide.store.find(crawl, paths.parent[:LINKS_SHOWN])
    return [
        LinkSeen(page.url, anchor)
        for page, anchor in zip(pages, paths.anchor[:LINKS_SHOWN].tolist(), strict=True)
        if page is not None
    ]


def _history(batch: Batch, record: UrlRecord) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"at": iso(float(batch.discovered[0])), "event": "discovered"}]
    if record.fetched is not None:
        events.append({"at": iso(record.fetched), "event": "fetched", "status": record.status})
    if record.lease_expires is not None:
        events.append({"at": iso(record.lease_expires), "event": "lease ends", "crawler_id": record.crawler_id})
    return events


def _lease(record: UrlRecord) -> LeaseHeld | None:
    if record.crawler_id is None or record.lease_expires is None:
        return None
    return LeaseHeld(record.crawler_id, iso(record.lease_expires))


def _linked(batch: Batch, links: list[LinkSeen]) -> list[str]:
    parents, mean = int(batch.parents[0]), batch.parent_sum[0] / max(batch.parents[0], 1)
    if not links:
        return ["no page that is still known links here" if parents > 1 else "it is a seed, or was never linked"]
    known = "one page links here" if parents == 1 else f"{parents} pages link here"
    return [f"{known}, mean relevance {mean:.2f}, the newest is {links[0].url}"]


def _words(batch: Batch, record: UrlRecord, filters: list[FilterVerdict], known: list[str]) -> str:
    words = [f"It is {record.state}" + (f" ({record.reason})" if record.reason else ""), *known]
    words.append(f"its score is {batch.score[0]:.3f}")
    words += [f"{verdict.name}: {verdict.why}" for verdict in filters if verdict.verdict != "keep"]
    return "; ".join(words) + "."


def _needs(active: ActiveCrawl, record: UrlRecord, filters: list[FilterVerdict]) -> list[str]:
    """What would have to change for it to be given out."""
    if record.state == "leased":
        return [f"{record.crawler_id} tells or releases it, or its lease ends"]
    if record.state == "done":
        wanted = active.definition.policy.fetches_again
        return ["its time to be fetched again comes" if wanted else "policy.recrawl is set: it was fetched already"]
    if record.state == "dropped" and record.reason == "banned":
        return [f"it is unbanned: {verdict.why}" for verdict in filters if verdict.name == record.reason]
    if record.state == "dropped":
        return [f"what {record.reason} refuses is permitted in the crawl's definition"]
    needs = [f"{verdict.name}: {verdict.why}" for verdict in filters if verdict.verdict != "keep"]
    if active.record.paused:
        needs.append("the crawl is resumed")
    return needs or ["a crawler asks while nothing better is waiting"]


def _unknown(active: ActiveCrawl, url: str, canonical: str) -> NotFound:
    """Never discovered, or not in the form it was given, or out of scope, or forgotten."""
    host = addresses.queue(canonical)
    why = "no page that was told links to it and it is no seed, or it was forgotten since"
    if active.intake.bans and (rule := active.intake.bans(canonical, host)):
        why = f"{rule}, so it would be dropped as soon as it were found"
    elif reason := active.intake.verdict(host):
        why = f"{host} is refused by {reason}, so it would be dropped as soon as it were found"
    form = "" if canonical == url else f" (its canonical form is {canonical})"
    return NotFound(f"url: {url[:200]}{form} is not known: {why}", field="url")
