"""forager's Tune: double DQN with prioritised replay, by its names and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.lab.policies._network import Network

if TYPE_CHECKING:
    from crawlguide.core.tables import F64

REPLAY_CAPACITY, BATCH_SIZE = 50_000, 64
LEARNING_RATE, LR_DECAY, GAMMA = 0.001, 0.995, 0.99
REPLAY_PERIOD, TARGET_UPDATE_FREQ, ROUND = 4, 100, 50  # transitions; forager's round, by which the rate decays
PER_ALPHA, PER_BETA, PER_EPSILON = 0.6, 0.4, 1e-4
NEXT_KEPT = 32  # of a page's links, for the maximum over what can be done next


class Replay:
    def __init__(self, features: int, chance: np.random.Generator, min_size: int) -> None:
        self._chance, self._min_size = chance, min_size
        self._online = Network((features, 30, 15, 1), chance)
        self._target = Network((features, 30, 15, 1), chance)
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
            following = following[self._chance.choice(len(following), NEXT_KEPT, replace=False)]
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
        rows = self._chance.choice(count, BATCH_SIZE, p=chance)
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
