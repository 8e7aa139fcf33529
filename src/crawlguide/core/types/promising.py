"""What a store promises, and what came of what it was told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crawlguide.core.tables import F64, U8, U64


@dataclass(frozen=True)
class LeaseTerms:
    """Under which conditions `reserve` hands out URLs: who, for how long, and how politely."""

    crawler_id: str
    request_id: str | None
    at: float
    lease_s: float
    delay_s: float
    horizon_s: float
    strict: bool = False
    factor: float = 0.0  # a queue whose fetches take long waits at least so many times as long
    limit: int = 0  # leases of a queue at once, 0: no bound but its own


LEASED, DEFERRED, TAKEN = 0, 1, 2


@dataclass(frozen=True)
class Grants:
    """One row for each row of the reserved batch: LEASED, DEFERRED or TAKEN, when it may start, and its metadata.

    A row that the same crawler holds for the same request is LEASED again, at its first start: a retry finds its own.
    """

    outcome: U8
    start: F64
    metadata: Sequence[bytes | None]


@dataclass(frozen=True)
class Discovery:
    """What came of `discover`: how many URLs were new, every known URL the links touched, and the new among them."""

    new: int
    touched: U64
    fresh: U64


@dataclass(frozen=True)
class Recorded:
    """What came of `record`: per fetch None or the reason for a skip, and the URLs whose evidence changed."""

    skipped: Sequence[str | None]
    changed: U64
