"""The book a policy keeps: a number for every URL it heard of, in order, and columns beside the numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC
from crawlguide.core.outcomes import failures
from crawlguide.core.types import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.definition import Weights
    from crawlguide.core.protocols import Learner
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

FIRST_ROOM = 1_024


class Known:
    """URLs by number, and a column of numbers for each name that was asked for at the start."""

    def __init__(self, **columns: float) -> None:
        self._number: dict[int, int] = {}
        self._blank = columns
        self._columns = {name: np.full(FIRST_ROOM, blank) for name, blank in columns.items()}
        self._ids = np.zeros(FIRST_ROOM, np.uint64)

    def __len__(self) -> int:
        return len(self._number)

    def __getitem__(self, name: str) -> F64:
        """The whole column; rows beyond the last number are blank."""
        return self._columns[name]

    @property
    def ids(self) -> U64:
        return self._ids[: len(self)]

    def numbers(self, ids: U64) -> I64:
        """The numbers of these URLs; those never heard of get the next ones."""
        number, before = self._number, len(self._number)
        found = np.array([number.setdefault(one, len(number)) for one in ids.tolist()], np.int64)
        if len(number) > before:
            self._make_room(len(number))
            new = found >= before
            self._ids[found[new]] = ids[new]
        return found

    def find(self, ids: U64) -> I64:
        """The numbers of these URLs; -1 where nothing was heard."""
        number = self._number
        return np.array([number.get(one, -1) for one in ids.tolist()], np.int64)

    def _make_room(self, count: int) -> None:
        room = len(self._ids)
        if count <= room:
            return
        more = max(count, 2 * room) - room
        self._ids = np.concatenate([self._ids, np.zeros(more, np.uint64)])
        for name, blank in self._blank.items():
            self._columns[name] = np.concatenate([self._columns[name], np.full(more, blank)])


class Everything:
    """A sampler that lets everything through."""

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        return Sample(np.arange(len(batch)), batch.arm, np.ones(len(batch)))


class Policy:
    """A strategy that is one learner, weighed as the classics are."""

    sampler = Everything()
    weights: Weights = CLASSIC

    def __init__(self, learner: Learner) -> None:
        self.predictor = learner


class Ranking:
    """A learner whose opinion of every URL it heard of is one column, `value`."""

    version = "lab-1"

    def __init__(self, **columns: float) -> None:
        self.known = Known(value=0.0, **columns)

    def predict(self, batch: Batch) -> F64:
        number = self.known.find(batch.id)
        return np.where(number < 0, 0.0, self.known["value"][number])

    def assigned(self, batch: Batch, ask: Ask) -> None:
        """Most rankings do not care what is under way."""


def relevances(lesson: Lesson) -> F64:
    """What each fetch was worth: nothing where it failed, or where nobody said."""
    fetches = lesson.fetches
    return np.where(failures(fetches) | np.isnan(fetches.relevance), 0.0, fetches.relevance)


def pages(lesson: Lesson, number: I64) -> Iterator[tuple[int, I64, I64]]:
    """For every page of a lesson: its row among the fetches, the numbers its links lead to, each once and in order,
    and the rows of those links. `number` holds the number of each link. Seeds stand on page -1."""
    parent = lesson.links.parent
    if not len(parent):
        return
    starts = [0, *(np.flatnonzero(np.diff(parent)) + 1).tolist(), len(parent)]
    for start, end in pairwise(starts):
        mine, first = np.unique(number[start:end], return_index=True)
        order = np.argsort(first, kind="stable")
        yield int(parent[start]), mine[order], first[order] + start
