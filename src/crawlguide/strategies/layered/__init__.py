"""The default: learns on every tell which links pay, from all that is known of them, and explores what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from crawlguide.core.definition import Fixed, Weights
from crawlguide.strategies.layered.learner import Layered
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy


class Options(Fixed, frozen=True):
    kind: str = "layered"
    without: Annotated[
        tuple[str, ...], Meta(max_length=20)
    ] = ()  # parts that shall not count, to see what they are worth
    most_urls: Annotated[int, Meta(ge=10_000, le=100_000_000)] = 1_000_000  # of which evidence is kept


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), Layered(goal, seed, options.without, options.most_urls), Weights())
