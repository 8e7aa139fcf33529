"""feedstock's focused crawl with its defaults and its faults: link groups, a binned state, tabular Q-learning.

Of the links of a page one group is chosen and the others are thrown away, so the crawl may starve; the reward goes to
the group that was chosen last, not to that of the page; the order of the queue ignores Q; only links to the same host
are followed, at most three deep. A URL that was thrown away has a value below 0: the lab stops there.
`feedstock-repaired` mends these faults; the product's own strategy of this kind is `groups`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.definition import Fixed
from crawlguide.lab.policies._shared import Policy, Ranking, links_by_page, relevances, share, topic_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import I64
    from crawlguide.core.types import Lesson

State = tuple[int, ...]
THROWN_AWAY = -1.0
LARGEST = 2.0  # keyword share + relevance of the page, brought down to 0…1


class Options(Fixed, frozen=True):
    """feedstock's own names and defaults."""

    kind: str = ""
    epsilon: float = 0.15
    epsilon_decay: float = 0.995
    min_epsilon: float = 0.05
    discount_factor: float = 0.9
    learning_rate: float = 0.2
    max_action_groups: int = 10
    max_depth: int = 3
    max_pages: int = 100  # only the state looks at it here: the lab's budget ends the crawl


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Feedstock(options, seed, topic_words(goal)))


class Feedstock(Ranking):
    def __init__(self, options: Options, seed: int, words: tuple[str, ...]) -> None:
        super().__init__(depth=0.0, queued=0.0, done=0.0)
        self.options, self.words = options, words
        self.agent = Agent(options, np.random.default_rng(seed), epsilon=options.epsilon)
        self.last: tuple[State, str] | None = None
        self.fetched, self.relevance, self.waiting = 0, 0.0, 0
        self.hosts: set[str] = set()

    def learn(self, lesson: Lesson) -> None:
        columns, before = self.columns, len(self.columns)
        fetched, number = columns.numbers(lesson.fetches.id), columns.numbers(lesson.links.id)
        columns["value"][before : len(columns)] = THROWN_AWAY
        links = {page: (targets, rows) for page, targets, rows in links_by_page(lesson, number)}
        if -1 in links:
            self._queue(links[-1][0], 1.0, 0.0)
            self.hosts |= set(lesson.links.host)
        none = np.zeros(0, np.int64)
        for page, relevance in enumerate(relevances(lesson).tolist()):
            self._fetched(int(fetched[page]), relevance)
            self._followed(lesson, page, relevance, *links.get(page, (none, none)))
            self.agent.decay()

    def _fetched(self, number: int, relevance: float) -> None:
        self.columns["done"][number] = 1.0
        self.waiting -= 1
        self.fetched += 1
        self.relevance += relevance
        state = self._state(self.columns["depth"][number], relevance)
        if self.last is not None:
            self.agent.update(*self.last, relevance, state)

    def _followed(self, lesson: Lesson, page: int, relevance: float, targets: I64, rows: I64) -> None:
        """One group of the page's links is queued; the others are thrown away."""
        columns, fetches = self.columns, lesson.fetches
        depth = columns["depth"][columns.numbers(fetches.id[page : page + 1])[0]]
        home, groups = urls.queue(fetches.url[page]), dict[str, list[int]]()
        if depth >= self.options.max_depth:
            return
        for number, row in zip(targets.tolist(), rows.tolist(), strict=True):
            if lesson.links.host[row] == home and not columns["done"][number]:
                groups.setdefault(urls.link_group(lesson.links.url[row], home), []).append(row)
        if not groups:
            return
        groups = merged(groups, self.options.max_action_groups)
        state = self._state(depth, relevance)
        chosen = self.agent.choose(state, list(groups))
        self.last = state, chosen
        links = lesson.links.take(np.array(groups[chosen]))
        words = np.mean([share(self.words, f"{u} {a}") for u, a in zip(links.url, links.anchor, strict=True)])
        self._queue(columns.numbers(links.id), float(words) + relevance, depth + 1.0)

    def _queue(self, number: I64, priority: float, depth: float) -> None:
        """A URL may be queued again, and the higher priority counts."""
        columns = self.columns
        new = number[columns["queued"][number] == 0.0]
        columns["depth"][new] = depth
        columns["queued"][new] = 1.0
        self.waiting += len(new)
        columns["value"][number] = np.maximum(columns["value"][number], priority / LARGEST)

    def _state(self, depth: float, relevance: float) -> State:
        mean = self.relevance / max(self.fetched, 1)
        values = (depth / 10, self.fetched / self.options.max_pages, mean, relevance)
        return binned((*values, self.waiting / 500, len(self.hosts) / 50))


@dataclass
class Agent:
    """ε-greedy over a table of Q; of equals the first. ε falls with every page."""

    options: Options
    rng: np.random.Generator
    table: dict[State, dict[str, float]] = field(default_factory=dict)
    epsilon: float = 0.15

    def choose(self, state: State, keys: Sequence[str]) -> str:
        if self.rng.random() < self.epsilon:
            return keys[int(self.rng.integers(len(keys)))]
        values = self.table.get(state, {})
        return max(keys, key=lambda key: values.get(key, 0.0))

    def update(self, state: State, key: str, reward: float, following: State) -> None:
        values = self.table.setdefault(state, {})
        best = max([0.0, *self.table.get(following, {}).values()])
        values[key] = updated(
            values.get(key, 0.0), reward, best, self.options.learning_rate, self.options.discount_factor
        )

    def decay(self) -> None:
        self.epsilon = max(self.options.min_epsilon, self.epsilon * self.options.epsilon_decay)


def merged(groups: dict[str, list[int]], most: int) -> dict[str, list[int]]:
    """While there are too many, the smallest goes into the smallest of its prefix, else into the smallest of all."""
    groups = {key: list(members) for key, members in groups.items()}
    while len(groups) > most:
        small = min(groups, key=lambda key: len(groups[key]))
        members = groups.pop(small)
        alike = [key for key in groups if key.split(":")[0] == small.split(":")[0]] or list(groups)
        groups[min(alike, key=lambda key: len(groups[key]))] += members
    return groups


def binned(values: Iterable[float]) -> State:
    """Each of the six values in one of three bins."""
    return tuple(0 if value < 0.33 else 1 if value < 0.66 else 2 for value in values)


def updated(q: float, reward: float, best_next: float, rate: float, discount: float) -> float:
    """Q(s,a) + rate · (reward + discount · max Q(s',a') − Q(s,a))"""
    return q + rate * (reward + discount * best_next - q)
