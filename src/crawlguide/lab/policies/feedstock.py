"""feedstock's focused crawl with its defaults and its faults.

Of the links of a page one group is chosen and the others are thrown away, so the crawl may starve; the reward goes to
the group that was chosen last, not to that of the page; the order of the queue ignores Q; only links to the same host
are followed, at most three deep. A URL that was thrown away is worth less than nothing: the lab stops there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.lab.policies._feedstock import Agent, Defaults, State, binned, merged
from crawlguide.lab.policies._known import Policy, Ranking, pages, relevances
from crawlguide.lab.policies._words import share, topic_words

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import I64
    from crawlguide.core.types import Lesson

THROWN_AWAY = -1.0
LARGEST = 2.0  # keyword share + relevance of the page, brought down to 0…1


class Options(Defaults, frozen=True):
    pass


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
        known, before = self.known, len(self.known)
        fetched, number = known.numbers(lesson.fetches.id), known.numbers(lesson.links.id)
        known["value"][before : len(known)] = THROWN_AWAY
        found = {page: (targets, rows) for page, targets, rows in pages(lesson, number)}
        if -1 in found:
            self._queue(found[-1][0], 1.0, 0.0)
            self.hosts |= set(lesson.links.host)
        none = np.zeros(0, np.int64)
        for page, relevance in enumerate(relevances(lesson).tolist()):
            self._fetched(int(fetched[page]), relevance)
            self._followed(lesson, page, relevance, *found.get(page, (none, none)))
            self.agent.decay()

    def _fetched(self, number: int, relevance: float) -> None:
        self.known["done"][number] = 1.0
        self.waiting -= 1
        self.fetched += 1
        self.relevance += relevance
        state = self._state(self.known["depth"][number], relevance)
        if self.last is not None:
            self.agent.update(*self.last, relevance, state)

    def _followed(self, lesson: Lesson, page: int, relevance: float, targets: I64, rows: I64) -> None:
        """One group of the page's links is queued; what happens to the others is its fault."""
        known, fetches = self.known, lesson.fetches
        depth = known["depth"][known.numbers(fetches.id[page : page + 1])[0]]
        home, found = urls.queue(fetches.url[page]), dict[str, list[int]]()
        if depth >= self.options.max_depth:
            return
        for number, row in zip(targets.tolist(), rows.tolist(), strict=True):
            if lesson.links.host[row] == home and not known["done"][number]:
                found.setdefault(urls.link_group(lesson.links.url[row], home), []).append(row)
        if not found:
            return
        groups = merged(found, self.options.max_action_groups)
        state = self._state(depth, relevance)
        chosen = self.agent.choose(state, list(groups))
        self.last = state, chosen
        links = lesson.links.take(np.array(groups[chosen]))
        words = np.mean([share(self.words, f"{u} {a}") for u, a in zip(links.url, links.anchor, strict=True)])
        self._queue(known.numbers(links.id), float(words) + relevance, depth + 1.0)

    def _queue(self, number: I64, priority: float, depth: float) -> None:
        """A URL may be queued again, and the higher priority counts."""
        known = self.known
        new = number[known["queued"][number] == 0.0]
        known["depth"][new] = depth
        known["queued"][new] = 1.0
        self.waiting += len(new)
        known["value"][number] = np.maximum(known["value"][number], priority / LARGEST)

    def _state(self, depth: float, relevance: float) -> State:
        mean = self.relevance / max(self.fetched, 1)
        values = (depth / 10, self.fetched / self.options.max_pages, mean, relevance)
        return binned((*values, self.waiting / 500, len(self.hosts) / 50))
