"""The crawl value, its inverse, and the best schedule with known rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlguide.freshness import freshness_at, gaps_at_price, periodic_optimum, values

RATE = st.floats(0.01, 100)


def value(rate: float, gap: float, weight: float = 1.0) -> float:
    return float(values(np.array([rate]), np.array([weight]), np.array([gap]))[0])


def gap_at(rate: float, price: float) -> float:
    return float(gaps_at_price(np.array([rate]), np.ones(1), price)[0])


def test_a_page_fetched_just_now_is_worth_nothing() -> None:
    assert value(0.3, 0.0) == 0.0


@given(RATE, st.floats(1e-3, 1_000), st.floats(1.01, 10))
def test_value_rises_with_the_gap_to_the_mean_time_between_changes(rate: float, gap: float, longer: float) -> None:
    assert value(rate, gap) <= value(rate, gap * longer) <= 1 / rate * (1 + 1e-9)


@given(RATE, st.floats(0.01, 0.95))
def test_a_page_is_due_when_it_is_worth_the_price(rate: float, share: float) -> None:
    price = share / rate
    assert value(rate, gap_at(rate, price)) == pytest.approx(price, rel=1e-6)


def test_a_page_that_changes_too_often_is_never_worth_the_price() -> None:
    assert gap_at(10.0, 0.2) == np.inf


def test_value_is_the_gain_of_one_more_fetch_a_day() -> None:
    rate, fetches, step = 0.4, 0.5, 1e-6
    out = freshness_at(np.full(2, rate), 1 / np.array([fetches, fetches + step]))
    assert (out[1] - out[0]) / step == pytest.approx(value(rate, 1 / fetches), rel=1e-4)


def test_the_optimum_uses_the_budget_and_beats_equal_gaps() -> None:
    rng = np.random.default_rng(3)
    rate, weight = 0.2 * np.exp(rng.standard_normal(500)), rng.pareto(1.5, 500) + 1
    best, equal = periodic_optimum(rate, weight, 100.0), freshness_at(rate, np.full(500, 5.0))
    assert np.sum(1 / best.gap) == pytest.approx(100.0, rel=1e-3)
    assert best.freshness > equal @ weight / weight.sum() + 0.05
