"""Tune: what was fetched becomes a transition, and now and then the network learns from some of them.

Every `replay_period` transitions one step on one batch, and never more: so that what a tell costs is bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.predictors.tres import replay
from crawlguide.predictors.tres.options import Settings, param
from crawlguide.predictors.tres.records import MEAN, ONLINE, SQUARE, TARGET

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, I64
    from crawlguide.predictors.tres.memory import Memory


class Tuning:
    def __init__(self, settings: Settings, memory: Memory) -> None:
        self._settings, self._memory = settings, memory
        self._alpha = param(settings.per_alpha).value
        self._added = param(settings.per_epsilon).value

    @property
    def turn(self) -> int:
        """The number of the round: so many pages make one."""
        return int(self._memory.crawl[0]["transitions"]) // self._settings.pages_per_round

    def add(self, x: F32, reward: float, ways: I64) -> None:
        """What was fetched, what it brought, and the URLs one could go to from there. The oldest makes room."""
        memory, crawl = self._memory, self._memory.crawl
        place = int(crawl[0]["transitions"]) % self._settings.replay_capacity
        memory.transitions.fit(place + 1)
        memory.priorities.fit(place + 1)
        replay.describe(memory.transitions.rows, place, x, reward, memory.links.rows, ways, crawl, memory.seed)
        replay.put(memory.priorities.rows, memory.sums, place, crawl[0]["largest"], self._alpha)
        memory.transitions.changed(np.array([place]))
        memory.priorities.changed(np.array([place]))
        crawl[0]["transitions"] += 1
        crawl[0]["reward"] += reward
        self._tune(int(crawl[0]["transitions"]))

    def _tune(self, count: int) -> None:
        settings, memory = self._settings, self._memory
        if count >= settings.min_replay_size and count % settings.replay_period == 0:
            self._train()
        every = settings.target_update_freq
        if settings.target_update_unit == "rounds":
            every *= settings.pages_per_round
        if count % every == 0:
            memory.weights(TARGET)[:] = memory.weights(ONLINE)
            memory.networks.changed(np.array([TARGET]))

    def _train(self) -> None:
        memory, settings = self._memory, self._settings
        rate = settings.learning_rate * settings.lr_decay**self.turn
        looked = np.empty(settings.batch_size, np.int64)
        replay.train(
            memory.transitions.rows[: memory.transitions.used], memory.priorities.rows, memory.sums,
            memory.weights(ONLINE), memory.weights(TARGET), memory.weights(MEAN), memory.weights(SQUARE),
            np.array((rate, settings.gamma, self._alpha, self._added)), memory.crawl, memory.seed, looked,
        )  # fmt: skip
        memory.priorities.changed(looked)
        memory.networks.changed(np.array([ONLINE, MEAN, SQUARE]))
