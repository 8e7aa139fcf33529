"""Links of relevant pages first: the mean relevance of all pages that link here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.crawls import CLASSIC, Fixed
from crawlguide.guide.composition import Composition
from crawlguide.predictors.parent import Mean
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "best-first-mean"


def build(options: Options, seed: int, goal: Goal) -> Strategy:  # noqa: ARG001 - every strategy is built so
    return Composition(Top(), Mean(seed), CLASSIC)
