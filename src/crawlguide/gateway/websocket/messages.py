"""What is said over a socket: the messages of the guide protocol with a `type` and an `id` beside their fields."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from crawlguide.core.messages import VERSION, BudgetMessage, CrawlId, Identifier, Version

TYPES = ("next", "report", "subscribe", "unsubscribe", "release", "stats", "ping")
LEAST_EVERY_S, MOST_EVERY_S = 0.1, 86_400.0
Id = Identifier | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Envelope(Struct, frozen=True):
    """What every message says, whatever it is about."""

    type: Annotated[Literal[TYPES], Meta(description=f"one of {', '.join(TYPES)}")]  # type: ignore[valid-type]
    id: Id


class Subscribe(Struct, frozen=True):
    """Push assignments, at most `budget.max_urls` of them unreported at once."""

    crawler_id: Identifier
    budget: BudgetMessage
    crawl_id: CrawlId = "default"
    mcp_version: Version = VERSION


class Release(Struct, frozen=True):
    """Return everything that a crawler holds."""

    crawler_id: Identifier
    crawl_id: CrawlId = "default"


class StatsWanted(Struct, frozen=True):
    every_s: Annotated[
        float,
        Meta(ge=LEAST_EVERY_S, le=MOST_EVERY_S, description=f"a number from {LEAST_EVERY_S} to {MOST_EVERY_S:.0f}"),
    ] = 1.0
    crawl_id: CrawlId | None = None


class State(Struct, frozen=True):
    crawl_state: str
