"""forager's Select and Tune: a regression tree over eleven features, one candidate of each leaf, and a double DQN."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.core.definition import CLASSIC
from crawlguide.strategies.shared.composition import Composition
from crawlguide.strategies.tres.learner import Tres
from crawlguide.strategies.tres.network import weights_of
from crawlguide.strategies.tres.options import Options as Options

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    model = weights_of(Path(options.model)) if options.model else None
    tres = Tres(options, seed, goal, model)
    return Composition(tres, tres, CLASSIC)
