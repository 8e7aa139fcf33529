"""Links found on the most relevant page first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.crawls import CLASSIC, Fixed
from crawlguide.guide.composition import Composition
from crawlguide.predictors.parent import Parent
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "best-first"


def build(options: Options, seed: int, goal: Goal) -> Strategy:  # noqa: ARG001 - every strategy is built so
    return Composition(Top(), Parent(), CLASSIC)
