"""A bandit over hosts or parts of them, with context: Thompson sampling, or LinUCB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from crawlguide.core.crawls import CLASSIC, Factor, Fixed
from crawlguide.guide.composition import Composition
from crawlguide.predictors.arms.book import Kind
from crawlguide.predictors.arms.reading import by_folder, by_host, by_place
from crawlguide.predictors.arms.scanning import Scan
from crawlguide.predictors.bandit import HOPE, Bandit
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy

NAMINGS = {"host": by_host, "place": by_place, "template": by_folder}


class Options(Fixed, frozen=True):
    kind: str = "bandit"
    algorithm: Literal["thompson", "linucb"] = "thompson"
    arms: Literal["host", "place", "template"] = "place"
    forget: Annotated[float, Meta(ge=0.5, le=1, description="a number from 0.5 to 1")] = 0.98
    doubt: Annotated[float, Meta(gt=0, le=100, description="a number up to 100")] = 2.0
    exploration: Factor = 0.3


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    kind = Kind("ba-", NAMINGS[options.arms], Scan(goal), seed, opening=HOPE, memory=options.forget)
    linucb = options.algorithm == "linucb"
    bandit = Bandit(kind, linucb=linucb, exploration=options.exploration, doubt=options.doubt)
    return Composition(Top(), bandit, CLASSIC)
