"""Pages that changed lately change sooner again, where pages do so; where they change by chance it means nothing."""

from __future__ import annotations

import numpy as np
import pytest

from crawlguide.freshness import Rates
from crawlguide.freshness.rates import AGES, DAY_S, EDITED, FIXED, NEW

PAGES, DAYS = 400, 120
START = 1e9
EVERY = np.arange(PAGES)


def looked_at_daily(per_day: float, again: float) -> Rates:
    """Pages begin to change so many times a day; the day after a change they change with the chance `again`."""
    rng, rates = np.random.default_rng(1), Rates()
    rates.fit(PAGES)
    rates.begin(EVERY, np.full(PAGES, START), rates.grouped([(2, 3)] * PAGES))
    changed = np.zeros(PAGES, bool)
    for day in range(1, DAYS):
        changed = rng.random(PAGES) < np.where(changed & (again > 0), again, 1.0 - np.exp(-per_day))
        rates.observe(EVERY, np.full(PAGES, START + day * DAY_S), changed)
    return rates


def chance_of_next_day(rates: Rates, rested: bool) -> float:
    """Of pages that were seen to change with their last look, or more than a month before it."""
    since = rates.pages.rows["seen"].astype(float) - rates.pages.rows["since"]
    rows = np.flatnonzero((since > 30 * DAY_S) if rested else ((since == 0) & (rates.pages.rows["way"] == EDITED)))
    return float(rates.chance_changed(rows, np.full(len(rows), START + DAYS * DAY_S)).mean())


def test_where_pages_change_in_bursts_one_that_just_changed_is_likelier_to_have_changed_again() -> None:
    rates = looked_at_daily(0.02, 0.5)
    assert chance_of_next_day(rates, rested=False) == pytest.approx(0.5, abs=0.1)
    assert chance_of_next_day(rates, rested=True) == pytest.approx(0.02, abs=0.01)


def test_where_pages_change_by_chance_ages_say_nothing() -> None:
    rates = looked_at_daily(0.05, 0.0)
    assert chance_of_next_day(rates, rested=False) == pytest.approx(0.05, abs=0.015)
    assert chance_of_next_day(rates, rested=True) == pytest.approx(0.05, abs=0.015)


def test_due_and_the_chance_that_is_reached_go_through_all_ages() -> None:
    """What they name is the instant at which the value, or the chance, is what was asked for."""
    rates = looked_at_daily(0.02, 0.5)
    due = rates.due(EVERY, np.ones(PAGES), np.full(PAGES, 0.2))
    assert rates.values(EVERY, due, np.ones(PAGES)) == pytest.approx(0.2, rel=1e-3)
    reached = rates.due_at_chance(EVERY, 0.4)
    assert rates.chance_changed(EVERY, reached) == pytest.approx(0.4, rel=1e-3)


def test_pages_that_come_to_a_known_site_are_new_and_others_are_not() -> None:
    rates = Rates()
    rates.fit(4)
    known, other = rates.grouped([(2, 3), (4, 5)])
    for row, (group, day) in enumerate([(known, 0), (known, 1), (known, 30), (other, 30)]):
        rates.begin(np.array([row]), np.array([START + day * DAY_S]), np.array([group]))
    assert (rates.pages.rows["way"][:4] == NEW).tolist() == [False, False, True, False]


def test_ages_belong_to_no_chain_and_are_kept() -> None:
    rates = looked_at_daily(0.02, 0.5)
    assert rates.grouped([(1,), (2,), (AGES,)]).tolist() == [0, FIXED, FIXED + 2]
    assert np.abs(rates.groups.rows["level"][1:FIXED]).max() > 0.3
