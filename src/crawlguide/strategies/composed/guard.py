"""What predictors say of a batch, alone or together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from crawlguide.core.errors import StorageFull, StoreUnavailable
from crawlguide.core.notebook import Remembers, Section, Transfers
from crawlguide.core.protocols import Explains, Explores, Learner, ReportsStats
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.types import Draw, Lesson
from crawlguide.strategies.relational import Relational

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.protocols import Sampler, Strategy
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Sample


class Opinion(NamedTuple):
    """The value of each row, what may be learned by fetching it (None: nothing), and with which value it waits."""

    value: F64
    exploration: F64 | None = None
    at_rest: F64 | None = None  # None: its value


class Member(Protocol):
    """One predictor behind its guard, or several that speak as one. They never raise."""

    @property
    def version(self) -> str: ...

    @property
    def parts(self) -> Sequence[GuardedPredictor]:
        """All predictors in it."""
        ...

    def judge(self, batch: Batch) -> Opinion | None:
        """For an answer, from all rows it is chosen from; None: nobody has anything to say now."""
        ...

    def rest(self, batch: Batch) -> Opinion | None:
        """For rows that wait, whatever stands beside them."""
        ...

    def speakers(self) -> list[GuardedPredictor]:
        """Those whose opinion counts now."""
        ...

    def troubles(self) -> list[str]:
        """Why others are passed over."""
        ...


# A call that nobody waits for longer than it may take: it runs in a thread of its own, and is left behind.


class Late(Exception):
    """It is still at it."""


class TimeoutThread:
    """One call at a time: as long as one is left behind there is no other.

    Python cannot stop it. A model that computes outside of Python, sleeps or waits leaves the interpreter to others;
    one that loops in Python takes turns with them until it ends.
    """

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call
        self._thread: Thread | None = None

    def within(self, seconds: float, given: Any) -> Any:
        """What the call gives or raises; `Late` if it takes longer."""
        if self._thread is not None and self._thread.is_alive():
            raise Late
        box: list[tuple[Any, Exception | None]] = []
        self._thread = Thread(target=self._run, args=(given, box), daemon=True, name="predictor")
        self._thread.start()
        self._thread.join(seconds)
        if not box:
            raise Late
        found, raised = box[0]
        if raised is not None:
            raise raised
        return found

    def _run(self, given: Any, box: list[tuple[Any, Exception | None]]) -> None:
        try:
            box.append((self._call(given), None))
        except Exception as raised:  # noqa: BLE001 - whoever waits for it hears of it
            box.append((None, raised))


# Whoever failed is left alone for a while, and then tried again: a circuit breaker.

SHORTEST_S, LONGEST_S = 1.0, 60.0


class Breaker:
    """Left alone for a second at first, twice as long each time it fails again, a minute at most.

    One that has worked for longer than that begins anew.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.why: str | None = None  # what went wrong last; None: all is well
        self._now = now
        self._until = self._well_since = 0.0
        self._rest_s = SHORTEST_S / 2

    def lets(self) -> bool:
        """Whether it may be tried now."""
        return self.why is None or self._now() >= self._until

    def failed(self, why: str, rest_s: float | None = None) -> bool:
        """True if it was well before. `rest_s` is how long it is left alone, where that is known."""
        news, at = self.why is None, self._now()
        if news and at - self._well_since > LONGEST_S:
            self._rest_s = SHORTEST_S / 2
        self._rest_s = min(2 * self._rest_s, LONGEST_S)
        self.why, self._until = why, at + (self._rest_s if rest_s is None else rest_s)
        return news

    def worked(self) -> bool:
        """True if it was not well before."""
        if self.why is None:
            return False
        self.why, self._well_since = None, self._now()
        return True


# One predictor behind a guard: it may raise, give nonsense or take its time, and an answer goes out all the same.

USUAL = 200  # rows for which a budget is meant; more may take longer, in proportion
MOST_SAID = 300  # characters of what was raised
THE_STORE = (StoreUnavailable, StorageFull)


@dataclass(frozen=True)
class GuardTerms:
    """How a predictor is called and guarded."""

    name: str  # its kind, and a number if there are several
    crawl: str
    now: Callable[[], float]
    budget_ms: float
    strict: bool = False  # the budget is its own: an answer waits no longer, and lessons count too
    section: str = ""  # of the notebook


class GuardedPredictor:
    def __init__(self, strategy: Strategy, terms: GuardTerms) -> None:
        predictor = strategy.predictor
        self.terms, self.name, self.predictor, self.sampler = terms, terms.name, predictor, strategy.sampler
        self.learner = predictor if isinstance(predictor, Learner) else None
        self.explorer = predictor if isinstance(predictor, Explores) else None
        self.breaker, self._lessons = Breaker(terms.now), Breaker(terms.now)
        # what one that learns knows must not change under it, so it is never left behind
        self._apart = TimeoutThread(predictor.predict) if terms.strict and self.learner is None else None
        self._now, self._budget_s = terms.now, terms.budget_ms / 1_000

    @property
    def version(self) -> str:
        return str(getattr(self.predictor, "version", self.name))

    @property
    def parts(self) -> tuple[GuardedPredictor, ...]:
        return (self,)

    def speakers(self) -> list[GuardedPredictor]:
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
        return Opinion(value, None if self.explorer is None else self._numbers(self.explorer.exploration_bonus, batch))

    rest = judge

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64 | None:
        explorer, ask = self.explorer, self._own(ask)
        return None if explorer is None else self._numbers(lambda rows: explorer.draw_bonus(rows, ask), batch)

    def draw(self, ask: Ask, wanted: int) -> Draw | None:
        return None if self.explorer is None else self._called(0, _drawn, self.explorer, ask, wanted)

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample | None:
        found: Sample | None = self._called(len(batch), _sampled, self.sampler, batch, self._own(ask), limit)
        return found

    def _own(self, ask: Ask) -> Ask:
        """The ask with what this predictor drew for it, and nobody else."""
        return ask if ask.draw is None else replace(ask, draw=ask.draw.state.get(self.name))

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

    def assigned(self, batch: Batch, ask: Ask) -> None:
        if self.learner is not None:
            self._taught(len(batch), self.learner.assigned, batch, self._own(ask))

    def learn(self, lesson: Lesson) -> U64 | None:
        if self.learner is None:
            return None
        rows = len(lesson.fetches) + len(lesson.links)
        found: U64 | None = self._taught(rows, self._learned, lesson)
        return found

    def _learned(self, lesson: Lesson) -> U64 | None:
        found = self.learner.learn(lesson) if self.learner is not None else None
        return None if found is None else np.asarray(found, np.uint64)

    def _taught(self, rows: int, call: Callable[..., Any], *given: Any) -> Any:
        """One that raises hears the next lesson all the same; one that takes longer than its own budget rests."""
        if not self._lessons.lets():
            return None
        began = self._now()
        try:
            found = call(*given)
        except THE_STORE:
            raise
        except Exception as raised:  # noqa: BLE001 - what was told is kept whoever learns from it
            self._unlearned(f"raised {type(raised).__name__}", str(raised), rest_s=0.0)
            return None
        took_s = self._now() - began
        if self.terms.strict and took_s > self._allowed_s(rows):
            self._unlearned(f"took {took_s * 1_000:.0f} ms")
        elif isinstance(given[0], Lesson) and self._lessons.worked():
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

    def explain(self, batch: Batch) -> list[str]:
        if not isinstance(self.predictor, Explains) or self.breaker.why is not None:
            return []
        try:
            return [str(words) for words in self.predictor.explain(batch)]
        except Exception as raised:  # noqa: BLE001 - who cannot explain may still be right
            return [f"{self.name} raised {type(raised).__name__} when asked why"]

    def stats(self) -> Mapping[str, float]:
        try:
            return dict(self.predictor.stats()) if isinstance(self.predictor, ReportsStats) else {}
        except Exception:  # noqa: BLE001 - the numbers of the crawl are shown without its own
            return {}


# What came is looked at within the call: nonsense raises there.


def _column(call: Callable[[Batch], Any], batch: Batch) -> F64:
    return np.asarray(call(batch), np.float64, order="C")


def _drawn(explorer: Explores, ask: Ask, wanted: int) -> Draw:
    ids, hosts, state = explorer.draw(ask, wanted)
    return Draw(np.asarray(ids, np.uint64), frozenset(hosts), state)


def _sampled(sampler: Sampler, batch: Batch, ask: Ask, limit: int) -> Sample:
    sample = sampler.sample(batch, ask, limit)
    np.broadcast_to(sample.arm, batch.id.take(sample.rows).shape)
    return sample


# All predictors of a crawl in the coats that the corridor knows. It has an answer whatever becomes of them.

HEURISTIC = Relational()  # of the batch's own columns alone: there is nothing in it that could fail
BY_HEURISTIC, BY_ANOTHER, UNLEARNED = "heuristic_fallback", "predictor_fallback", "learning_failed"
MOST_RELEARNED = 2_000  # URLs that are ranked anew after a lesson


class GuardedStrategy:
    """A `Predictor`, `Learner`, `Explores`, `Explains` and `Sampler`, as far as its parts are."""

    def __init__(self, member: Member, usual: Sampler) -> None:
        self._member, self._usual = member, usual
        self.parts: Sequence[GuardedPredictor] = member.parts
        self.learns = any(part.learner is not None for part in self.parts)
        self.explores = any(part.explorer is not None for part in self.parts)
        self._choosy = any(part.sampler != usual for part in self.parts)

    @property
    def version(self) -> str:
        """Of those that decide now."""
        return self._member.version if self._member.speakers() else HEURISTIC.version

    def degraded(self) -> tuple[str, str] | None:
        """Which part stands in, in a word; and why, in words."""
        troubles = self._member.troubles()
        words = [BY_ANOTHER if self._member.speakers() else BY_HEURISTIC] if troubles else []
        lost = [why for part in self.parts for why in part.unlearned()]
        if not troubles and not lost:
            return None
        return "+".join([*words, *([UNLEARNED] if lost else [])]), "; ".join([*troubles, *lost])

    # judging

    def judge(self, batch: Batch) -> Opinion:
        """For an answer."""
        return (self._member.judge(batch) if len(batch) else None) or Opinion(HEURISTIC.predict(batch))

    def rest(self, batch: Batch) -> Opinion:
        """For rows that wait."""
        return (self._member.rest(batch) if len(batch) else None) or Opinion(HEURISTIC.predict(batch))

    def predict(self, batch: Batch) -> F64:
        return self.judge(batch).value

    def exploration_bonus(self, batch: Batch) -> F64:
        hope = self.judge(batch).exploration
        return np.zeros(len(batch)) if hope is None else hope

    def draw(self, ask: Ask, wanted: int) -> Draw:
        """All that they draw together; `state` holds what each of them drew."""
        own = {part.name: draw for part in self._member.speakers() if (draw := part.draw(ask, wanted)) is not None}
        ids = np.concatenate([np.zeros(0, np.uint64), *(draw.ids for draw in own.values())])
        return Draw(ids, frozenset().union(*(draw.hosts for draw in own.values())), own)

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64:
        found = [bonus for part in self._member.speakers() if (bonus := part.draw_bonus(batch, ask)) is not None]
        return np.max(found, axis=0) if found else np.zeros(len(batch))

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        """By the first one that works."""
        for part in self._member.speakers()[:1] if self._choosy else ():
            sample = part.sample(batch, ask, limit)
            if sample is not None:
                return sample
        return self._usual.sample(batch, ask, limit)

    # learning

    def assigned(self, batch: Batch, ask: Ask) -> None:
        for part in self.parts:
            part.assigned(batch, ask)

    def learn(self, lesson: Lesson) -> U64 | None:
        """All learn; what a tell may rank anew is shared among those that want something ranked."""
        found = [ids for part in self.parts if (ids := part.learn(lesson)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        return np.concatenate([ids[: MOST_RELEARNED // len(found)] for ids in found])

    # remembering and telling

    @property
    def transferable(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.transferable)

    def remember(self, notebook: Notebook) -> None:
        for part in self.parts:
            part.remember(notebook)

    def explain(self, batch: Batch) -> list[str]:
        """What each of them says; one alone need not say its name."""
        degraded = self.degraded()
        said = [] if degraded is None else [f"{degraded[0]}: {degraded[1]}"]
        if len(self.parts) == 1:
            return said + self.parts[0].explain(batch)
        for part in self._member.speakers():
            found = part.judge(batch)
            if found is not None:
                said.append(f"{part.name} says {found.value[0]:.2f}")
                said += [f"{part.name}: {words}" for words in part.explain(batch)]
        return said

    def stats(self) -> dict[str, float]:
        if len(self.parts) == 1:
            return dict(self.parts[0].stats())
        return {f"{part.name}.{name}": value for part in self.parts for name, value in part.stats().items()}
