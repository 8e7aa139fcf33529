"""A simulated year's beginning: how near to the best possible schedule learned rates come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.freshness import Rates, periodic_optimum, values

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, Mask

DAY_S, START, STEPS = 86_400.0, 1e9, 40
PAGES, PER_DAY = 2_000, 400.0


class World:
    """Pages of eighty templates on twenty hosts that change independently, with heavy-tailed weights."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.template = self.rng.integers(0, 80, PAGES)
        of_template = 1.2 * self.rng.standard_normal(80)
        self.rate = 0.15 * np.exp(of_template[self.template] + 0.4 * self.rng.standard_normal(PAGES))
        self.weight = self.rng.pareto(1.5, PAGES) + 1
        self.last = np.full(PAGES, START)
        self.changes = START + DAY_S * self.rng.exponential(1 / self.rate)

    def drift(self, factor: float, now: float) -> None:
        self.rate *= factor
        self.changes = np.maximum(self.changes, now)
        later = self.changes > now
        self.changes[later] = now + DAY_S * self.rng.exponential(1 / self.rate[later])

    def fetch(self, rows: I64, now: float, mislabelled: float) -> Mask:
        changed = self.changes[rows] <= now
        fresh = rows[changed]
        self.changes[fresh] = now + DAY_S * self.rng.exponential(1 / self.rate[fresh])
        self.last[rows] = now
        return changed ^ (self.rng.random(len(rows)) < mislabelled)

    def freshness(self, now: float) -> float:
        """Expected, not drawn: the noise of single changes would hide what is measured."""
        current = np.exp(-self.rate * (now - self.last) / DAY_S)
        return float(current @ self.weight / self.weight.sum())

    def best(self) -> float:
        return periodic_optimum(self.rate, self.weight, PER_DAY).freshness


def crawl(
    world: World, days: int, known: bool = False, mislabelled: float = 0.0, drift: tuple[int, float] = (-1, 1.0)
) -> F64:
    """Greedy crawl of what is worth most; freshness of each day as a share of the best possible one."""
    rates, rows = Rates(), np.arange(PAGES)
    rates.fit(PAGES)
    chains = [(1, 100 + template // 4, 1_000 + template) for template in world.template.tolist()]
    rates.begin(rows, world.last, rates.grouped(chains))
    shares, best = np.zeros(days), world.best()
    most = int(PER_DAY / STEPS)
    for step in range(days * STEPS):
        now = START + (step + 1) * DAY_S / STEPS
        if step == drift[0] * STEPS:
            world.drift(drift[1], now)
            best = world.best()
        if known:
            value = values(world.rate, world.weight, (now - world.last) / DAY_S)
        else:
            value = rates.values(rows, np.full(PAGES, now), world.weight)
        chosen = np.argpartition(-value, most)[:most]
        before = world.freshness(now)
        changed = world.fetch(chosen, now, mislabelled)
        if not known:
            rates.observe(chosen, np.full(most, now), changed)
        shares[step // STEPS] += (before + world.freshness(now)) / 2 / STEPS / best
    return shares


@pytest.mark.parametrize("seed", [1, 2])
def test_known_rates_reach_the_optimum_from_the_first_day(seed: int) -> None:
    assert crawl(World(seed), 20, known=True).mean() >= 0.99


@pytest.mark.parametrize("seed", [1, 2])
def test_thirty_days_of_learning_come_near_the_optimum(seed: int) -> None:
    assert crawl(World(seed), 50)[30:].mean() >= 0.99


@pytest.mark.parametrize("seed", [1, 2])
def test_ten_days_after_all_rates_tripled_it_is_near_the_new_optimum(seed: int) -> None:
    assert crawl(World(seed), 51, drift=(40, 3.0))[50] >= 0.97


@pytest.mark.parametrize("seed", [1, 2])
def test_one_look_in_ten_may_lie(seed: int) -> None:
    assert crawl(World(seed), 50, mislabelled=0.1)[30:].mean() >= 0.97
