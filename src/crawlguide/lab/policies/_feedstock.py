"""What both versions of feedstock's focused crawl share: link groups, the binned state, tabular Q-learning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.definition import Fixed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

State = tuple[int, ...]


class Defaults(Fixed, frozen=True):
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


@dataclass
class Agent:
    """ε-greedy over a table of Q; of equals the first. ε falls with every page."""

    options: Defaults
    chance: np.random.Generator
    table: dict[State, dict[str, float]] = field(default_factory=dict)
    epsilon: float = 0.15

    def choose(self, state: State, keys: Sequence[str]) -> str:
        if self.chance.random() < self.epsilon:
            return keys[int(self.chance.integers(len(keys)))]
        known = self.table.get(state, {})
        return max(keys, key=lambda key: known.get(key, 0.0))

    def update(self, state: State, key: str, reward: float, following: State) -> None:
        known = self.table.setdefault(state, {})
        best = max([0.0, *self.table.get(following, {}).values()])
        known[key] = updated(
            known.get(key, 0.0), reward, best, self.options.learning_rate, self.options.discount_factor
        )

    def decay(self) -> None:
        self.epsilon = max(self.options.min_epsilon, self.epsilon * self.options.epsilon_decay)
