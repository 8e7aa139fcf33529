"""Values to one score, one column per term:

    score = a·relevance + b·freshness + c·authority − d·cost + e·politeness + exploration + f·focus
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.crawls import Weights
    from crawlguide.core.types import F64, Ask, Batch, Hosts, Text

TERMS = ("relevance", "freshness", "authority", "cost", "politeness", "exploration", "focus")
REASONS = ("high_relevance", "recency", "authority", "low_cost", "polite_now", "exploration", "in_focus")


@dataclass(frozen=True)
class Scales:
    """Where each term begins to count: a week, a slow answer, a heavy page."""

    freshness_tau_s: float = 7 * 86_400.0
    slow_ms: float = 5_000.0
    heavy_bytes: float = 1_048_576.0


def terms(batch: Batch, ask: Ask, weights: Weights, scales: Scales) -> F64:
    """One row per candidate, one column per term, weighted: a row sums to the candidate's score."""
    columns = np.zeros((len(TERMS), len(batch)))
    columns[0] = weights.relevance * batch.value
    if weights.freshness:
        columns[1] = weights.freshness * freshness(ask.at - batch.fetched, scales.freshness_tau_s)
    if weights.authority:
        columns[2] = weights.authority * authority(batch, ask.external)
    if weights.cost:
        slowness, weight = batch.estimated_ms / scales.slow_ms, batch.estimated_bytes / scales.heavy_bytes
        columns[3] = -weights.cost * cost(slowness, weight)
    if weights.politeness:
        columns[4] = weights.politeness * politeness(batch.hosts.next_fetch - ask.at)[batch.host]
    if weights.focus and (ask.focus or ask.domain_hash):
        columns[6] = weights.focus * in_focus(batch.hosts, ask)[batch.host]
    return columns.T


def freshness(age_s: F64, tau_s: float) -> F64:
    """1 − exp(−Δt/τ): 0 for a page fetched just now, towards 1 as it ages, 1 if it was never fetched (NaN)."""
    return np.where(np.isnan(age_s), 1.0, -np.expm1(-age_s / tau_s))


def authority(batch: Batch, external: Mapping[int, Mapping[str, float]]) -> F64:
    """What the crawler was told from outside (pagerank, else popularity), else n / (n + 10) for n known parents."""
    own = batch.parents / (batch.parents + 10.0)
    if not external:
        return own
    told = (external.get(int(key), {}) for key in batch.id)
    outside = np.array([signals.get("pagerank", signals.get("popularity", np.nan)) for signals in told])
    return np.where(np.isnan(outside), own, outside)


def cost(slowness: F64, weight: F64) -> F64:
    """The mean of how slow and how heavy a fetch will be, each at most 1."""
    return (np.minimum(slowness, 1.0) + np.minimum(weight, 1.0)) / 2.0


def politeness(wait_s: F64) -> F64:
    """1 for a host that may be fetched now, less the longer it has to be left alone."""
    return 1.0 / (1.0 + np.maximum(wait_s, 0.0))


def in_focus(hosts: Hosts, ask: Ask) -> F64:
    """1 for the hosts the crawler says it is working on."""
    wanted = ask.domain_hash
    return np.array(
        [name in ask.focus or (wanted is not None and urls.domain_hash(urls.domain_of(name)) == wanted) for name in hosts.name],
        np.float64,
    )


def reasons(columns: F64) -> Text:
    """The two terms that contributed most to each row, the larger first."""
    best = np.argsort(-columns, axis=1, kind="stable")[:, :2]
    words = np.array(REASONS, object)[best]
    return words[:, 0] + "+" + words[:, 1]
