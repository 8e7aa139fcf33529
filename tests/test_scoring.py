"""Values to one score: each formula by a sentence, and the worked scores of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlguide import scoring
from crawlguide.core import urls
from crawlguide.core.definition import Weights
from crawlguide.scoring import REASONS, TERMS, Scales
from tests.support import NOW, batch, question

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Ask, Batch

SCALES = Scales()
ONLY = dict.fromkeys(("relevance", "freshness", "authority", "cost", "politeness", "focus"), 0.0)
A, B = "https://a.org/", "https://b.org/"


def ready(candidates: Batch) -> Batch:
    """What the pipeline has done before scoring: estimates are numbers."""
    zeros = np.zeros(len(candidates))
    return candidates.attach(
        estimated_ms=np.where(np.isnan(candidates.estimated_ms), zeros, candidates.estimated_ms),
        estimated_bytes=np.where(np.isnan(candidates.estimated_bytes), zeros, candidates.estimated_bytes),
    )


def term(name: str, candidates: Batch, ask: Ask | None = None, weight: float = 1.0) -> list[float]:
    """One term of every candidate, with all other weights at zero."""
    columns, _ = scoring.terms(ready(candidates), ask or question(), Weights(**ONLY | {name: weight}), SCALES)
    column: list[float] = columns[:, TERMS.index(name)].tolist()
    return column


def fresh(age_s: float) -> float:
    return term("freshness", batch([A], fetched=NOW - age_s))[0]


def cost(ms: float, size: float) -> float:
    return term("cost", batch([A], estimated_ms=[ms], estimated_bytes=[size]))[0]


def test_relevance_is_the_value_of_the_predictor() -> None:
    assert term("relevance", batch([A, B], value=[0.25, 0.75])) == [0.25, 0.75]


def test_a_weight_multiplies_its_term() -> None:
    assert term("relevance", batch([A], value=[0.25]), weight=3.0) == [0.75]


def test_a_page_fetched_just_now_is_not_fresh() -> None:
    assert fresh(0.0) == 0.0


def test_a_page_never_fetched_is_wholly_fresh() -> None:
    assert term("freshness", batch([A])) == [1.0]


def test_freshness_after_tau_is_one_minus_one_over_e() -> None:
    assert fresh(SCALES.freshness_tau_s) == pytest.approx(1 - 1 / np.e)


def test_freshness_rises_with_the_time_since_the_last_fetch() -> None:
    assert fresh(60.0) < fresh(3_600.0) < fresh(86_400.0) < fresh(30 * 86_400.0) < 1.0


def test_authority_is_what_the_crawler_was_told_from_outside() -> None:
    ask = question(external={urls.identity(A): {"pagerank": 0.4, "popularity": 0.9}})
    assert term("authority", batch([A], parents=100), ask) == [0.4]


def test_authority_is_popularity_where_no_pagerank_is_told() -> None:
    ask = question(external={urls.identity(A): {"popularity": 0.9}})
    assert term("authority", batch([A]), ask) == [0.9]


def test_authority_told_of_one_url_says_nothing_of_another() -> None:
    ask = question(external={urls.identity(A): {"pagerank": 0.4}})
    assert term("authority", batch([A, B], parents=[0, 0]), ask) == [0.4, 0.0]


def test_authority_of_a_page_nobody_links_to_is_zero() -> None:
    assert term("authority", batch([A], parents=0)) == [0.0]


def test_authority_is_half_for_ten_parents_and_never_one() -> None:
    assert term("authority", batch([A, B], parents=[10, 1_000_000])) == pytest.approx([0.5, 1.0], abs=1e-4)
    assert term("authority", batch([A], parents=1_000_000))[0] < 1.0


def test_a_slow_and_heavy_page_costs_all_of_the_weight() -> None:
    assert cost(SCALES.slow_ms, SCALES.heavy_bytes) == -1.0


def test_cost_never_exceeds_its_weight() -> None:
    assert cost(1e9, 1e12) == -1.0


def test_a_slow_and_light_page_costs_half() -> None:
    assert cost(SCALES.slow_ms, 0.0) == -0.5


def test_a_quick_and_heavy_page_costs_half() -> None:
    assert cost(0.0, SCALES.heavy_bytes) == -0.5


def test_a_page_that_takes_nothing_costs_nothing() -> None:
    assert cost(0.0, 0.0) == 0.0


def test_a_host_that_may_be_fetched_now_is_wholly_polite() -> None:
    assert term("politeness", batch([A], next_fetch=[NOW - 50.0])) == [1.0]


def test_a_host_never_fetched_is_wholly_polite() -> None:
    assert term("politeness", batch([A])) == [1.0]


def test_politeness_falls_with_the_wait() -> None:
    assert term("politeness", batch([A, B], next_fetch=[NOW + 1.0, NOW + 3.0])) == [0.5, 0.25]


def test_a_seed_of_the_ask_puts_its_host_in_focus() -> None:
    assert term("focus", batch([A, B]), question(focus=frozenset({"b.org"}))) == [0.0, 1.0]


def test_a_domain_hash_puts_all_hosts_of_the_domain_in_focus() -> None:
    candidates = batch([A, "https://www.b.org/", B])
    assert term("focus", candidates, question(domain_hash=urls.domain_hash("b.org"))) == [0.0, 1.0, 1.0]


def test_nothing_is_in_focus_when_the_ask_names_nothing() -> None:
    assert term("focus", batch([A, B])) == [0.0, 0.0]


def test_rows_of_one_host_share_its_politeness() -> None:
    candidates = batch([A, B, A + "x"], next_fetch=[NOW, NOW + 1.0])
    assert term("politeness", candidates) == [1.0, 0.5, 1.0]


def worked() -> F64:
    """The two URLs of the walkthrough: a large old page, and a page of high authority that was fetched just now."""
    candidates = batch(
        [A, B],
        value=[0.9, 0.8],
        fetched=[np.nan, NOW],
        estimated_ms=[SCALES.slow_ms, SCALES.slow_ms],
        estimated_bytes=[SCALES.heavy_bytes, 0.0],
    )
    told = {urls.identity(A): {"pagerank": 0.3}, urls.identity(B): {"pagerank": 0.7}}
    weights = Weights(relevance=1.0, freshness=0.5, authority=1.0, cost=0.2, politeness=0.0, focus=0.0)
    return scoring.terms(candidates, question(external=told), weights, SCALES)[0]


def test_the_first_url_of_the_walkthrough_scores_one_and_a_half() -> None:
    assert worked()[0].tolist() == pytest.approx([0.9, 0.5, 0.3, -0.2, 0.0, 0.0, 0.0])
    assert worked()[0].sum() == pytest.approx(1.5)


def test_the_second_url_of_the_walkthrough_scores_one_point_four() -> None:
    assert worked()[1].tolist() == pytest.approx([0.8, 0.0, 0.7, -0.1, 0.0, 0.0, 0.0])
    assert worked()[1].sum() == pytest.approx(1.4)


def test_the_kernel_alone_gives_the_worked_scores_too() -> None:
    terms, score = np.empty((2, len(TERMS))), np.empty(2)
    scoring.weigh(  # type: ignore[no-untyped-call]
        np.array([0.9, 0.8]), np.array([np.nan, NOW]), np.zeros(2), np.array([0.3, 0.7]),
        np.array([5_000.0, 5_000.0]), np.array([1_048_576.0, 0.0]), np.array([0, 0]), np.array([NOW]), np.zeros(1),
        np.zeros(2), np.array([1.0, 0.5, 1.0, 0.2, 0.0, 0.0]), np.array(SCALES), NOW, terms, score,
    )  # fmt: skip
    assert score.tolist() == terms.sum(axis=1).tolist() == pytest.approx([1.5, 1.4])


def test_every_term_has_a_word_for_the_reason() -> None:
    assert len(REASONS) == len(TERMS)
    assert len(set(REASONS)) == len(REASONS)


def test_reasons_name_the_two_largest_terms_the_larger_first() -> None:
    assert scoring.reasons(worked()).tolist() == ["high_relevance+recency", "high_relevance+authority"]


def test_of_equal_terms_the_reason_names_the_earlier() -> None:
    assert scoring.reasons(np.zeros((1, len(TERMS)))).tolist() == ["high_relevance+recency"]


def test_a_term_that_counts_against_a_page_is_no_reason_while_others_count_for_it() -> None:
    terms = np.array([[0.1, 0.0, 0.0, -0.9, 0.2, 0.0, 0.0]])
    assert scoring.reasons(terms).tolist() == ["polite_now+high_relevance"]


def test_no_candidates_have_no_terms() -> None:
    assert scoring.terms(ready(batch([])), question(), Weights(), SCALES)[0].shape == (0, len(TERMS))


def test_no_candidates_have_no_reasons() -> None:
    assert scoring.reasons(np.empty((0, len(TERMS)))).tolist() == []


PAIR = batch([A, B])
WEIGHT = st.floats(-100, 100)


@settings(deadline=None, max_examples=50)
@given(st.builds(Weights, WEIGHT, WEIGHT, WEIGHT, WEIGHT, WEIGHT, WEIGHT), st.floats(0, 1), st.floats(0, 1e7))
def test_terms_stay_finite_and_within_their_weights(weights: Weights, value: float, wait: float) -> None:
    hosts = PAIR.hosts.attach(next_fetch=np.full(2, NOW + wait))
    candidates = ready(PAIR).attach(value=np.array([value, 1.0]), hosts=hosts)
    columns, _ = scoring.terms(candidates, question(focus=frozenset({"a.org"})), weights, SCALES)
    w = weights
    bounds = [w.relevance, w.freshness, w.authority, w.cost, w.politeness, 0.0, w.focus]
    assert np.isfinite(columns).all()
    assert (np.abs(columns) <= np.abs(bounds) + 1e-12).all()
