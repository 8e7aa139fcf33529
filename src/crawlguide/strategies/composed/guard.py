"""Guards around predictors, so that every ask is answered: they may raise, return nonsense or take too long.

`GuardedPredictor` guards one predictor. Composites (`cascade`, `blend`, `fallback`) combine several into one opinion.
`GuardedStrategy` is what the guide calls: all predictors of a crawl, and a plain heuristic where none of them works.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from crawlguide.core.errors import StorageFull, StoreUnavailable
from crawlguide.core.notebook import Remembers, Section, Transfers
from crawlguide.core.protocols import MOST_RERANKED, Explains, Explores, Learner, ReportsStats
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.turns import LONG_ROWS, in_turns
from crawlguide.core.types import Draw
from crawlguide.strategies.relational import Relational

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.protocols import Predictor, Sampler, Strategy
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Lesson, Sample

HEURISTIC = Relational()  # needs nothing but the columns of the batch, so it cannot fail
BY_HEURISTIC, BY_ANOTHER, UNLEARNED = "heuristic_fallback", "predictor_fallback", "learning_failed"
BUDGET_ROWS = 200  # rows for which a time budget is meant; more rows may take longer, in proportion
MOST_CHARACTERS = 300  # of the message of an exception
STORE_ERRORS = (StoreUnavailable, StorageFull)  # not the predictor's fault, and without the store there is no answer
NO_IDS = np.zeros(0, np.uint64)
SHORTEST_S, LONGEST_S = 1.0, 60.0  # how long a predictor that failed is passed over


# What an opinion is for: the candidates of an answer, rows that wait whatever stands beside them, or somebody's look,
# which leaves no trace: a predictor that fails in it is not passed over in the next ask.
Purpose = Literal["answer", "waiting", "look"]

Result = TypeVar("Result")


class Opinion(NamedTuple):
    """The value of each row, its exploration bonus (None: none), and the value with which it waits (None: the same)."""

    value: F64
    exploration: F64 | None = None
    at_rest: F64 | None = None


class Member(Protocol):
    """A guarded predictor, or several that give one opinion. None of these methods raises."""

    @property
    def version(self) -> str: ...

    @property
    def parts(self) -> Sequence[GuardedPredictor]:
        """All predictors in it."""
        ...

    def judge(self, batch: Batch, purpose: Purpose) -> Opinion | None:
        """None: no predictor in it works now."""
        ...

    def working(self) -> list[GuardedPredictor]:
        """Those whose opinion counts now."""
        ...

    def failures(self) -> list[str]:
        """Why others are passed over."""
        ...


@dataclass(frozen=True)
class Composite:
    """Several members; unless a composite says otherwise, the opinions of all of them count."""

    members: tuple[Member, ...]

    @property
    def parts(self) -> list[GuardedPredictor]:
        return [part for member in self.members for part in member.parts]

    def working(self) -> list[GuardedPredictor]:
        return [part for member in self.members for part in member.working()]

    def failures(self) -> list[str]:
        return [failure for member in self.members for failure in member.failures()]


class GuardedStrategy:
    """All predictors of a crawl as the guide calls them."""

    def __init__(self, member: Member, plain: Sampler) -> None:
        self._member, self._plain = member, plain
        self.parts: Sequence[GuardedPredictor] = member.parts
        self.learns = any(part.learner is not None for part in self.parts)
        self.explores = any(part.explorer is not None for part in self.parts)
        self._samples = any(part.sampler != plain for part in self.parts)

    @property
    def version(self) -> str:
        """Of those that decide now."""
        return self._member.version if self._member.working() else HEURISTIC.version

    def degraded(self) -> tuple[str, str] | None:
        """What stands in for what failed, in a word, and why it failed; None: everything works."""
        failures = self._member.failures()
        lost = [why for part in self.parts if (why := part.lesson_failure()) is not None]
        if not failures and not lost:
            return None
        words = [BY_ANOTHER if self._member.working() else BY_HEURISTIC] if failures else []
        return "+".join([*words, *([UNLEARNED] if lost else [])]), "; ".join([*failures, *lost])

    def judge(self, batch: Batch, purpose: Purpose = "answer") -> Opinion:
        """The opinion of the predictors that work, or of the heuristic."""
        opinion = self._member.judge(batch, purpose) if len(batch) else None
        return opinion or Opinion(HEURISTIC.predict(batch))

    def draw(self, ask: Ask, wanted: int) -> Draw:
        """All that the predictors draw together; `state` holds what each of them drew."""
        own = {part.name: draw for part in self._member.working() if (draw := part.draw(ask, wanted)) is not None}
        ids = np.concatenate([NO_IDS, *(draw.ids for draw in own.values())])
        return Draw(ids, frozenset().union(*(draw.hosts for draw in own.values())), own)

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64:
        bonuses = [bonus for part in self._member.working() if (bonus := part.draw_bonus(batch, ask)) is not None]
        return np.max(bonuses, axis=0) if bonuses else np.zeros(len(batch))

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        """By the first predictor that works."""
        for part in self._member.working()[:1] if self._samples else ():
            sample = part.sample(batch, ask, limit)
            if sample is not None:
                return sample
        return self._plain.sample(batch, ask, limit)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        for part in self.parts:
            part.assigned(batch, ask)

    async def learn(self, lesson: Lesson) -> U64:
        """All learn, and others are served between two that have much to learn.

        Returns URLs to rank again besides those that links lead to; the learners share evenly in them.
        """
        changed = []
        async for parts in in_turns(self.parts, 1 if len(lesson.links) > LONG_ROWS else len(self.parts)):
            changed += [ids for part in parts if (ids := part.learn(lesson)) is not None and len(ids)]
        return np.concatenate([NO_IDS, *(ids[: MOST_RERANKED // len(changed)] for ids in changed)])

    @property
    def transferable(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.transferable)

    def remember(self, notebook: Notebook) -> None:
        for part in self.parts:
            part.remember(notebook)

    def explain(self, batch: Batch) -> list[str]:
        """What each predictor says; one alone is not named."""
        degraded = self.degraded()
        lines = [] if degraded is None else [f"{degraded[0]}: {degraded[1]}"]
        if len(self.parts) == 1:
            return lines + self.parts[0].explain(batch)
        for part in self._member.working():
            opinion = part.judge(batch, "look")
            if opinion is not None:
                lines.append(f"{part.name} says {opinion.value[0]:.2f}")
                lines += [f"{part.name}: {words}" for words in part.explain(batch)]
        return lines

    def stats(self) -> dict[str, float]:
        if len(self.parts) == 1:
            return dict(self.parts[0].stats())
        return {f"{part.name}.{name}": value for part in self.parts for name, value in part.stats().items()}


@dataclass(frozen=True)
class GuardOptions:
    """How a predictor is called and guarded."""

    name: str  # its kind, and a number if there are several
    crawl: str
    now: Callable[[], float]
    budget_ms: float
    strict: bool = False  # the budget is its own: no answer waits longer, and lessons count too
    section: str = ""  # of the notebook

    def allowed_s(self, rows: int) -> float:
        return self.budget_ms / 1_000 * max(rows / BUDGET_ROWS, 1.0)


class GuardedPredictor:
    """One predictor. Where it fails, the methods return None and it is passed over for a while."""

    def __init__(self, strategy: Strategy, options: GuardOptions) -> None:
        predictor = strategy.predictor
        self.options, self.name, self.predictor, self.sampler = options, options.name, predictor, strategy.sampler
        self.learner = predictor if isinstance(predictor, Learner) else None
        self.explorer = predictor if isinstance(predictor, Explores) else None
        self._judging = Breaker(options, "{why}, and is passed over until it works again", "works again")
        self._learning = Breaker(options, "{why} in a lesson", "learns again")
        # a learner is never left behind in a thread: lessons would change its state while it computes
        in_thread = options.strict and self.learner is None
        self._predictor = TimeoutThread(predictor, options) if in_thread else predictor

    @property
    def version(self) -> str:
        return str(getattr(self.predictor, "version", self.name))

    @property
    def parts(self) -> tuple[GuardedPredictor, ...]:
        return (self,)

    def working(self) -> list[GuardedPredictor]:
        return [self] if self._judging.why is None else []

    def failures(self) -> list[str]:
        return [] if self._judging.why is None else [f"{self.name} {self._judging.why}"]

    def lesson_failure(self) -> str | None:
        """Why it has not learned from the last lesson."""
        return None if self._learning.why is None else f"{self.name} {self._learning.why} in a lesson"

    def judge(self, batch: Batch, purpose: Purpose) -> Opinion | None:
        if not self._judging.allows():
            return None
        breaker = None if purpose == "look" else self._judging
        value = self._guarded(breaker, len(batch), _numbers, self._predictor.predict, batch)
        if value is None:
            return None
        if breaker is not None:
            breaker.worked()
        if self.explorer is None:
            return Opinion(value)
        return Opinion(value, self._guarded(breaker, len(batch), _numbers, self.explorer.exploration_bonus, batch))

    def draw(self, ask: Ask, wanted: int) -> Draw | None:
        return None if self.explorer is None else self._guarded(self._judging, 0, _draw, self.explorer, ask, wanted)

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64 | None:
        if self.explorer is None:
            return None
        breaker, own = None if ask.looking else self._judging, self._with_own_draw(ask)
        return self._guarded(breaker, len(batch), _numbers, self.explorer.draw_bonus, batch, own)

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample | None:
        own = self._with_own_draw(ask)
        return self._guarded(self._judging, len(batch), _sample, self.sampler, batch, own, limit)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        if self.learner is not None and self._learning.allows():
            self._guarded(self._learning, len(batch), self.learner.assigned, batch, self._with_own_draw(ask))

    def learn(self, lesson: Lesson) -> U64 | None:
        """One that raises gets the next lesson all the same; one that exceeds a budget of its own misses some."""
        if self.learner is None or not self._learning.allows():
            return None
        rows = len(lesson.fetches) + len(lesson.links)
        changed = self._guarded(self._learning, rows, _learn, self.learner, lesson)
        if changed is not None:
            self._learning.worked()
        return changed

    @property
    def transferable(self) -> tuple[str, ...]:
        names = self.predictor.transferable if isinstance(self.predictor, Transfers) else ()
        return tuple(Section.named(self.options.section, name) for name in names)

    def remember(self, notebook: Notebook) -> None:
        """One that cannot go on from what it has learned is out until its crawl is opened again."""
        own = Section(notebook, self.options.section) if self.options.section else notebook
        try:
            for keeper in {id(one): one for one in (self.predictor, self.sampler)}.values():
                if isinstance(keeper, Remembers):
                    keeper.remember(own)
        except STORE_ERRORS:
            raise
        except Exception as raised:  # noqa: BLE001 - its crawl goes on without it
            self._judging.failed(f"raised {type(raised).__name__} when it should remember", _text(raised), inf)
            self._learning.rest("is out", inf)

    def explain(self, batch: Batch) -> list[str]:
        if not isinstance(self.predictor, Explains) or self._judging.why is not None:
            return []
        try:
            return [str(words) for words in self.predictor.explain(batch)]
        except Exception as raised:  # noqa: BLE001 - who cannot explain may still be right
            return [f"{self.name} raised {type(raised).__name__} when asked why"]

    def stats(self) -> Mapping[str, float]:
        try:
            numbers = self.predictor.stats() if isinstance(self.predictor, ReportsStats) else {}
            return {str(name): float(value) for name, value in numbers.items()}
        except Exception:  # noqa: BLE001 - the numbers of the crawl are shown without its own
            return {}

    def _with_own_draw(self, ask: Ask) -> Ask:
        """The ask with what this predictor drew for it, and nobody else."""
        return ask if ask.draw is None else replace(ask, draw=ask.draw.state.get(self.name))

    def _guarded(
        self, breaker: Breaker | None, rows: int, call: Callable[..., Result], *arguments: Any
    ) -> Result | None:
        """What a call returns; None if it raises or takes too long, which the breaker, if any, remembers."""
        learning, began, allowed_s = breaker is self._learning, self.options.now(), self.options.allowed_s(rows)
        problem, rest_s = "", None
        try:
            result = call(*arguments)
            took_s = self.options.now() - began
            if took_s <= allowed_s or (learning and not self.options.strict):
                return result
            why = too_slow(took_s, allowed_s)
        except STORE_ERRORS:
            raise
        except Unusable as wrong:
            why = str(wrong)
        except Exception as raised:  # noqa: BLE001 - it may be anybody's code, and an answer has to go out
            why, problem, rest_s = f"raised {type(raised).__name__}", _text(raised), 0.0 if learning else None
        if breaker is not None:
            breaker.failed(why, problem, rest_s)
        return None


class Unusable(Exception):
    """A predictor gave nothing that can be used; the text says why."""


def too_slow(took_s: float, allowed_s: float) -> str:
    return f"took {took_s * 1_000:.0f} ms where {allowed_s * 1_000:.0f} are allowed"


# Results are converted within the guarded call, so that what cannot be used raises there.


def _numbers(call: Callable[..., Any], batch: Batch, *more: Any) -> F64:
    """A finite number for each row."""
    numbers: F64 = np.asarray(call(batch, *more), np.float64, order="C")
    if numbers.shape != (len(batch),):
        raise Unusable(f"gave an array of shape {numbers.shape} for {len(batch)} URLs")
    if not isfinite(np.einsum("i,i", numbers, numbers)):  # one that is not finite makes the sum such; without threads
        raise Unusable("gave numbers that are not finite")
    return numbers


def _draw(explorer: Explores, ask: Ask, wanted: int) -> Draw:
    ids, hosts, state = explorer.draw(ask, wanted)
    return Draw(_ids(ids), frozenset(map(str, hosts)), state)


def _sample(sampler: Sampler, batch: Batch, ask: Ask, limit: int) -> Sample:
    sample = sampler.sample(batch, ask, limit)
    rows, arm = np.asarray(sample.rows, np.int64), np.asarray(sample.arm, np.float64)
    if rows.ndim != 1 or len(np.unique(rows)) != len(rows) or (rows < 0).any() or (rows >= len(batch)).any():
        raise Unusable(f"chose rows that are not among the {len(batch)} it was shown, or some twice")
    np.broadcast_to(arm, rows.shape)
    return replace(sample, rows=rows, arm=arm)


def _learn(learner: Learner, lesson: Lesson) -> U64:
    changed = learner.learn(lesson)
    return NO_IDS if changed is None else _ids(changed)


def _ids(ids: Any) -> U64:
    column = np.asarray(ids, np.uint64)
    if column.ndim != 1:
        raise Unusable(f"gave ids in {column.ndim} dimensions")
    return column


def _text(problem: Exception) -> str:
    """What an exception says; somebody's own may fail even at that."""
    try:
        return str(problem)
    except Exception:  # noqa: BLE001
        return ""


class Breaker:
    """A circuit breaker: what failed is left alone for a second at first, twice as long each time it fails again.

    A minute is the longest; after working for longer than that it begins with a second again. The log hears of the
    first failure, and of the recovery.
    """

    def __init__(self, options: GuardOptions, failed: str, recovered: str) -> None:
        self.why: str | None = None  # what went wrong last; None: all is well
        self._options, self._failed, self._recovered = options, failed, recovered
        self._until = self._well_since = 0.0
        self._rest_s = SHORTEST_S / 2

    def allows(self) -> bool:
        """Whether it may be tried now."""
        return self.why is None or self._options.now() >= self._until

    def failed(self, why: str, problem: str = "", rest_s: float | None = None) -> None:
        """`rest_s` is how long it is left alone, where that is known."""
        if self.rest(why, rest_s):
            sentence, named = f"crawl {{crawl}}: {{predictor}} {self._failed}", self._named()
            happened("predictor_failed", sentence, WARNING, **named, why=why, problem=problem[:MOST_CHARACTERS] or None)

    def rest(self, why: str, rest_s: float | None) -> bool:
        """The same without a word; returns whether all was well before."""
        was_well, at = self.why is None, self._options.now()
        if was_well and at - self._well_since > LONGEST_S:
            self._rest_s = SHORTEST_S / 2
        self._rest_s = min(2 * self._rest_s, LONGEST_S)
        self.why, self._until = why, at + (self._rest_s if rest_s is None else rest_s)
        return was_well

    def worked(self) -> None:
        if self.why is not None:
            self.why, self._well_since = None, self._options.now()
            happened("predictor_recovered", f"crawl {{crawl}}: {{predictor}} {self._recovered}", **self._named())

    def _named(self) -> dict[str, str | float | None]:
        return {"crawl": self._options.crawl, "predictor": self._options.name}


class TimeoutThread:
    """A predictor that is left behind in a thread of its own if it takes too long. Meanwhile there is no other call.

    Python cannot stop it. A model that computes outside of Python, sleeps or waits leaves the interpreter to others;
    one that loops in Python takes turns with them until it ends.
    """

    def __init__(self, predictor: Predictor, options: GuardOptions) -> None:
        self._predictor, self._options = predictor, options
        self._thread: Thread | None = None

    def predict(self, batch: Batch) -> F64:
        """What the predictor returns or raises; `Unusable` if it takes longer than it may."""
        allowed_s = self._options.allowed_s(len(batch))
        if self._thread is not None and self._thread.is_alive():
            raise Unusable(too_slow(allowed_s, allowed_s))
        box: list[tuple[Any, Exception | None]] = []
        self._thread = Thread(target=self._run, args=(batch, box), daemon=True, name="predictor")
        self._thread.start()
        self._thread.join(allowed_s)
        if not box:
            raise Unusable(too_slow(allowed_s, allowed_s))
        value, raised = box[0]
        if raised is not None:
            raise raised
        return value  # type: ignore[no-any-return]

    def _run(self, batch: Batch, box: list[tuple[Any, Exception | None]]) -> None:
        try:
            box.append((self._predictor.predict(batch), None))
        except Exception as raised:  # noqa: BLE001 - it is raised again where the result is awaited
            box.append((None, raised))
