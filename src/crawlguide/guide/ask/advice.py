"""From the end of the pipeline to the answer a crawler reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
from msgspec import UNSET, Raw, UnsetType

from crawlguide import scoring
from crawlguide.core.clock import iso
from crawlguide.core.messages import Advice, AdviceMetadata, Assigned, Deferred, Terms
from crawlguide.policy.min_p import MinP
from crawlguide.policy.robots.cache import is_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.protocols import Degrades
    from crawlguide.core.types import Ask
    from crawlguide.guide.ask.pipeline import Walked
    from crawlguide.guide.crawl.active_crawl import ActiveCrawl

MOST_DEFERRED = 100
Degraded = tuple[str | None, str | UnsetType]


@dataclass(frozen=True)
class AnswerParts:
    """What an ask is given, and the state the crawl is in."""

    deferred: list[Deferred] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    urls: list[Assigned] = field(default_factory=list)
    state: str = "running"
    retry_after_ms: int = 0
    degraded: Degraded = (None, UNSET)  # which part stood in for another, and why
    exhausted_why: str | UnsetType = UNSET


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
        _conditions(active, walked),
        strict=True,
    )
    until = iso(expires)
    return [
        Assigned(
            url, "robots" if files and is_file(url) else "page", score, p, reason, ms, size, wait, until,
            Terms(*terms), Raw(own) if own else UNSET, tag or UNSET, since or UNSET,
        )
        for url, score, p, reason, ms, size, wait, terms, own, (tag, since) in columns
    ]  # fmt: skip


def _conditions(active: ActiveCrawl, walked: Walked) -> Sequence[tuple[str, str]]:
    """What pages that are fetched again are to be asked for with."""
    none = [("", "")] * len(walked.batch)
    if active.refresher is None or np.isnan(walked.batch.fetched).all():
        return none
    return active.refresher.conditions(walked.batch.id)


def deferred(walked: Walked, ask: Ask) -> list[Deferred]:
    """The best of what politeness or an unknown robots.txt holds back, with the time for which each has to wait."""
    most = min(ask.budget.max_urls, MOST_DEFERRED)
    return [Deferred(url, max(1, int(np.ceil(wait * 1_000))), why) for url, wait, why in walked.deferred[:most]]


def degraded(active: ActiveCrawl, ask: Ask, walked: Walked) -> Degraded:
    """Which parts stood in for others in this answer: a predictor is passed over, or a filter lacks what it needs."""
    predictors = active.strategy.guarded.degraded()
    rules = [cast("Degrades", filter_) for filter_ in active.filters if hasattr(filter_, "degraded")]
    words = (predictors[0] if predictors else None, *(filter_.degraded(walked.batch, ask) for filter_ in rules))
    return "+".join(filter(None, words)) or None, predictors[1] if predictors else UNSET


def held_below(active: ActiveCrawl, parts: AnswerParts) -> str | None:
    """Why nothing was given, where it is for `policy.min_p` alone; None: something else has a part in it."""
    bound = active.filter(MinP)
    refusing = {rule.name for rule in active.filters if rule.name in parts.dropped and rule.refusal != "forbid"}
    if bound is None or parts.deferred or refusing != {bound.name}:
        return None
    return f"none of the best {parts.dropped[bound.name]} URLs that wait reaches policy.min_p, which is {bound.min_p:g}"


def advice(active: ActiveCrawl, ask: Ask, parts: AnswerParts, queries: int) -> Advice:
    """The whole answer."""
    about = AdviceMetadata(
        request_id=ask.request_id,
        crawl_state=parts.state,
        num_queries_completed=queries,
        last_model_version=active.strategy.guarded.version,
        strategy=active.strategy.kind,
        filters_applied=active.filters_applied,
        dropped=parts.dropped,
        degraded=parts.degraded[0],
        degraded_why=parts.degraded[1],
        exhausted_why=parts.exhausted_why,
    )
    return Advice(parts.urls, parts.deferred, parts.retry_after_ms, about)
