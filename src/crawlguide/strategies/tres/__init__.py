"""forager's Select and Tune: a regression tree over eleven features, one candidate of each leaf, and a double DQN."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.core.definition import CLASSIC
from crawlguide.strategies.shared.composition import Composition
from crawlguide.strategies.tres.learner import Tres
from crawlguide.strategies.tres.leaves import Leaves
from crawlguide.strategies.tres.network import weights_of
from crawlguide.strategies.tres.options import Settings

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy


class Options(Settings, frozen=True):
    kind: str = "tres"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    model = weights_of(Path(options.model)) if options.model else None
    learner = Tres(options, seed, goal, model)
    return Composition(Leaves(learner, options.cut, options.per_leaf == "one"), learner, CLASSIC)
