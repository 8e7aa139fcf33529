"""All predictors of a crawl in the coats that the corridor knows. It has an answer whatever becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.types import Also
from crawlguide.predictors.composed.opinion import Opinion
from crawlguide.predictors.relational import Relational

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.protocols import Sampler
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Lesson, Sample
    from crawlguide.predictors.composed.opinion import Member
    from crawlguide.predictors.composed.part import Part

HEURISTIC = Relational()  # of the batch's own columns alone: there is nothing in it that could fail
BY_HEURISTIC, BY_ANOTHER, UNLEARNED = "heuristic_fallback", "predictor_fallback", "learning_failed"
MOST_RELEARNED = 2_000  # URLs that are ranked anew after a lesson


class Whole:
    """A `Predictor`, `Learner`, `Explores`, `Explains` and `Sampler`, as far as its parts are."""

    def __init__(self, member: Member, usual: Sampler) -> None:
        self._member, self._usual = member, usual
        self.parts: Sequence[Part] = member.parts
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

    def explore(self, batch: Batch) -> F64:
        hope = self.judge(batch).hope
        return np.zeros(len(batch)) if hope is None else hope

    def also(self, ask: Ask, wanted: int) -> Also:
        found = [also for part in self._member.speakers() if (also := part.also(ask, wanted)) is not None]
        if len(found) == 1:
            return found[0]
        ids = np.concatenate([np.zeros(0, np.uint64), *(also.ids for also in found)])
        return Also(ids, frozenset().union(*(also.hosts for also in found)))

    def drawn(self, batch: Batch) -> F64:
        marks = [mark for part in self._member.speakers() if (mark := part.drawn(batch)) is not None]
        if len(marks) == 1:
            return marks[0]
        return np.max(marks, axis=0) if marks else np.zeros(len(batch))

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        """By the first one that works."""
        for part in self._member.speakers()[:1] if self._choosy else ():
            sample = part.sample(batch, ask, limit)
            if sample is not None:
                return sample
        return self._usual.sample(batch, ask, limit)

    # learning

    def given(self, batch: Batch) -> None:
        for part in self.parts:
            part.given(batch)

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

    def because(self, batch: Batch) -> list[str]:
        """What each of them says; one alone need not say its name."""
        degraded = self.degraded()
        said = [] if degraded is None else [f"{degraded[0]}: {degraded[1]}"]
        if len(self.parts) == 1:
            return said + self.parts[0].because(batch)
        for part in self._member.speakers():
            found = part.judge(batch)
            if found is not None:
                said.append(f"{part.name} says {found.value[0]:.2f}")
                said += [f"{part.name}: {words}" for words in part.because(batch)]
        return said

    def stats(self) -> dict[str, float]:
        if len(self.parts) == 1:
            return dict(self.parts[0].stats())
        return {f"{part.name}.{name}": value for part in self.parts for name, value in part.stats().items()}
