"""Ranked to survivors: one file per rule, named as the rule is named in every answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.policy.robots import RobotsFiles
    from crawlguide.policy.rules.engine import Engine

ASIDE = (
    "addresses",
    "disabled",
    "link_rules",
    "profile",
    "seed_hosts",
    "sizes",
)  # what rules and doors share, and no rule itself


@dataclass(frozen=True)
class Services:
    """What a guide lends to those of its filters that need more than the definition of a crawl."""

    robots: RobotsFiles | None = None
    rules: Engine | None = None  # the operator's, in Rego
    tenant: str = ""  # whose crawl it is
