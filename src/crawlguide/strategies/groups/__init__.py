"""feedstock's focused crawl: links in groups, and what each group of links pays."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from crawlguide.core.definition import CLASSIC, Count, Fixed, Share
from crawlguide.strategies.arms.arm_table import ArmSettings
from crawlguide.strategies.arms.link_features import Scan
from crawlguide.strategies.arms.naming import by_group, by_host, by_place
from crawlguide.strategies.groups.faithful import Feedstock
from crawlguide.strategies.groups.learner import Groups
from crawlguide.strategies.groups.link_groups import merged_by_page
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy

NAMINGS = {"segment": by_group, "host": by_host, "place": by_place}


class Options(Fixed, frozen=True):
    kind: str = "groups"
    epsilon: Share = 0.15
    epsilon_decay: Share = 0.995
    min_epsilon: Share = 0.05
    discount_factor: Share = 0.9
    learning_rate: Share = 0.2
    max_action_groups: Annotated[int, Meta(ge=1, le=1_000, description="an integer from 1 to 1000")] = 10
    group_by: Annotated[Literal["segment", "place", "host"], Meta(description="one of segment, place, host")] = "place"
    optimism: Share = 0.5
    faithful: bool = False
    max_depth: Count = 3
    max_pages: Annotated[int, Meta(ge=1, le=2**53, description="an integer from 1")] = 100


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    scan = Scan(goal)
    if options.faithful:
        return Composition(Top(), Feedstock(options, scan, seed), CLASSIC)
    merging = partial(merged_by_page, most=options.max_action_groups)
    decay = 1.0 - options.learning_rate
    settings = ArmSettings("gr-", NAMINGS[options.group_by], scan, seed, decay=decay, merging=merging)
    return Composition(Top(), Groups(settings, options), CLASSIC)
