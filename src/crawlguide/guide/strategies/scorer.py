"""feedstock's logistic scorer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.crawls import CLASSIC, Fixed, Share
from crawlguide.guide.composition import Composition
from crawlguide.predictors.arms.book import Kind
from crawlguide.predictors.arms.reading import by_host
from crawlguide.predictors.arms.scanning import Scan
from crawlguide.predictors.scorer import Scorer
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "scorer"
    learning_rate: Share = 0.1
    decay: Share = 0.95


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    kind = Kind("sc-", by_host, Scan(goal), seed, memory=0.98)
    return Composition(Top(), Scorer(kind, options.learning_rate, options.decay), CLASSIC)
