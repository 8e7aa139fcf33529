"""Prioritised replay and Double DQN: which transitions are looked at again, and what is learned from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f32s, f64s, i64s, kernel, nothing, one_f64, one_i64, part, records
from crawlguide.strategies.shared.draws import uniform
from crawlguide.strategies.tres.leaves import CRAWLS, LINKS
from crawlguide.strategies.tres.network import FIRST, SECOND, adam, flow_back, layers_of, pass_through
from crawlguide.strategies.tres.options import Settings, param
from crawlguide.strategies.tres.records import MEAN, NEXT, ONLINE, SQUARE, TARGET, TRANSITION, WEIGHTS, X

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, I64
    from crawlguide.strategies.tres.memory import TresMemory

TRANSITIONS = records(TRANSITION)
BETA = 0.4  # how far it is made up for that some are looked at more often than others


@part
def set_priority(tree, place, priority):  # type: ignore[no-untyped-def]
    """A tree of sums over a power of two of places, its root at 1. Sums are made anew, so no error builds up."""
    at = len(tree) // 2 + place
    tree[at] = priority
    while at > 1:
        at //= 2
        tree[at] = tree[2 * at] + tree[2 * at + 1]


@part
def pick(tree, share):  # type: ignore[no-untyped-def]
    """The place at which this share of the sum of all priorities lies."""
    at, left, half = 1, share * tree[1], len(tree) // 2
    while at < half:
        at *= 2
        if left >= tree[at] and tree[at + 1] > 0.0:
            left -= tree[at]
            at += 1
    return at - half


@kernel(nothing(f64s, f64s, one_f64))
def plant(tree, priorities, alpha):  # type: ignore[no-untyped-def]
    half = len(tree) // 2
    for place in range(len(priorities)):
        tree[half + place] = priorities[place] ** alpha
    for at in range(half - 1, 0, -1):
        tree[at] = tree[2 * at] + tree[2 * at + 1]


@kernel(nothing(f64s, f64s, one_i64, one_f64, one_f64))
def put(priorities, tree, place, priority, alpha):  # type: ignore[no-untyped-def]
    """A transition that stands at `place` counts from now on."""
    priorities[place] = priority
    set_priority(tree, place, priority**alpha)


@kernel(nothing(TRANSITIONS, one_i64, f32s, one_f64, LINKS, i64s, CRAWLS, one_i64))
def describe(transitions, place, x, reward, links, ways, crawl, seed):  # type: ignore[no-untyped-def]
    """What was fetched, what it brought, and where one could go from there: some of the page's links, spread evenly."""
    here, count = transitions[place], min(len(ways), NEXT)
    here.reward, here.ways = reward, count
    for column in range(X):
        here.x[column] = x[column]
    start = uniform(seed, crawl[0].draws) * len(ways)
    crawl[0].draws += 1
    for turn in range(count):
        way = ways[np.int64(start + turn * len(ways) / count) % len(ways)]
        for column in range(X):
            here.next[turn, column] = links[way].x[column]


@part
def best_next(online, target, transition, first, second):  # type: ignore[no-untyped-def]
    """Double DQN: the online network says where it would go, the target network what that is worth; 0: nowhere."""
    best, chosen = np.float32(-np.inf), -1
    for way in range(transition.ways):
        value = pass_through(online, transition.next[way], first, second)
        if value > best:
            best, chosen = value, way
    return pass_through(target, transition.next[chosen], first, second) if chosen >= 0 else np.float32(0.0)


@kernel(nothing(TRANSITIONS, f32s, f32s, one_f64, f64s))
def targets(transitions, online, target, gamma, found):  # type: ignore[no-untyped-def]
    """reward + γ · what comes next, for each."""
    first, second = np.empty(FIRST, np.float32), np.empty(SECOND, np.float32)
    here, there = layers_of(online), layers_of(target)
    for row in range(len(transitions)):
        found[row] = transitions[row].reward + gamma * best_next(here, there, transitions[row], first, second)


@kernel(nothing(TRANSITIONS, f64s, f64s, f32s, f32s, f32s, f32s, f64s, CRAWLS, one_i64, i64s))
def train(transitions, priorities, tree, online, target, mean, square, settings, crawl, seed, looked):  # type: ignore[no-untyped-def]
    """One step on a batch of transitions, as many as `looked` has places, and their new priorities.

    `settings`: rate, γ, the exponent of priorities, and what is added to each.
    """
    rate, gamma, alpha, added = settings
    first, second, back = np.empty(FIRST, np.float32), np.empty(SECOND, np.float32), np.empty(FIRST, np.float32)
    slopes, error, weight = np.zeros(WEIGHTS, np.float32), np.empty(len(looked)), np.empty(len(looked))
    layers, there, through = layers_of(online), layers_of(target), layers_of(slopes)
    half, count = len(tree) // 2, len(transitions)
    for row in range(len(looked)):
        looked[row] = pick(tree, uniform(seed, crawl[0].draws))
        crawl[0].draws += 1
        weight[row] = (count * tree[half + looked[row]] / tree[1]) ** -BETA
    heaviest = weight.max()
    for row in range(len(looked)):
        here = transitions[looked[row]]
        wanted = here.reward + gamma * best_next(layers, there, here, first, second)
        error[row] = pass_through(layers, here.x, first, second) - wanted
        flow = np.float32(2.0 * weight[row] / heaviest * error[row] / len(looked))
        flow_back(layers, through, here.x, first, second, flow, back)
    crawl[0].trained += 1
    adam(online, mean, square, slopes, rate, crawl[0].trained)
    for row in range(len(looked)):
        priority = abs(error[row]) + added
        priorities[looked[row]] = priority
        crawl[0].largest = max(crawl[0].largest, priority)
        set_priority(tree, looked[row], priority**alpha)


# Tune: what was fetched becomes a transition, and now and then the network learns from some of them.
#
# Every `replay_period` transitions one step on one batch, and never more: so that what a tell costs is bounded.


class Tuning:
    def __init__(self, settings: Settings, memory: TresMemory) -> None:
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
        describe(memory.transitions.rows, place, x, reward, memory.links.rows, ways, crawl, memory.seed)
        put(memory.priorities.rows, memory.sums, place, crawl[0]["largest"], self._alpha)
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
        train(
            memory.transitions.rows[: memory.transitions.used], memory.priorities.rows, memory.sums,
            memory.weights(ONLINE), memory.weights(TARGET), memory.weights(MEAN), memory.weights(SQUARE),
            np.array((rate, settings.gamma, self._alpha, self._added)), memory.crawl, memory.seed, looked,
        )  # fmt: skip
        memory.priorities.changed(looked)
        memory.networks.changed(np.array([ONLINE, MEAN, SQUARE]))
