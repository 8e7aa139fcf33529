"""Values to one score, one column per term:

score = a·relevance + b·freshness + c·authority − d·cost + e·politeness + exploration + f·focus
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core import urls
from crawlguide.core.kernels import f64s, i64s, kernel, matrix, nothing, one_f64, part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Weights
    from crawlguide.core.tables import F64, Mask, Text
    from crawlguide.core.types import Ask, Batch, Hosts
    from crawlguide.features.sitemap_facts import SitemapFact

TERMS = ("relevance", "freshness", "authority", "cost", "politeness", "exploration", "focus")
COST = TERMS.index("cost")
SLOW_COST = 0.2  # as much as the slowest and heaviest page costs by the usual weights
CERTAIN = 1.0 - 1e-9
REASONS = ("high_relevance", "recency", "authority", "low_cost", "polite_now", "exploration", "in_focus")


class Scales(NamedTuple):
    """Where each term begins to count: a week, a slow answer, a heavy page, a handful of parents."""

    freshness_tau_s: float = 7 * 86_400.0
    slow_ms: float = 5_000.0
    heavy_bytes: float = 1_048_576.0
    parents: float = 10.0


@part
def freshness(age_s, tau_s):  # type: ignore[no-untyped-def]
    """1 − exp(−Δt/τ): 0 for a page fetched just now, towards 1 as it ages, 1 if it was never fetched (NaN)."""
    return 1.0 if np.isnan(age_s) else -np.expm1(-age_s / tau_s)


@part
def authority(external, parents, half):  # type: ignore[no-untyped-def]
    """What the crawler was told from outside, else n / (n + half) for n pages known to link here."""
    return parents / (parents + half) if np.isnan(external) else external


@part
def cost(slowness, weight):  # type: ignore[no-untyped-def]
    """The mean of how slow and how heavy a fetch will be, each at most 1."""
    return (min(slowness, 1.0) + min(weight, 1.0)) / 2.0


@part
def politeness(wait_s):  # type: ignore[no-untyped-def]
    """1 for a host that may be fetched now, less the longer it has to be left alone."""
    return 1.0 / (1.0 + max(wait_s, 0.0))


@kernel(
    nothing(
        f64s, f64s, f64s, f64s, f64s, f64s, i64s, f64s, f64s, f64s, f64s, f64s, one_f64,
        matrix, f64s,
    )
)  # fmt: skip
def weigh(value, fetched, parents, stated, ms, size, host, next_fetch, focus, bonus, weights, scales, at, terms, score):  # type: ignore[no-untyped-def]
    """One row per candidate, one column per term; a row sums to the candidate's score."""
    tau_s, slow_ms, heavy_bytes, half = scales
    for row in range(len(value)):
        terms[row, 0] = weights[0] * value[row]
        terms[row, 1] = weights[1] * freshness(at - fetched[row], tau_s)
        terms[row, 2] = weights[2] * authority(stated[row], parents[row], half)
        terms[row, 3] = -weights[3] * cost(ms[row] / slow_ms, size[row] / heavy_bytes)
        terms[row, 4] = weights[4] * politeness(next_fetch[host[row]] - at)
        terms[row, 5] = weights[0] * bonus[row]
        terms[row, 6] = weights[5] * focus[host[row]]
        score[row] = terms[row].sum()


def terms(
    batch: Batch,
    ask: Ask,
    weights: Weights,
    scales: Scales,
    exploration: F64 | None = None,
    sitemap: SitemapFact | None = None,
    slow: Mask | None = None,
    chance: F64 | None = None,
) -> tuple[F64, F64]:
    """The weighted terms of every candidate, and their sums: the scores.

    `slow` hosts cost `SLOW_COST`, where `policy.slow_domain_ms` is set and cost has no weight of its own.

    What a `sitemap` says counts as pages that link there, by its priority; and what was changed since its fetch is as
    fresh as if it had never been fetched. Where the `chance` is known that a page has changed since (else NaN), it
    takes the place of 1 − exp(−Δt/τ).
    """
    hosts, columns, score = batch.hosts, np.empty((len(batch), len(TERMS))), np.empty(len(batch))
    fetched, parents = batch.fetched, batch.parents
    if chance is not None:
        fetched = np.where(
            np.isnan(chance), fetched, ask.at + scales.freshness_tau_s * np.log1p(-np.minimum(chance, CERTAIN))
        )
    if sitemap is not None:
        fetched = np.where((sitemap.modified > fetched) & (sitemap.modified <= ask.at), np.nan, fetched)
        parents = parents + scales.parents * sitemap.priority
    weigh(
        batch.value, fetched, parents, _external_authority(batch, ask.external),
        batch.estimated_ms, batch.estimated_bytes, batch.host, hosts.next_fetch, in_focus(hosts, ask),
        np.zeros(len(batch)) if exploration is None else exploration, _numbers(weights), np.array(scales), ask.at,
        columns, score,
    )  # fmt: skip
    if slow is not None:
        extra = SLOW_COST * slow[batch.host]
        columns[:, COST] -= extra
        score -= extra
    return columns, score


def in_focus(hosts: Hosts, ask: Ask) -> F64:
    """1 for the hosts the crawler says it is working on."""
    focus = np.zeros(len(hosts.name))
    if not ask.focus and ask.domain_hash is None:
        return focus
    for row, name in enumerate(hosts.name):
        focus[row] = name in ask.focus or urls.domain_hash(urls.domain_of(name)) == ask.domain_hash
    return focus


def reasons(columns: F64) -> Text:
    """The two terms that contributed most to each row, the larger first."""
    pairs = np.empty(len(columns), np.int64)
    best_two(columns, pairs)
    return _PAIRS.take(pairs)


@kernel(nothing(matrix, i64s))
def best_two(terms, pairs):  # type: ignore[no-untyped-def]
    """The numbers of the two largest terms of each row as one: first · terms + second. Of equals the earlier counts."""
    for row in range(len(terms)):
        first, second = (0, 1) if terms[row, 0] >= terms[row, 1] else (1, 0)
        for term in range(2, terms.shape[1]):
            if terms[row, term] > terms[row, first]:
                first, second = term, first
            elif terms[row, term] > terms[row, second]:
                second = term
        pairs[row] = first * terms.shape[1] + second


def _external_authority(batch: Batch, external: Mapping[int, Mapping[str, float]]) -> F64:
    """The authority that came with the ask (pagerank, else popularity), NaN where none did."""
    known: F64 = np.full(len(batch), np.nan)
    if external:
        for row, key in enumerate(batch.id.tolist()):
            signals = external.get(key, {})
            known[row] = signals.get("pagerank", signals.get("popularity", np.nan))
        known = np.clip(known, 0.0, 1.0)
    return known


def _numbers(weights: Weights) -> F64:
    w = weights
    return np.array((w.relevance, w.freshness, w.authority, w.cost, w.politeness, w.focus))


_PAIRS = np.array([f"{first}+{second}" for first in REASONS for second in REASONS], object)
