"""What the policies of the lab share: a table of the URLs they have seen, and ways to turn what is in it into an order.

    UrlColumns       columns of numbers, one row for each URL
    Ranking          a learner whose opinion of every URL is one column, `value`
    ParentEvidence   a ranking by the pages that link to a URL: how many there are, and how relevant they were
    Picking          a learner that picks the next few URLs instead of ranking all
    topic_words      the words that are looked for, and `share`, how many of them a text has

Nothing here uses the product's strategies, so a lab run compares two independent programs.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.core.outcomes import failures
from crawlguide.core.types import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.definition import Goal, Weights
    from crawlguide.core.protocols import Learner
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

FIRST_CAPACITY = 1_024
TIE = 1e-6  # weight of a random number that decides between equals
HEAD = 900  # URLs at the head of either order; an ask looks at two hundred
WORD = re.compile(r"[^\W_]+")


class Policy:
    """A strategy that consists of one learner: every candidate is valued, and relevance alone counts."""

    weights: Weights = CLASSIC

    def __init__(self, learner: Learner) -> None:
        self.sampler = KeepAll()
        self.predictor = learner


class KeepAll:
    """A sampler that keeps every candidate."""

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        return Sample(np.arange(len(batch)), batch.arm, np.ones(len(batch)))


class UrlColumns:
    """Numbers URLs in the order in which they appear, and keeps a column of floats for each name given at the start."""

    def __init__(self, **defaults: float) -> None:
        self._number: dict[int, int] = {}
        self._defaults = defaults
        self._columns = {name: np.full(FIRST_CAPACITY, default) for name, default in defaults.items()}
        self._ids = np.zeros(FIRST_CAPACITY, np.uint64)

    def __len__(self) -> int:
        return len(self._number)

    def __getitem__(self, name: str) -> F64:
        """The whole column; rows beyond the last number hold the default."""
        return self._columns[name]

    @property
    def ids(self) -> U64:
        return self._ids[: len(self)]

    def numbers(self, ids: U64) -> I64:
        """The numbers of these URLs; those never seen get the next ones."""
        number, before = self._number, len(self._number)
        numbers = np.array([number.setdefault(one, len(number)) for one in ids.tolist()], np.int64)
        if len(number) > before:
            self._grow(len(number))
            new = numbers >= before
            self._ids[numbers[new]] = ids[new]
        return numbers

    def find(self, ids: U64) -> I64:
        """The numbers of these URLs; -1 for those never seen."""
        number = self._number
        return np.array([number.get(one, -1) for one in ids.tolist()], np.int64)

    def _grow(self, count: int) -> None:
        capacity = len(self._ids)
        if count <= capacity:
            return
        more = max(count, 2 * capacity) - capacity
        self._ids = np.concatenate([self._ids, np.zeros(more, np.uint64)])
        for name, default in self._defaults.items():
            self._columns[name] = np.concatenate([self._columns[name], np.full(more, default)])


class Ranking:
    """A learner whose opinion of every URL is the column `value`; what was never seen is worth 0."""

    version = "lab-1"

    def __init__(self, **defaults: float) -> None:
        self.columns = UrlColumns(value=0.0, **defaults)

    def predict(self, batch: Batch) -> F64:
        number = self.columns.find(batch.id)
        return np.where(number < 0, 0.0, self.columns["value"][number])

    def assigned(self, batch: Batch, ask: Ask) -> None:
        """Most rankings do not care which URLs were handed out."""


class ParentEvidence(Ranking):
    """Counts each page that links to a URL once. A seed counts as linked from one relevant page."""

    def __init__(self, seed: int, **defaults: float) -> None:
        super().__init__(parents=0.0, total=0.0, best=0.0, tie=0.0, **defaults)
        self.rng = np.random.default_rng(seed)

    def values(self, number: I64) -> F64:
        """What these URLs are worth, from 0 to 1, by the columns of the table."""
        raise NotImplementedError

    def learn(self, lesson: Lesson) -> U64 | None:
        columns, relevance = self.columns, relevances(lesson)
        number = columns.numbers(lesson.links.id)
        fresh = number[lesson.fresh]
        columns["tie"][fresh] = self.rng.random(len(fresh))
        for page, targets, _ in links_by_page(lesson, number):
            worth = 1.0 if page < 0 else relevance[page]
            columns["parents"][targets] += 1.0
            columns["total"][targets] += worth
            columns["best"][targets] = np.maximum(columns["best"][targets], worth)
        touched = np.unique(number)
        columns["value"][touched] = self.values(touched) + TIE * columns["tie"][touched]
        return None


class PicksAhead(Fixed, frozen=True):
    kind: str = ""
    ahead: int = 10  # how many picks are kept ready: as many as crawlers ask for before they tell again


class Picking(Ranking):
    """Picks the next few URLs after every lesson. They are valued in their order, and all others at 0."""

    def __init__(self, seed: int, ahead: int, **defaults: float) -> None:
        super().__init__(taken=0.0, **defaults)
        self.rng = np.random.default_rng(seed)
        self.ahead = ahead
        self.picked: list[int] = []

    def observe(self, lesson: Lesson) -> None:
        raise NotImplementedError

    def pick(self) -> int | None:
        """The number of a URL, removed from wherever it waited; None if nothing waits."""
        raise NotImplementedError

    def put_back(self, number: int) -> None:
        """A pick that nobody took waits again."""
        raise NotImplementedError

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self.columns["taken"][self.columns.numbers(batch.id)] = 1.0

    def learn(self, lesson: Lesson) -> U64:
        before, columns = self.picked, self.columns
        self.observe(lesson)
        for old in before:
            columns["value"][old] = 0.0
            if not columns["taken"][old]:
                self.put_back(old)
        self.picked = []
        while len(self.picked) < self.ahead and (number := self.pick()) is not None:
            if not columns["taken"][number]:
                self.picked.append(number)
        columns["value"][self.picked] = 1.0 - np.arange(len(self.picked)) / (self.ahead + 1.0)
        return columns.ids[np.array(before + self.picked, np.int64)]


def heads(before: F64, after: F64, waiting: I64) -> I64:
    """Which waiting URLs to rank anew when all values have changed: the best by the old values and by the new ones.

    Nobody else is handed out before the next change.
    """
    if len(waiting) <= 2 * HEAD:
        return waiting
    old = waiting[np.argpartition(-before[waiting], HEAD)[:HEAD]]
    new = waiting[np.argpartition(-after[waiting], HEAD)[:HEAD]]
    return np.unique(np.concatenate([new, old]))


def relevances(lesson: Lesson) -> F64:
    """The relevance of each fetch: 0 where it failed, or where nobody told it."""
    fetches = lesson.fetches
    failed = failures(fetches)
    return np.where(failed | np.isnan(fetches.relevance), 0.0, fetches.relevance)


def links_by_page(lesson: Lesson, number: I64) -> Iterator[tuple[int, I64, I64]]:
    """For every page of a lesson: its row among the fetches, the numbers its links lead to, each once and in order,
    and the rows of those links. `number` holds the number of each link. Seeds belong to page -1."""
    parent = lesson.links.parent
    if not len(parent):
        return
    starts = [0, *(np.flatnonzero(np.diff(parent)) + 1).tolist(), len(parent)]
    for start, end in pairwise(starts):
        targets, first = np.unique(number[start:end], return_index=True)
        order = np.argsort(first, kind="stable")
        yield int(parent[start]), targets[order], first[order] + start


def topic_words(goal: Goal) -> tuple[str, ...]:
    """The keywords of the goal, or the words of its topic where it has none; in lower case, each once."""
    words = WORD.findall(" ".join(goal.keywords).lower()) or WORD.findall(goal.topic.lower())
    return tuple(dict.fromkeys(words))


def share(words: tuple[str, ...], text: str) -> float:
    """The share of the words that occur in a text, also as parts of longer words."""
    lower = text.lower()
    return sum(word in lower for word in words) / len(words) if words else 0.0
