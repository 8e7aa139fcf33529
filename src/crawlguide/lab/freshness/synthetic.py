"""Webs whose pages change at known rates: each kind shows one thing that real pages do.

`poisson` pages change by chance at a rate of their own. `bursty` ones are edited several times in a row, `daily` and
`weekly` ones change in working hours, and not at weekends; of `dead` webs a part goes for ever; in `drift` all rates of
half of the hosts are multiplied by three in the middle; in `mislabelled` a tenth of what crawlers see is wrong.
Pages of a host and of a section of it resemble each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.freshness.histories import DailyRates, Histories, from_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.core.tables import F64, I64

MEDIAN_RATE = 0.15  # changes a day
SPREAD_OF_SECTIONS = 0.9  # of the logarithm of the rate; together with that of pages 1.3
SPREAD_OF_PAGES = 0.94
HOST_PAGES = 100
SECTIONS = 5  # of a host
IMPORTANCE = 1.3  # shape of the Pareto distribution
EDITS = 4.0  # of a burst, after the first
BURST_DAYS = 1 / 48
WORK_BEGINS, WORK_ENDS = 8 / 24, 18 / 24
REST = 0.1  # of the rate of working time
DRIFT = 3.0
DEAD_SHARE = 0.3
MISLABELLED = 0.1


@dataclass(frozen=True)
class Pages:
    """A web before anything has happened in it."""

    urls: list[str]
    host: I64
    rate: F64
    importance: F64


def synthetic(kind: str, pages: int, days: int, seed: int) -> Histories:
    rng = np.random.default_rng([seed, 0])
    return BUILDERS[kind](kind, _pages(pages, rng), days, rng)


def _pages(count: int, rng: np.random.Generator) -> Pages:
    host = np.arange(count) // HOST_PAGES
    section = rng.integers(SECTIONS, size=count)
    of_section = rng.normal(0.0, SPREAD_OF_SECTIONS, (int(host[-1]) + 1, SECTIONS))
    rate = MEDIAN_RATE * np.exp(of_section[host, section] + rng.normal(0.0, SPREAD_OF_PAGES, count))
    urls = [
        f"https://site{one}.example/section{part}/page{number}.html"
        for number, (one, part) in enumerate(zip(host.tolist(), section.tolist(), strict=True))
    ]
    return Pages(urls, host, rate, 1.0 + rng.pareto(IMPORTANCE, count))


def _poisson(kind: str, pages: Pages, days: int, rng: np.random.Generator) -> Histories:
    page, at = _arrivals(pages.rate, 0.0, days, rng)
    return _histories(kind, pages, (page, at), days, _one(pages.rate))


def _mislabelled(kind: str, pages: Pages, days: int, rng: np.random.Generator) -> Histories:
    return replace(_poisson(kind, pages, days, rng), mislabelled=MISLABELLED)


def _bursty(kind: str, pages: Pages, days: int, rng: np.random.Generator) -> Histories:
    """A burst is over before anybody comes, so it counts as one change and the rate is that of bursts."""
    page, at = _arrivals(pages.rate, 0.0, days, rng)
    more = rng.poisson(EDITS, len(page))
    later = np.repeat(at, more) + rng.random(int(more.sum())) * BURST_DAYS
    every = np.concatenate([page, np.repeat(page, more)]), np.concatenate([at, later])
    return _histories(kind, pages, every, days, _one(pages.rate))


def _periodic(kind: str, pages: Pages, days: int, rng: np.random.Generator) -> Histories:
    """More arrivals than there will be, thinned by the hour at the host: working time, or rest."""
    shift = rng.random(int(pages.host[-1]) + 1)[pages.host]  # hosts stand in all parts of the world

    def works(at: F64, shift: F64) -> F64:
        local = at + shift
        hour, day = local % 1.0, np.floor(local) % 7
        at_work = (hour >= WORK_BEGINS) & (hour < WORK_ENDS)
        return np.where(at_work & ((day < 5) | (kind == "daily")), 1.0, REST)

    week = np.arange(0, 7, 1 / 96)
    height = 1.0 / works(week, np.zeros(len(week))).mean()  # so that the mean rate is the rate
    page, at = _arrivals(pages.rate * height, 0.0, days, rng)
    kept = rng.random(len(at)) < works(at, shift[page])
    return _histories(kind, pages, (page[kept], at[kept]), days, _one(pages.rate))


def _dead(kind: str, pages: Pages, days: int, rng: np.random.Generator) -> Histories:
    count = len(pages.rate)
    gone = np.where(rng.random(count) < DEAD_SHARE, rng.uniform(0.0, days, count), np.inf)
    page, at = _arrivals(pages.rate, 0.0, days, rng)
    lived = at < gone[page]
    goes = np.flatnonzero(gone < days)
    every = np.concatenate([page[lived], goes]), np.concatenate([at[lived], gone[goes]])
    return _histories(kind, pages, every, days, _one(pages.rate), gone)


def _drift(kind: str, pages: Pages, days: int, rng: np.random.Generator) -> Histories:
    middle = days // 2
    drifting = rng.permutation(int(pages.host[-1]) + 1)[pages.host] % 2 == 0
    after = np.where(drifting, DRIFT * pages.rate, pages.rate)
    halves = _arrivals(pages.rate, 0.0, middle, rng), _arrivals(after, middle, days, rng)
    page, at = (np.concatenate(columns) for columns in zip(*halves, strict=True))
    rates = DailyRates(np.array([0.0, middle]), np.stack([pages.rate, after]))
    return _histories(kind, pages, (page, at), days, rates)


BUILDERS: dict[str, Callable[[str, Pages, int, np.random.Generator], Histories]] = {
    "poisson": _poisson, "bursty": _bursty, "daily": _periodic, "weekly": _periodic, "dead": _dead, "drift": _drift,
    "mislabelled": _mislabelled,
}  # fmt: skip
KINDS = tuple(BUILDERS)


def _arrivals(rate: F64, since: float, until: float, rng: np.random.Generator) -> tuple[I64, F64]:
    count = rng.poisson(rate * (until - since))
    page = np.repeat(np.arange(len(rate)), count)
    return page, rng.uniform(since, until, len(page))


def _one(rate: F64) -> DailyRates:
    return DailyRates(np.zeros(1), rate[None, :])


def _histories(
    kind: str, pages: Pages, events: tuple[I64, F64], days: int, rates: DailyRates, gone: F64 | None = None
) -> Histories:
    count = len(pages.rate)
    stays = np.full(count, np.inf)
    page, at = events
    inside = at < days
    first, times = from_events(page[inside], at[inside], count)
    return Histories(
        name=kind, urls=pages.urls, importance=pages.importance, born=np.zeros(count),
        gone=stays if gone is None else gone, first=first, at=times, days=days, rates=rates,
    )  # fmt: skip
