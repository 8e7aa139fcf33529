"""Many replays: every web, budget, policy and repeat, on all cores."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.freshness.value import periodic_optimum
from crawlguide.lab.freshness import measure, policies
from crawlguide.lab.freshness.recorded import recorded
from crawlguide.lab.freshness.replay import Known, replay
from crawlguide.lab.freshness.results import Run
from crawlguide.lab.freshness.synthetic import synthetic
from crawlguide.lab.jobs import cores, worked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crawlguide.core.tables import F64
    from crawlguide.lab.freshness.histories import Histories
    from crawlguide.lab.freshness.replay import Log

LEFT_OUT = 0.2  # of the pages of a recorded history, in all repeats but the first
KNOWN_OPTIMUM = ("poisson", "bursty", "mislabelled", "drift")  # elsewhere rates alone do not say what is best


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """What is replayed: a kind of made-up web, or the web of that name in a file."""

    name: str
    file: str | None
    pages: int
    days: int


class Job(msgspec.Struct, frozen=True, kw_only=True):
    web: Web
    policy: str
    share: float
    repeat: int
    seed: int


def jobs(webs: Sequence[Web], names: Sequence[str], shares: Sequence[float], repeats: int, seed: int) -> list[Job]:
    """Runs on one web come one after the other, as a process keeps the last web it opened."""
    return [
        Job(web=web, policy=policy, share=share, repeat=repeat, seed=seed + repeat)
        for web in webs
        for repeat in range(repeats)
        for share in shares
        for policy in names
        if policy != policies.ORACLE or web.file is None
    ]


def webs_of(file: Path, days: int) -> list[Web]:
    """The webs that a file holds."""
    where = str(file.resolve())
    return [Web(name=one.name, file=where, pages=len(one), days=days) for one in _recorded(where, days)]


def completed(todo: Sequence[Job], workers: int | None = None) -> Iterator[Run]:
    """The runs as they are finished."""
    for _, run in worked(do, todo, min(workers or cores(), len(todo))):
        yield run


def do(job: Job) -> Run:
    began = time.perf_counter()
    histories = _opened(job.web, job.repeat, job.seed)
    known = Known(histories.urls, histories.importance, job.share, job.seed)
    log = replay(histories, policies.build(job.policy, known, histories), job.share, job.seed)
    found = measure.measured(histories, log)
    expected, optimum = (None, None) if job.policy == policies.FORESIGHT else _optimum(histories, log, job.share)
    return Run(
        web=job.web.name, share=job.share, policy=job.policy, repeat=job.repeat,
        reference=job.policy in policies.REFERENCES, pages=len(histories), days=histories.days,
        weight=_rounded(found.weight), freshness=_rounded(found.freshness), age=_rounded(found.age),
        requests=found.requests.astype(int).tolist(), for_nothing=found.for_nothing.astype(int).tolist(),
        expected=expected, optimum=optimum, seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip


def _optimum(histories: Histories, log: Log, share: float) -> tuple[list[float] | None, list[float] | None]:
    """Expected and best possible freshness of each day, where rates say all there is to know."""
    rates = histories.rates
    if rates is None or histories.name not in KNOWN_OPTIMUM:
        return None, None
    best = [periodic_optimum(one, histories.importance, share * len(histories)).freshness for one in rates.rates]
    sets = np.searchsorted(rates.since, np.arange(histories.days), "right") - 1
    return _rounded(measure.expected(histories, rates, log)), _rounded(np.array(best)[sets])


@lru_cache(maxsize=1)
def _opened(web: Web, repeat: int, seed: int) -> Histories:
    """Every repeat has another web: a made-up one is made anew, of a recorded one some pages are left out."""
    if web.file is None:
        return synthetic(web.name, web.pages, web.days, seed)
    whole = next(one for one in _recorded(web.file, web.days) if one.name == web.name)
    if not repeat:
        return whole
    rng = np.random.default_rng([seed, 4])
    return whole.take(np.flatnonzero(rng.random(len(whole)) >= LEFT_OUT))


@lru_cache(maxsize=1)
def _recorded(file: str, days: int) -> list[Histories]:
    return recorded(Path(file), days)


def _rounded(values: F64) -> list[float]:
    rounded: list[float] = np.round(values, 6).tolist()
    return rounded
