"""feedstock's link groups, repaired: no link is thrown away, links to other hosts are followed, the reward is credited
to the group of the page that was fetched, and the order of the queue knows Q.

Each pick takes the link with the largest Q of its group + words of the topic in URL and anchor + best relevance of a
page that links here; with chance ε, the best link of any group.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from crawlguide.core import urls
from crawlguide.lab.policies._feedstock import Defaults, updated
from crawlguide.lab.policies._known import Policy, pages, relevances
from crawlguide.lab.policies._picking import Picking
from crawlguide.lab.policies._words import share, topic_words

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson


class Options(Defaults, frozen=True):
    ahead: int = 10


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Groups(options, seed, topic_words(goal)))


class Group:
    def __init__(self) -> None:
        self.waiting: list[tuple[float, float, int]] = []
        self.q = 0.0


class Groups(Picking):
    def __init__(self, options: Options, seed: int, words: tuple[str, ...]) -> None:
        super().__init__(seed, options.ahead, priority=0.0, words=0.0)
        self.options, self.words = options, words
        self.epsilon = options.epsilon
        self.groups: dict[str, Group] = {}
        self.group_of: dict[int, Group] = {}

    def hear(self, lesson: Lesson) -> None:
        known, links, relevance = self.known, lesson.links, relevances(lesson)
        for number, reward in zip(known.numbers(lesson.fetches.id).tolist(), relevance.tolist(), strict=True):
            if number in self.group_of:
                mine = self.group_of[number]
                mine.q = updated(mine.q, reward, 0.0, self.options.learning_rate, 0.0)
            self.epsilon = max(self.options.min_epsilon, self.epsilon * self.options.epsilon_decay)
        for page, targets, rows in pages(lesson, known.numbers(links.id)):
            worth = 1.0 if page < 0 else float(relevance[page])
            for number, row in zip(targets.tolist(), rows.tolist(), strict=True):
                if number not in self.group_of:
                    home = links.host[row] if page < 0 else urls.queue(lesson.fetches.url[page])
                    self._found(number, links.url[row], links.anchor[row], home)
                self._raised(number, worth)

    def _found(self, number: int, url: str, anchor: str, home: str) -> None:
        self.group_of[number] = self.groups.setdefault(urls.link_group(url, home), Group())
        self.known["priority"][number] = -1.0
        self.known["words"][number] = share(self.words, f"{url} {anchor}")

    def _raised(self, number: int, worth: float) -> None:
        known = self.known
        priority = known["words"][number] + worth
        if priority > known["priority"][number] and not known["taken"][number]:
            known["priority"][number] = priority
            self.put_back(number)

    def put_back(self, number: int) -> None:
        entry = (-float(self.known["priority"][number]), float(self.chance.random()), number)
        heappush(self.group_of[number].waiting, entry)

    def pick(self) -> int | None:
        awake = [its for its in self.groups.values() if self._cleaned(its)]
        if not awake:
            return None
        if self.chance.random() < self.epsilon:
            chosen = awake[int(self.chance.integers(len(awake)))]
        else:
            chosen = max(awake, key=lambda its: its.q - its.waiting[0][0])
        number = heappop(chosen.waiting)[2]
        self.known["priority"][number] += 1e-9  # its other entries are old from now on
        return number

    def _cleaned(self, group: Group) -> bool:
        """Whether anything waits there; entries that are taken or were raised since are passed over."""
        waiting, known = group.waiting, self.known
        while waiting and (known["taken"][waiting[0][2]] or -waiting[0][0] < known["priority"][waiting[0][2]]):
            heappop(waiting)
        return bool(waiting)
