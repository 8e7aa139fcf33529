"""feedstock's link groups, repaired: no link is thrown away, links to other hosts are followed, the reward is credited
to the group of the page that was fetched, and the order of the queue knows Q.

Each pick takes the link with the largest Q of its group + words of the topic in URL and anchor + best relevance of a
page that links here; with chance ε, the best link of any group.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.lab.policies._shared import Picking, Policy, links_by_page, relevances, share, topic_words
from crawlguide.lab.policies.feedstock import Options as FeedstockOptions
from crawlguide.lab.policies.feedstock import updated

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson


class Options(FeedstockOptions, frozen=True):
    ahead: int = 10


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(RepairedGroups(options, seed, topic_words(goal)))


class RepairedGroups(Picking):
    """Links that wait lie in a heap for each group. The best of a group may have been taken meanwhile, so what is
    remembered of it, `top`, is never too low: only the group that is chosen has to be looked at."""

    def __init__(self, options: Options, seed: int, words: tuple[str, ...]) -> None:
        super().__init__(seed, options.ahead, priority=-1.0, words=0.0, group=-1.0)
        self.options, self.words = options, words
        self.epsilon = options.epsilon
        self.place: dict[str, int] = {}
        self.waiting: list[list[tuple[float, float, int]]] = []
        self.q, self.top = np.zeros(64), np.full(64, -np.inf)

    def observe(self, lesson: Lesson) -> None:
        columns, links, relevance = self.columns, lesson.links, relevances(lesson)
        for number, reward in zip(columns.numbers(lesson.fetches.id).tolist(), relevance.tolist(), strict=True):
            group = int(columns["group"][number])
            if group >= 0:
                self.q[group] = updated(self.q[group], reward, 0.0, self.options.learning_rate, 0.0)
            self.epsilon = max(self.options.min_epsilon, self.epsilon * self.options.epsilon_decay)
        for page, targets, rows in links_by_page(lesson, columns.numbers(links.id)):
            worth = 1.0 if page < 0 else float(relevance[page])
            for number, row in zip(targets.tolist(), rows.tolist(), strict=True):
                if columns["group"][number] < 0:
                    home = links.host[row] if page < 0 else urls.queue(lesson.fetches.url[page])
                    self._found(number, links.url[row], links.anchor[row], home)
                self._raised(number, worth)

    def _found(self, number: int, url: str, anchor: str, home: str) -> None:
        group = self.place.setdefault(urls.link_group(url, home), len(self.place))
        if group == len(self.waiting):
            self.waiting.append([])
            if group == len(self.q):
                self.q = np.concatenate([self.q, np.zeros(group)])
                self.top = np.concatenate([self.top, np.full(group, -np.inf)])
        self.columns["group"][number] = group
        self.columns["words"][number] = share(self.words, f"{url} {anchor}")

    def _raised(self, number: int, worth: float) -> None:
        columns = self.columns
        priority = columns["words"][number] + worth
        if priority > columns["priority"][number] and not columns["taken"][number]:
            columns["priority"][number] = priority
            self.put_back(number)

    def put_back(self, number: int) -> None:
        priority, group = float(self.columns["priority"][number]), int(self.columns["group"][number])
        heappush(self.waiting[group], (-priority, float(self.rng.random()), number))
        self.top[group] = max(self.top[group], priority)

    def pick(self) -> int | None:
        explores = self.rng.random() < self.epsilon
        while len(awake := np.flatnonzero(self.top > -np.inf)):
            if explores:
                group = int(awake[self.rng.integers(len(awake))])
            else:
                group = int(awake[(self.q + self.top)[awake].argmax()])
            remembered = self.top[group]
            self._clean(group)
            if self.top[group] == remembered or (explores and self.waiting[group]):
                number = heappop(self.waiting[group])[2]
                self.columns["priority"][number] += 1e-9  # its other entries are old from now on
                self._clean(group)
                return number
        return None

    def _clean(self, group: int) -> None:
        """Entries that are taken or were raised since are passed over."""
        waiting, columns = self.waiting[group], self.columns
        while waiting and (columns["taken"][waiting[0][2]] or -waiting[0][0] < columns["priority"][waiting[0][2]]):
            heappop(waiting)
        self.top[group] = -waiting[0][0] if waiting else -np.inf
