"""One predictor behind a guard: it may raise, give nonsense or take its time, and an answer goes out all the same."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.errors import StorageFull, StoreUnavailable
from crawlguide.core.events import WARNING, happened
from crawlguide.core.learned import Accounts
from crawlguide.core.notebook import Remembers, Section, Transfers
from crawlguide.core.protocols import Explains, Explores, Learner
from crawlguide.core.types import Also, Lesson
from crawlguide.predictors.composed.apart import Apart, Late
from crawlguide.predictors.composed.breaker import Breaker
from crawlguide.predictors.composed.opinion import Opinion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.protocols import Sampler, Strategy
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Sample

USUAL = 200  # rows for which a budget is meant; more may take longer, in proportion
MOST_SAID = 300  # characters of what was raised
THE_STORE = (StoreUnavailable, StorageFull)


@dataclass(frozen=True)
class Terms:
    """How a predictor is called and guarded."""

    name: str  # its kind, and a number if there are several
    crawl: str
    now: Callable[[], float]
    budget_ms: float
    strict: bool = False  # the budget is its own: an answer waits no longer, and lessons count too
    section: str = ""  # of the notebook


class Part:
    def __init__(self, strategy: Strategy, terms: Terms) -> None:
        predictor = strategy.predictor
        self.terms, self.name, self.predictor, self.sampler = terms, terms.name, predictor, strategy.sampler
        self.learner = predictor if isinstance(predictor, Learner) else None
        self.explorer = predictor if isinstance(predictor, Explores) else None
        self.breaker, self._lessons = Breaker(terms.now), Breaker(terms.now)
        # what one that learns knows must not change under it, so it is never left behind
        self._apart = Apart(predictor.predict) if terms.strict and self.learner is None else None
        self._now, self._budget_s = terms.now, terms.budget_ms / 1_000

    @property
    def version(self) -> str:
        return str(getattr(self.predictor, "version", self.name))

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self,)

    def speakers(self) -> list[Part]:
        return [self] if self.breaker.why is None else []

    def troubles(self) -> list[str]:
        return [] if self.breaker.why is None else [f"{self.name} {self.breaker.why}"]

    def unlearned(self) -> list[str]:
        """Why it has not learned from the last lesson."""
        return [] if self._lessons.why is None else [f"{self.name} {self._lessons.why} in a lesson"]

    # judging

    def judge(self, batch: Batch) -> Opinion | None:
        if not self.breaker.lets():
            return None
        value = self._numbers(self.predictor.predict if self._apart is None else self._waited, batch)
        if value is None:
            return None
        if self.breaker.worked():
            happened("predictor_recovered", "crawl {crawl}: {predictor} works again", **self._named())
        return Opinion(value, None if self.explorer is None else self._numbers(self.explorer.explore, batch))

    rest = judge

    def drawn(self, batch: Batch) -> F64 | None:
        return None if self.explorer is None else self._numbers(self.explorer.drawn, batch)

    def also(self, ask: Ask, wanted: int) -> Also | None:
        return None if self.explorer is None else self._called(0, _wanted, self.explorer, ask, wanted)

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample | None:
        found: Sample | None = self._called(len(batch), _sampled, self.sampler, batch, ask, limit)
        return found

    def _waited(self, batch: Batch) -> Any:
        return self._apart.within(self._allowed_s(len(batch)), batch) if self._apart is not None else None

    def _numbers(self, call: Callable[[Batch], F64], batch: Batch) -> F64 | None:
        """A finite number for each row, or None."""
        found: F64 | None = self._called(len(batch), _column, call, batch)
        if found is None:
            return None
        if found.shape != (len(batch),):
            self._failed(f"gave an array of shape {found.shape} for {len(batch)} URLs")
            return None
        if not isfinite(found.dot(found)):  # one that is not makes the sum such
            self._failed("gave numbers that are not finite")
            return None
        return found

    def _called(self, rows: int, call: Callable[..., Any], *given: Any) -> Any:
        """What a call gives; None if it raises, or comes too late."""
        began = self._now()
        try:
            found = call(*given)
        except THE_STORE:
            raise  # that is not the predictor's fault, and there is no answer without it
        except Late:
            self._slow(self._allowed_s(rows), rows)
            return None
        except Exception as raised:  # noqa: BLE001 - it may be anybody's code, and an answer has to go out
            self._failed(f"raised {type(raised).__name__}", str(raised))
            return None
        took_s = self._now() - began
        if took_s > self._budget_s and took_s > self._allowed_s(rows):
            self._slow(took_s, rows)
            return None
        return found

    def _allowed_s(self, rows: int) -> float:
        return self._budget_s * max(rows / USUAL, 1.0)

    def _slow(self, took_s: float, rows: int) -> None:
        allowed = self._allowed_s(rows) * 1_000
        self._failed(f"took {took_s * 1_000:.0f} ms where {allowed:.0f} are allowed")

    def _failed(self, why: str, more: str = "", rest_s: float | None = None) -> None:
        if self.breaker.failed(why, rest_s):
            said = "crawl {crawl}: {predictor} {why}, and is passed over until it works again"
            happened("predictor_failed", said, WARNING, **self._named(), why=why, problem=more[:MOST_SAID] or None)

    def _named(self) -> dict[str, str | float | None]:
        return {"crawl": self.terms.crawl, "predictor": self.name}

    # learning

    def given(self, batch: Batch) -> None:
        if self.learner is not None:
            self._taught(len(batch), self.learner.given, batch)

    def learn(self, lesson: Lesson) -> U64 | None:
        if self.learner is None:
            return None
        rows = len(lesson.fetches) + len(lesson.links)
        found: U64 | None = self._taught(rows, self._learned, lesson)
        return found

    def _learned(self, lesson: Lesson) -> U64 | None:
        found = self.learner.learn(lesson) if self.learner is not None else None
        return None if found is None else np.asarray(found, np.uint64)

    def _taught(self, rows: int, call: Callable[..., Any], given: Any) -> Any:
        """One that raises hears the next lesson all the same; one that takes longer than its own budget rests."""
        if not self._lessons.lets():
            return None
        began = self._now()
        try:
            found = call(given)
        except THE_STORE:
            raise
        except Exception as raised:  # noqa: BLE001 - what was told is kept whoever learns from it
            self._unlearned(f"raised {type(raised).__name__}", str(raised), rest_s=0.0)
            return None
        took_s = self._now() - began
        if self.terms.strict and took_s > self._allowed_s(rows):
            self._unlearned(f"took {took_s * 1_000:.0f} ms")
        elif isinstance(given, Lesson) and self._lessons.worked():
            happened("predictor_recovered", "crawl {crawl}: {predictor} learns again", **self._named())
        return found

    def _unlearned(self, why: str, more: str = "", rest_s: float | None = None) -> None:
        if self._lessons.failed(why, rest_s):
            said = "crawl {crawl}: {predictor} {why} in a lesson"
            happened("predictor_failed", said, WARNING, **self._named(), why=why, problem=more[:MOST_SAID] or None)

    # remembering and telling

    @property
    def transferable(self) -> tuple[str, ...]:
        found = self.predictor.transferable if isinstance(self.predictor, Transfers) else ()
        return tuple(Section.named(self.terms.section, name) for name in found)

    def remember(self, notebook: Notebook) -> None:
        """One that cannot go on from what it has learned is out until its crawl is opened anew."""
        mine = Section(notebook, self.terms.section) if self.terms.section else notebook
        try:
            for keeper in {id(one): one for one in (self.predictor, self.sampler)}.values():
                if isinstance(keeper, Remembers):
                    keeper.remember(mine)
        except THE_STORE:
            raise
        except Exception as raised:  # noqa: BLE001 - its crawl goes on without it
            self._failed(f"raised {type(raised).__name__} when it should remember", str(raised), inf)
            self._lessons.failed("is out", inf)

    def because(self, batch: Batch) -> list[str]:
        if not isinstance(self.predictor, Explains) or self.breaker.why is not None:
            return []
        try:
            return [str(words) for words in self.predictor.because(batch)]
        except Exception as raised:  # noqa: BLE001 - who cannot explain may still be right
            return [f"{self.name} raised {type(raised).__name__} when asked why"]

    def stats(self) -> Mapping[str, float]:
        try:
            return dict(self.predictor.stats()) if isinstance(self.predictor, Accounts) else {}
        except Exception:  # noqa: BLE001 - the numbers of the crawl are shown without its own
            return {}


# What came is looked at within the call: nonsense raises there.


def _column(call: Callable[[Batch], Any], batch: Batch) -> F64:
    return np.asarray(call(batch), np.float64, order="C")


def _wanted(explorer: Explores, ask: Ask, wanted: int) -> Also:
    ids, hosts = explorer.also(ask, wanted)
    return Also(np.asarray(ids, np.uint64), frozenset(hosts))


def _sampled(sampler: Sampler, batch: Batch, ask: Ask, limit: int) -> Sample:
    sample = sampler.sample(batch, ask, limit)
    np.broadcast_to(sample.arm, batch.id.take(sample.rows).shape)
    return sample
