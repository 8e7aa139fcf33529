"""forager's Select and Tune, a *reconstruction* from its documentation: its source was not seen.

A regression tree over eleven features splits the frontier by reward; one URL is drawn from each leaf, a double DQN
values them, and the best goes first. ε falls from 1 to 0.05 over the first 500 pages; training begins after 500. The
features of a link are those of the moment when it was found. Words of the topic in anchor and URL stand in for
forager's embeddings. Where the documentation leaves the choice, the reading that is better for it was taken: the target
network follows every 100 pages.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.outcomes import is_failure
from crawlguide.lab.policies._known import Policy, pages, relevances
from crawlguide.lab.policies._picking import Ahead, Picking
from crawlguide.lab.policies._replay import Replay
from crawlguide.lab.policies._tree import Node, Tree
from crawlguide.lab.policies._words import share, topic_words

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64
    from crawlguide.core.types import Lesson

FEATURES = 11
FIRST_ROOM = 1_024


class Options(Ahead, frozen=True):
    """forager's own names and defaults."""

    epsilon: float = 1.0
    epsilon_min: float = 0.05
    decay_steps: int = 500
    min_replay_size: int = 500


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(Tres(options, seed, topic_words(goal)))


class Domain:
    """What forager's profile of a domain keeps."""

    def __init__(self) -> None:
        self.fetched, self.failed, self.score = 0, 0, 0.0

    def features(self) -> tuple[float, float, float]:
        count = max(self.fetched, 1)
        return self.score / count, min(np.log1p(self.fetched) / 8.0, 1.0), self.failed / count


class Tres(Picking):
    def __init__(self, options: Options, seed: int, words: tuple[str, ...]) -> None:
        super().__init__(seed, options.ahead, depth=0.0, reward=0.0, kept=0.0)
        self.options, self.words = options, words
        self.tree, self.replay = Tree(), Replay(FEATURES, self.chance, options.min_replay_size)
        self.x = np.zeros((FIRST_ROOM, FEATURES))
        self.domains: dict[str, Domain] = defaultdict(Domain)
        self.round = 0
        self.fetched = 0

    def hear(self, lesson: Lesson) -> None:
        known, relevance = self.known, relevances(lesson)
        fetched, number = known.numbers(lesson.fetches.id), known.numbers(lesson.links.id)
        self._make_room()
        self.round += 1
        found = {page: (targets, rows) for page, targets, rows in pages(lesson, number)}
        none = np.zeros(0, np.int64)
        for page, reward in enumerate(relevance.tolist()):
            self._judge(int(fetched[page]), lesson, page, reward)
        for page, (targets, rows) in found.items():
            self._discover(lesson, page, fetched, relevance, targets, rows)
        for page, reward in enumerate(relevance.tolist()):
            self._experience(int(fetched[page]), reward, found.get(page, (none, none))[0])

    def _judge(self, number: int, lesson: Lesson, page: int, reward: float) -> None:
        self.known["reward"][number] = reward
        domain = self.domains[urls.queue(lesson.fetches.url[page])]
        domain.fetched += 1
        domain.failed += is_failure(int(lesson.fetches.status[page]), str(lesson.fetches.error[page]))
        domain.score += reward

    def _discover(self, lesson: Lesson, page: int, fetched: I64, relevance: F64, targets: I64, rows: I64) -> None:
        known, links = self.known, lesson.links
        parent, depth, siblings = 0.0, 0.0, 0.0
        if page >= 0:
            parent, depth = float(relevance[page]), float(known["depth"][fetched[page]]) + 1.0
            siblings = self._siblings(targets)
        for number, row in zip(targets.tolist(), rows.tolist(), strict=True):
            if known["kept"][number]:
                continue
            known["kept"][number], known["depth"][number] = 1.0, depth
            url, domain = links.url[row], self.domains[links.host[row]]
            parts = urls.parts(url)
            words = max(share(self.words, links.anchor[row]), share(self.words, url))
            self.x[number] = (
                min(depth / 10.0, 1.0), *domain.features(), parent, words, siblings,
                min(parts.path.count("/") / 10.0, 1.0), float(bool(parts.query)), 1.0, min(self.round / 200.0, 1.0),
            )  # fmt: skip
            self.tree.leaf(self.x[number]).waiting.append(number)

    def _siblings(self, targets: I64) -> float:
        """The mean score of those of the page's links that were fetched before."""
        known = targets[self.known["taken"][targets] > 0.0]
        return float(self.known["reward"][known].mean()) if len(known) else 0.0

    def _experience(self, number: int, reward: float, targets: I64) -> None:
        self.fetched += 1
        self.tree.experience(number, self.x, self.known["reward"])
        self.replay.add(self.x[number], reward, self.x[targets])

    def pick(self) -> int | None:
        awake = [leaf for leaf in self.tree.leaves if leaf.waiting]
        if not awake:
            return None
        places = (self.chance.random(len(awake)) * [len(leaf.waiting) for leaf in awake]).astype(int).tolist()
        if self.chance.random() < self._epsilon():
            chosen = int(self.chance.integers(len(awake)))
        else:
            drawn = [leaf.waiting[place] for leaf, place in zip(awake, places, strict=True)]
            chosen = int(self.replay.values(self.x[drawn]).argmax())
        return _removed(awake[chosen], places[chosen])

    def put_back(self, number: int) -> None:
        self.tree.leaf(self.x[number]).waiting.append(number)

    def _epsilon(self) -> float:
        options = self.options
        done = min(self.fetched / options.decay_steps, 1.0)
        return options.epsilon + done * (options.epsilon_min - options.epsilon)

    def _make_room(self) -> None:
        if len(self.known) > len(self.x):
            more = max(len(self.known), 2 * len(self.x)) - len(self.x)
            self.x = np.concatenate([self.x, np.zeros((more, FEATURES))])


def _removed(leaf: Node, place: int) -> int:
    leaf.waiting[place], leaf.waiting[-1] = leaf.waiting[-1], leaf.waiting[place]
    return leaf.waiting.pop()
