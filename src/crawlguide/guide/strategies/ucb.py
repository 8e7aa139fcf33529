"""feedstock's UCB1 bandit over URL templates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from crawlguide.core.crawls import CLASSIC, Factor, Fixed, Share
from crawlguide.guide.composition import Composition
from crawlguide.predictors.arms.book import Kind
from crawlguide.predictors.arms.reading import by_folder, by_template
from crawlguide.predictors.arms.scanning import Scan
from crawlguide.predictors.ucb import Ucb
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "ucb"
    exploration: Factor = 0.1
    reward_decay: Share = 0.95
    faithful: bool = False


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    exploration = math.sqrt(2.0) if options.faithful else options.exploration
    naming = by_template if options.faithful else by_folder
    kind = Kind("uc-", naming, Scan(goal), seed, memory=options.reward_decay)
    return Composition(Top(), Ucb(kind, exploration, faithful=options.faithful), CLASSIC)
