"""The most linked first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.crawls import CLASSIC, Fixed
from crawlguide.guide.composition import Composition
from crawlguide.predictors.in_degree import InDegree
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "in-degree"


def build(options: Options, seed: int, goal: Goal) -> Strategy:  # noqa: ARG001 - every strategy is built so
    return Composition(Top(), InDegree(seed), CLASSIC)
