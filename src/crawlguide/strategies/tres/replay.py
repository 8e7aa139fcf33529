"""Prioritised replay and Double DQN: which transitions are batch at again, and what is learned from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f32s, f64s, i64s, kernel, nothing, one_f64, one_i64, part, records
from crawlguide.strategies.shared.draws import uniform
from crawlguide.strategies.tres.network import FIRST, SECOND, adam, backward, forward, layers_of
from crawlguide.strategies.tres.options import Options, param
from crawlguide.strategies.tres.records import MEAN, NEXT, ONLINE, SQUARE, TARGET, TRANSITION, WEIGHTS, X
from crawlguide.strategies.tres.tree import CRAWL_RECORDS, LINK_RECORDS

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, I64
    from crawlguide.strategies.tres.tables import Tables

TRANSITION_RECORDS = records(TRANSITION)
BETA = 0.4  # exponent of the importance-sampling weights


@part
def set_priority(tree, place, priority):  # type: ignore[no-untyped-def]
    """`tree` holds sums over a power of two of places, its root at 1. Sums are computed again: no error builds up."""
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
def build_sums(tree, priorities, alpha):  # type: ignore[no-untyped-def]
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


@kernel(nothing(TRANSITION_RECORDS, one_i64, f32s, one_f64, LINK_RECORDS, i64s, CRAWL_RECORDS, one_i64))
def set_transition(transitions, place, x, reward, links, ways, crawl, seed):  # type: ignore[no-untyped-def]
    """A fetch, its reward, and some of the links of its page, spread evenly: where the crawl could go next."""
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
        value = forward(online, transition.next[way], first, second)
        if value > best:
            best, chosen = value, way
    return forward(target, transition.next[chosen], first, second) if chosen >= 0 else np.float32(0.0)


@kernel(nothing(TRANSITION_RECORDS, f32s, f32s, one_f64, f64s))
def targets(transitions, online, target, gamma, out):  # type: ignore[no-untyped-def]
    """reward + γ · what comes next, for each."""
    first, second = np.empty(FIRST, np.float32), np.empty(SECOND, np.float32)
    here, there = layers_of(online), layers_of(target)
    for row in range(len(transitions)):
        out[row] = transitions[row].reward + gamma * best_next(here, there, transitions[row], first, second)


@kernel(nothing(TRANSITION_RECORDS, f64s, f64s, f32s, f32s, f32s, f32s, f64s, CRAWL_RECORDS, one_i64, i64s))
def train(transitions, priorities, tree, online, target, mean, square, settings, crawl, seed, batch):  # type: ignore[no-untyped-def]
    """One step on a batch of transitions, as many as `batch` has places, and their new priorities.

    `settings`: rate, γ, the exponent of priorities, and what is added to each.
    """
    rate, gamma, alpha, added = settings
    first, second, back = np.empty(FIRST, np.float32), np.empty(SECOND, np.float32), np.empty(FIRST, np.float32)
    slopes, error, weight = np.zeros(WEIGHTS, np.float32), np.empty(len(batch)), np.empty(len(batch))
    layers, there, through = layers_of(online), layers_of(target), layers_of(slopes)
    half, count = len(tree) // 2, len(transitions)
    for row in range(len(batch)):
        batch[row] = pick(tree, uniform(seed, crawl[0].draws))
        crawl[0].draws += 1
        weight[row] = (count * tree[half + batch[row]] / tree[1]) ** -BETA
    heaviest = weight.max()
    for row in range(len(batch)):
        here = transitions[batch[row]]
        wanted = here.reward + gamma * best_next(layers, there, here, first, second)
        error[row] = forward(layers, here.x, first, second) - wanted
        flow = np.float32(2.0 * weight[row] / heaviest * error[row] / len(batch))
        backward(layers, through, here.x, first, second, flow, back)
    crawl[0].trained += 1
    adam(online, mean, square, slopes, rate, crawl[0].trained)
    for row in range(len(batch)):
        priority = abs(error[row]) + added
        priorities[batch[row]] = priority
        crawl[0].largest = max(crawl[0].largest, priority)
        set_priority(tree, batch[row], priority**alpha)


class ReplayBuffer:
    """Every fetch becomes a transition; every `replay_period` transitions the network learns from one batch of them.

    One step on one batch and never more, so that the cost of a tell is bounded.
    """

    def __init__(self, options: Options, tables: Tables) -> None:
        self._options, self._tables = options, tables
        self._alpha = param(options.per_alpha).value
        self._added = param(options.per_epsilon).value

    @property
    def round_number(self) -> int:
        """The number of the round: every `pages_per_round` transitions a new one begins."""
        return int(self._tables.crawl[0]["transitions"]) // self._options.pages_per_round

    def add(self, x: F32, reward: float, next_links: I64) -> None:
        """A fetch, its reward and the URLs to choose from afterwards. It takes the place of the oldest."""
        tables, crawl = self._tables, self._tables.crawl
        place = int(crawl[0]["transitions"]) % self._options.replay_capacity
        tables.transitions.fit(place + 1)
        tables.priorities.fit(place + 1)
        set_transition(tables.transitions.rows, place, x, reward, tables.links.rows, next_links, crawl, tables.seed)
        put(tables.priorities.rows, tables.sums, place, crawl[0]["largest"], self._alpha)
        tables.transitions.changed(np.array([place]))
        tables.priorities.changed(np.array([place]))
        crawl[0]["transitions"] += 1
        crawl[0]["reward"] += reward
        self._train_in_time(int(crawl[0]["transitions"]))

    def _train_in_time(self, count: int) -> None:
        options, tables = self._options, self._tables
        trains = count >= options.min_replay_size and count % options.replay_period == 0
        if trains:
            self._train()
        if self._target_is_due(count, trains):
            tables.weights(TARGET)[:] = tables.weights(ONLINE)
            tables.networks.changed(np.array([TARGET]))

    def _target_is_due(self, count: int, trained: bool) -> bool:
        every, unit = self._options.target_update_freq, self._options.target_update_unit
        if unit == "steps":
            return trained and int(self._tables.crawl[0]["trained"]) % every == 0
        return count % (every * (self._options.pages_per_round if unit == "rounds" else 1)) == 0

    def _train(self) -> None:
        tables, options = self._tables, self._options
        rate = options.learning_rate * options.lr_decay**self.round_number
        batch = np.empty(options.batch_size, np.int64)
        train(
            tables.transitions.rows[: tables.transitions.used], tables.priorities.rows, tables.sums,
            tables.weights(ONLINE), tables.weights(TARGET), tables.weights(MEAN), tables.weights(SQUARE),
            np.array((rate, options.gamma, self._alpha, self._added)), tables.crawl, tables.seed, batch,
        )  # fmt: skip
        tables.priorities.changed(batch)
        tables.networks.changed(np.array([ONLINE, MEAN, SQUARE]))
