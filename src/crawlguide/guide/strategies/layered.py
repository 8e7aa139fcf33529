"""The default: learns on every tell which links pay, from all that is known of them, and explores what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.crawls import Fixed, Weights
from crawlguide.guide.composition import Composition
from crawlguide.predictors.layered.learner import Layered
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "layered"


def build(options: Options, seed: int, goal: Goal) -> Strategy:  # noqa: ARG001 - every strategy is built so
    return Composition(Top(), Layered(goal, seed), Weights())
