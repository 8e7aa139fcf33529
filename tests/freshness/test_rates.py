"""What is learned of change rates from one bit a look."""

from __future__ import annotations

from math import lgamma, log
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.core.notebook import Notebook
from crawlguide.freshness import Rates
from crawlguide.freshness.posterior import believed, expected_value
from crawlguide.freshness.rates import DAY_S, FIXED, PAGE

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

START = 1e9
LOG_RATES = np.linspace(-60, 8, 400_000)
RATES = np.exp(LOG_RATES)


def density(shape: float, exposure: float) -> F64:
    """Of a Gamma, by the logarithm of the rate."""
    return np.exp(shape * (LOG_RATES + log(exposure)) - exposure * RATES - lgamma(shape))


def mean(what: F64, weight: F64) -> float:
    return float(np.sum(what * weight) / np.sum(weight))


def one_page(*looks: tuple[float, bool]) -> Rates:
    """A page that was looked at after so many days each time."""
    rates, at = Rates(), START
    rates.fit(1)
    row = np.zeros(1, np.int64)
    rates.begin(row, np.full(1, at), rates.grouped([()]))
    for days, changed in looks:
        at += days * DAY_S
        rates.observe(row, np.full(1, at), np.array([changed]))
    return rates


def per_day(rates: Rates) -> float:
    return float(rates.per_day(np.zeros(1, np.int64))[0])


def test_a_page_costs_32_bytes() -> None:
    assert PAGE.itemsize == 32


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize(("shape", "exposure", "gap"), [(1.0, 4.0, 1.0), (0.5, 2.0, 30.0), (5.0, 20.0, 0.1)])
def test_a_belief_keeps_the_exact_mean_of_what_was_seen(
    shape: float, exposure: float, gap: float, changed: bool
) -> None:
    alarm, miss = 0.1, 0.05
    same = np.exp(-RATES * gap)
    looks_changed = alarm * same + (1 - miss) * (1 - same)
    exact = density(shape, exposure) * (looks_changed if changed else 1 - looks_changed)
    after, exposed, mean_log = believed(shape, exposure, gap, changed, alarm, miss)
    assert after / exposed == pytest.approx(mean(RATES, exact), rel=0.01)
    assert mean_log == pytest.approx(mean(LOG_RATES, exact), rel=1e-3)


@pytest.mark.parametrize(("shape", "exposure", "gap"), [(1.0, 4.0, 1.0), (0.5, 2.0, 300.0), (5.0, 20.0, 0.1)])
def test_the_expected_value_is_the_mean_over_the_belief(shape: float, exposure: float, gap: float) -> None:
    value = (-np.expm1(-RATES * gap) - RATES * gap * np.exp(-RATES * gap)) / RATES
    assert expected_value(shape, exposure, gap) == pytest.approx(mean(value, density(shape, exposure)), rel=1e-3)


def test_changes_raise_the_rate_and_their_absence_lowers_it() -> None:
    assert per_day(one_page((1, False))) < per_day(one_page()) < per_day(one_page((1, True)))


def test_many_looks_find_the_rate() -> None:
    rng = np.random.default_rng(5)
    looks = [(1.0, bool(changed)) for changed in rng.random(400) < -np.expm1(-0.3)]
    assert per_day(one_page(*looks)) == pytest.approx(0.3, rel=0.2)


def test_a_page_never_seen_before_gains_by_its_neighbours() -> None:
    rates, rng = Rates(), np.random.default_rng(1)
    rates.fit(201)
    rows = np.arange(200)
    group = rates.grouped([(7, 70 + row % 2) for row in range(201)])
    rates.begin(np.arange(201), np.full(201, START), group)
    for day in range(1, 15):
        changed = rng.random(200) < np.where(rows % 2, 0.6, 0.01)
        rates.observe(rows, np.full(200, START + day * DAY_S), changed)
    calm, lively = rates.per_day(np.array([200, 199]))
    assert rates.per_day(np.array([200]))[0] < 0.1
    assert lively > 0.5
    assert calm < 0.1


def test_a_page_does_not_believe_itself_twice() -> None:
    """Its own vote is left out of its prior: being alone in groups of its own teaches nothing more."""
    alone, grouped = one_page(*[(1, True)] * 6), Rates()
    grouped.fit(1)
    row, at = np.zeros(1, np.int64), START
    grouped.begin(row, np.full(1, at), grouped.grouped([(3, 4, 5)]))
    for _ in range(6):
        at += DAY_S
        grouped.observe(row, np.full(1, at), np.array([True]))
    level = grouped.groups.rows["level"]
    levels = np.exp(level[0] + level[FIXED : FIXED + 3].sum() - alone.groups.rows["level"][0])
    assert per_day(grouped) / levels == pytest.approx(per_day(alone), rel=0.05)


def test_due_is_when_the_value_reaches_the_price() -> None:
    rates, row = one_page((2, True), (3, False), (1, True)), np.zeros(1, np.int64)
    due = rates.due(row, np.full(1, 2.0), np.full(1, 1.5))
    assert rates.values(row, due, np.full(1, 2.0))[0] == pytest.approx(1.5, rel=1e-4)


def test_a_page_of_no_weight_is_never_due() -> None:
    assert one_page((1, True)).due(np.zeros(1, np.int64), np.zeros(1), np.ones(1))[0] == np.inf


def test_what_was_learned_goes_on_in_a_notebook() -> None:
    notebook, row = Notebook(), np.zeros(1, np.int64)
    before = Rates()
    before.remember(notebook)
    before.fit(1)
    before.begin(row, np.full(1, START), before.grouped([(9, 8)]))
    before.observe(row, np.full(1, START + DAY_S), np.array([True]))
    after = Rates()
    after.remember(notebook)
    assert after.per_day(row) == before.per_day(row)
    assert after.grouped([(9, 8)]) == before.grouped([(9, 8)])


def test_forgotten_pages_leave_their_groups() -> None:
    rates = one_page((1, True))
    rates.forget(np.zeros(1, np.int64))
    assert rates.groups.rows["pages"][0] == 0
    assert abs(rates.groups.rows["votes"][0]) < 1e-9


def test_too_many_groups_share_the_ones_above() -> None:
    rates = Rates()
    rates.grouped([(1_000_000,), *((2, 3 + number) for number in range((1 << 16) + 10))])
    assert rates.groups.used == 1 << 16
    assert rates.grouped([(2, 99_999_999)])[0] == rates.grouped([(2,)])[0]
