"""What is said over a socket: the messages of the guide protocol with a `type` and an `id` beside their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.messages import VERSION, BudgetMessage, CrawlId, Identifier, Version
from crawlguide.gateway import wire

if TYPE_CHECKING:
    from crawlguide.core.errors import CrawlGuideError

    Pieces = tuple[bytes | memoryview, ...]

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


class _Named(Struct, frozen=True):
    id: Id | None = None


_ENVELOPE = msgspec.json.Decoder(Envelope)
_NAMED = msgspec.json.Decoder(_Named)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def envelope(body: bytes) -> Envelope:
    """Who asks for what. What is wrong with the body beyond that is found when its message is decoded."""
    try:
        return _ENVELOPE.decode(body)
    except _UNREADABLE:
        wire.decode(body, Envelope)
        raise MalformedRequest("body: expected a JSON object") from None


def id_of(body: bytes) -> Id | None:
    """The id of a message with which something else is wrong, so that its sender knows which one."""
    try:
        return _NAMED.decode(body).id
    except _UNREADABLE:
        return None


def framed(kind: str, name: Id | None, message: Any = None) -> Pieces:
    """The frame of a message: `type` and `id`, then its fields."""
    return _joined(kind, name, b"{}" if message is None else wire.encode(message))


def error(name: Id | None, problem: CrawlGuideError) -> Pieces:
    return _joined("error", name, wire.error(problem))


def _joined(kind: str, name: Id | None, fields: bytes) -> Pieces:
    """Fields are encoded once, and never copied but into the frame."""
    comma = b"," if len(fields) > 2 else b""
    return b'{"type":"%b","id":' % kind.encode(), wire.encode(name), comma, memoryview(fields)[1:]
