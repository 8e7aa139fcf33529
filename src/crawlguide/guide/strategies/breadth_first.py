"""First discovered, first fetched: a plain queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.crawls import CLASSIC, Fixed
from crawlguide.guide.composition import Composition
from crawlguide.predictors.arrival import First
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "breadth-first"


def build(options: Options, seed: int, goal: Goal) -> Strategy:  # noqa: ARG001 - every strategy is built so
    return Composition(Top(), First(), CLASSIC)
