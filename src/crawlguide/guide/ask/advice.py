"""From the end of the corridor to the answer a crawler reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET, Raw, UnsetType

from crawlguide import scoring
from crawlguide.core.clock import iso
from crawlguide.core.messages import Advice, AdviceMetadata, Assigned, Deferred, Terms
from crawlguide.policy.robots.cache import is_file

if TYPE_CHECKING:
    from crawlguide.core.types import Ask
    from crawlguide.guide.ask.pipeline import Walked
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl

MOST_DEFERRED = 100
Degraded = tuple[str | None, str | UnsetType]


@dataclass(frozen=True)
class AnswerParts:
    """What an ask is given, and the state the crawl is in."""

    urls: list[Assigned] = field(default_factory=list)
    deferred: list[Deferred] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    state: str = "running"
    retry_after_ms: int = 0
    degraded: Degraded = (None, UNSET)  # which part stood in for another, and why


def assigned(active: ActiveCrawl, walked: Walked, expires: float) -> list[Assigned]:
    """One entry for each granted URL, in the order of the batch: best first. Waits count from when it was promised."""
    batch, files = walked.batch, active.definition.policy.robots == "crawler"
    columns = zip(
        batch.url.tolist(),
        batch.score.tolist(),
        np.minimum(np.maximum(batch.value, 0.0), 1.0).tolist(),
        scoring.reasons(walked.terms).tolist(),
        batch.estimated_ms.astype(np.int64).tolist(),
        batch.estimated_bytes.astype(np.int64).tolist(),
        np.rint(np.maximum(walked.start - walked.at, 0.0) * 1_000).astype(np.int64).tolist(),
        np.round(walked.terms, 6).tolist(),
        walked.metadata,
        strict=True,
    )
    until = iso(expires)
    return [
        Assigned(
            url, "robots" if files and is_file(url) else "page", score, p, reason, ms, size, wait, until,
            Terms(*terms), Raw(own) if own else UNSET,
        )
        for url, score, p, reason, ms, size, wait, terms, own in columns
    ]  # fmt: skip


def deferred(walked: Walked, ask: Ask) -> list[Deferred]:
    """The best of what politeness or an unknown robots.txt holds back, with the time for which each has to wait."""
    most = min(ask.budget.max_urls, MOST_DEFERRED)
    return [Deferred(url, max(1, int(np.ceil(wait * 1_000))), why) for url, wait, why in walked.deferred[:most]]


def degraded(active: ActiveCrawl, ask: Ask, walked: Walked) -> Degraded:
    """Which parts stood in for others in this answer.

    An old robots.txt spoke for some of the URLs that are given out, or none did and the crawler has to look; the
    operator's rules do not hold as they lie on disk: older ones do, or none work; a predictor is passed over.
    """
    judging = active.strategy.whole.degraded()
    robots = None
    if active.robots is not None and len(walked.batch):
        robots = active.robots.degraded(walked.batch, ask)
    rules = active.operator.engine if active.operator is not None else None
    words = (judging[0] if judging else None, robots, rules.trouble if rules is not None else None)
    return "+".join(filter(None, words)) or None, judging[1] if judging else UNSET


def advice(active: ActiveCrawl, ask: Ask, given: AnswerParts, queries: int) -> Advice:
    """The whole answer."""
    about = AdviceMetadata(
        request_id=ask.request_id,
        crawl_state=given.state,
        num_queries_completed=queries,
        last_model_version=active.strategy.whole.version,
        strategy=active.kind,
        filters_applied=active.filters_applied,
        dropped=given.dropped,
        degraded=given.degraded[0],
        degraded_why=given.degraded[1],
    )
    return Advice(given.urls, given.deferred, given.retry_after_ms, about)
