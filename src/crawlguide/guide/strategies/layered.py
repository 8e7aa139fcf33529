"""The default: evidence from all parents, the host's record and distance, weighed by all terms of the score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.crawls import Fixed, Weights
from crawlguide.guide.composition import Composition
from crawlguide.predictors.heuristic import Heuristic
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "layered"


def build(options: Options, seed: int, goal: Goal) -> Strategy:  # noqa: ARG001 - every strategy is built so
    return Composition(Top(), Heuristic(), Weights())
