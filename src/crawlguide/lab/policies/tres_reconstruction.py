"""forager's Select and Tune, a *reconstruction* from its documentation: its source was not seen.

A regression tree over eleven features splits the frontier by reward; one URL is drawn from each leaf, a double DQN
values them, and the best goes first. ε falls from 1 to 0.05 over the first 500 pages; training begins after 500. The
features of a link are those of the moment when it was found. Words of the topic in anchor and URL stand in for
forager's embeddings. Where the documentation leaves the choice, the reading that is better for it was taken: the target
network follows every 100 pages.

The product's own strategy of this kind is `tres`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.core.outcomes import is_failure
from crawlguide.lab.policies._shared import (
    FIRST_CAPACITY,
    Picking,
    PicksAhead,
    Policy,
    links_by_page,
    relevances,
    share,
    topic_words,
)

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64
    from crawlguide.core.types import Lesson

FEATURES = 11
MAX_DEPTH, MIN_SAMPLES = 18, 5  # of the tree
REPLAY_CAPACITY, BATCH_SIZE = 50_000, 64
LEARNING_RATE, LR_DECAY, GAMMA = 0.001, 0.995, 0.99
REPLAY_PERIOD, TARGET_UPDATE_FREQ, ROUND = 4, 100, 50  # transitions; the rate decays once a round of forager's
PER_ALPHA, PER_BETA, PER_EPSILON = 0.6, 0.4, 1e-4
NEXT_KEPT = 32  # links of a page, for the maximum over what can be done next
SLOPE, BETA, BETA_SQUARED, SMALL, CLIP = 0.1, 0.9, 0.999, 1e-8, 1.0  # of LeakyReLU; of Adam


class Options(PicksAhead, frozen=True):
    """forager's own names and defaults."""

    epsilon: float = 1.0
    epsilon_min: float = 0.05
    decay_steps: int = 500
    min_replay_size: int = 500


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(TresReconstruction(options, seed, topic_words(goal)))


class Domain:
    """What forager's profile of a domain keeps."""

    def __init__(self) -> None:
        self.fetched, self.failed, self.score = 0, 0, 0.0

    def features(self) -> tuple[float, float, float]:
        count = max(self.fetched, 1)
        return self.score / count, min(np.log1p(self.fetched) / 8.0, 1.0), self.failed / count


class TresReconstruction(Picking):
    def __init__(self, options: Options, seed: int, words: tuple[str, ...]) -> None:
        super().__init__(seed, options.ahead, depth=0.0, reward=0.0, kept=0.0)
        self.options, self.words = options, words
        self.tree, self.replay = Tree(), Replay(FEATURES, self.rng, options.min_replay_size)
        self.x = np.zeros((FIRST_CAPACITY, FEATURES))
        self.domains: dict[str, Domain] = defaultdict(Domain)
        self.round = 0
        self.fetched = 0

    def observe(self, lesson: Lesson) -> None:
        columns, relevance = self.columns, relevances(lesson)
        fetched, number = columns.numbers(lesson.fetches.id), columns.numbers(lesson.links.id)
        self._grow()
        self.round += 1
        links = {page: (targets, rows) for page, targets, rows in links_by_page(lesson, number)}
        none = np.zeros(0, np.int64)
        for page, reward in enumerate(relevance.tolist()):
            self._judge(int(fetched[page]), lesson, page, reward)
        for page, (targets, rows) in links.items():
            self._discover(lesson, page, fetched, relevance, targets, rows)
        for page, reward in enumerate(relevance.tolist()):
            self._experience(int(fetched[page]), reward, links.get(page, (none, none))[0])

    def _judge(self, number: int, lesson: Lesson, page: int, reward: float) -> None:
        self.columns["reward"][number] = reward
        domain = self.domains[urls.queue(lesson.fetches.url[page])]
        domain.fetched += 1
        domain.failed += is_failure(int(lesson.fetches.status[page]), str(lesson.fetches.error[page]))
        domain.score += reward

    def _discover(self, lesson: Lesson, page: int, fetched: I64, relevance: F64, targets: I64, rows: I64) -> None:
        columns, links = self.columns, lesson.links
        parent, depth, siblings = 0.0, 0.0, 0.0
        if page >= 0:
            parent, depth = float(relevance[page]), float(columns["depth"][fetched[page]]) + 1.0
            siblings = self._siblings(targets)
        for number, row in zip(targets.tolist(), rows.tolist(), strict=True):
            if columns["kept"][number]:
                continue
            columns["kept"][number], columns["depth"][number] = 1.0, depth
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
        fetched = targets[self.columns["taken"][targets] > 0.0]
        return float(self.columns["reward"][fetched].mean()) if len(fetched) else 0.0

    def _experience(self, number: int, reward: float, targets: I64) -> None:
        self.fetched += 1
        self.tree.experience(number, self.x, self.columns["reward"])
        self.replay.add(self.x[number], reward, self.x[targets])

    def pick(self) -> int | None:
        awake = [leaf for leaf in self.tree.leaves if leaf.waiting]
        if not awake:
            return None
        places = (self.rng.random(len(awake)) * [len(leaf.waiting) for leaf in awake]).astype(int).tolist()
        if self.rng.random() < self._epsilon():
            chosen = int(self.rng.integers(len(awake)))
        else:
            candidates = [leaf.waiting[place] for leaf, place in zip(awake, places, strict=True)]
            chosen = int(self.replay.values(self.x[candidates]).argmax())
        return _removed(awake[chosen], places[chosen])

    def put_back(self, number: int) -> None:
        self.tree.leaf(self.x[number]).waiting.append(number)

    def _epsilon(self) -> float:
        options = self.options
        done = min(self.fetched / options.decay_steps, 1.0)
        return options.epsilon + done * (options.epsilon_min - options.epsilon)

    def _grow(self) -> None:
        if len(self.columns) > len(self.x):
            more = max(len(self.columns), 2 * len(self.x)) - len(self.x)
            self.x = np.concatenate([self.x, np.zeros((more, FEATURES))])


def _removed(leaf: Node, place: int) -> int:
    leaf.waiting[place], leaf.waiting[-1] = leaf.waiting[-1], leaf.waiting[place]
    return leaf.waiting.pop()


@dataclass
class Node:
    """A leaf, until it splits: then rows with x[feature] ≤ threshold go left."""

    depth: int = 0
    waiting: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    feature: int = -1
    threshold: float = 0.0
    left: Node | None = None
    right: Node | None = None


class Tree:
    """TRES's tree frontier: a regression tree over experience, whose leaves hold the URLs that wait.

    Only the leaf that gets an experience is tested for a split; nothing is ever merged.
    """

    def __init__(self) -> None:
        self.root = Node()
        self.leaves = [self.root]

    def leaf(self, x: F64) -> Node:
        node = self.root
        while node.left is not None and node.right is not None:
            node = node.left if x[node.feature] <= node.threshold else node.right
        return node

    def experience(self, number: int, features: F64, rewards: F64) -> None:
        """A fetched URL and its reward; `features` and `rewards` are the columns of all."""
        node = self.leaf(features[number])
        node.seen.append(number)
        if len(node.seen) >= MIN_SAMPLES and node.depth < MAX_DEPTH:
            seen = np.array(node.seen)
            split = best_split(features[seen], rewards[seen])
            if split is not None:
                self._split(node, *split, features)

    def _split(self, node: Node, feature: int, threshold: float, features: F64) -> None:
        node.feature, node.threshold = feature, threshold
        node.left, node.right = Node(node.depth + 1), Node(node.depth + 1)
        for members, name in ((node.waiting, "waiting"), (node.seen, "seen")):
            rows = np.array(members, np.int64)
            goes_left = features[rows, feature] <= threshold
            setattr(node.left, name, rows[goes_left].tolist())
            setattr(node.right, name, rows[~goes_left].tolist())
        node.waiting, node.seen = [], []
        self.leaves.remove(node)
        self.leaves += [node.left, node.right]


def best_split(x: F64, reward: F64) -> tuple[int, float] | None:
    """The feature and value with the largest reduction of variance; None where nothing reduces it."""
    total, count = reward.sum(), len(reward)
    best, split = 1e-12, None
    for feature in range(x.shape[1]):
        order = np.argsort(x[:, feature], kind="stable")
        value, sums = x[order, feature], np.cumsum(reward[order])
        ends = np.flatnonzero(np.diff(value) > 0)
        if not len(ends):
            continue
        left = ends + 1
        gain = sums[ends] ** 2 / left + (total - sums[ends]) ** 2 / (count - left) - total**2 / count
        top = int(gain.argmax())
        if gain[top] > best:
            best, split = float(gain[top]), (feature, float(value[ends[top]]))
    return split


class Replay:
    """Double DQN with prioritised replay, by forager's names and defaults."""

    def __init__(self, features: int, rng: np.random.Generator, min_size: int) -> None:
        self._rng, self._min_size = rng, min_size
        self._online = Network((features, 30, 15, 1), rng)
        self._target = Network((features, 30, 15, 1), rng)
        self._online.copy_to(self._target)
        self._x: list[F64] = []
        self._reward: list[float] = []
        self._next: list[F64] = []
        self._priority = np.zeros(REPLAY_CAPACITY)
        self._rate = LEARNING_RATE

    def values(self, x: F64) -> F64:
        return self._online.values(x)

    def add(self, x: F64, reward: float, following: F64) -> None:
        """What was fetched, what it brought, and the links that could be followed from there."""
        if len(self._x) >= REPLAY_CAPACITY:
            return
        if len(following) > NEXT_KEPT:
            following = following[self._rng.choice(len(following), NEXT_KEPT, replace=False)]
        self._priority[len(self._x)] = max(float(self._priority.max()), 1.0)
        self._x.append(x.copy())
        self._reward.append(reward)
        self._next.append(following)
        count = len(self._x)
        if count >= self._min_size and count % REPLAY_PERIOD == 0:
            self._train()
        if count % TARGET_UPDATE_FREQ == 0:
            self._online.copy_to(self._target)
        if count % ROUND == 0:
            self._rate *= LR_DECAY

    def _train(self) -> None:
        count = len(self._x)
        chance = self._priority[:count] ** PER_ALPHA
        chance /= chance.sum()
        rows = self._rng.choice(count, BATCH_SIZE, p=chance)
        importance = (count * chance[rows]) ** -PER_BETA
        x = np.array([self._x[row] for row in rows])
        reward = np.array([self._reward[row] for row in rows])
        target = reward + GAMMA * self._best_next([self._next[row] for row in rows])
        error = self._online.step(x, target, importance / importance.max(), self._rate)
        self._priority[rows] = np.abs(error) + PER_EPSILON

    def _best_next(self, following: list[F64]) -> F64:
        """The target network's value of what the online network would do; 0 where there is nothing to do."""
        best, some = np.zeros(len(following)), [row for row, links in enumerate(following) if len(links)]
        if not some:
            return best
        links = np.concatenate([following[row] for row in some])
        online, target = self._online.values(links), self._target.values(links)
        start = 0
        for row in some:
            end = start + len(following[row])
            best[row] = target[start + int(online[start:end].argmax())]
            start = end
        return best


class Network:
    """forager's network, 11 → 30 → 15 → 1 with LeakyReLU, and Adam: in numpy, so that one seed gives one history."""

    def __init__(self, sizes: tuple[int, ...], rng: np.random.Generator) -> None:
        self.weights: list[F64] = []
        for inner, outer in pairwise(sizes):
            self.weights += [rng.normal(0.0, np.sqrt(2.0 / inner), (inner, outer)), np.zeros(outer)]
        self._mean = [np.zeros_like(weight) for weight in self.weights]
        self._square = [np.zeros_like(weight) for weight in self.weights]
        self._steps = 0

    def values(self, x: F64) -> F64:
        return self._layers(x)[-1][:, 0]

    def copy_to(self, other: Network) -> None:
        other.weights = [weight.copy() for weight in self.weights]

    def step(self, x: F64, target: F64, importance: F64, rate: float) -> F64:
        """One step of Adam on the weighted square error; returns the errors."""
        layers = self._layers(x)
        error = layers[-1][:, 0] - target
        flow = (2.0 * importance * error / len(error))[:, None]
        slopes: list[F64] = []
        for layer in range(len(self.weights) // 2 - 1, -1, -1):
            slopes = [layers[layer].T @ flow, flow.sum(0), *slopes]
            if layer:
                flow = (flow @ self.weights[2 * layer].T) * np.where(layers[layer] > 0, 1.0, SLOPE)
        self._adam(slopes, rate)
        return error

    def _layers(self, x: F64) -> list[F64]:
        layers = [x]
        for layer in range(len(self.weights) // 2):
            x = x @ self.weights[2 * layer] + self.weights[2 * layer + 1]
            if 2 * layer + 2 < len(self.weights):
                x = np.where(x > 0, x, SLOPE * x)
            layers.append(x)
        return layers

    def _adam(self, slopes: list[F64], rate: float) -> None:
        self._steps += 1
        for place, slope in enumerate(slopes):
            cut = np.clip(slope, -CLIP, CLIP)
            self._mean[place] = BETA * self._mean[place] + (1.0 - BETA) * cut
            self._square[place] = BETA_SQUARED * self._square[place] + (1.0 - BETA_SQUARED) * cut**2
            mean = self._mean[place] / (1.0 - BETA**self._steps)
            square = self._square[place] / (1.0 - BETA_SQUARED**self._steps)
            self.weights[place] = self.weights[place] - rate * mean / (np.sqrt(square) + SMALL)
