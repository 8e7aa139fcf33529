"""What is known of single URLs and of the links between them, as people and other stores see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from crawlguide.core.tables import I32, U64, Table, Text


@dataclass(frozen=True)
class UrlRecord:
    """One URL as `scan` and `find` show it."""

    url: str
    state: str
    reason: str | None
    priority: float
    crawler_id: str | None
    lease_expires: float | None
    status: int | None
    fetched: float | None


class KnownUrl(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Everything a crawl knows of one URL, as it goes out of one store and into another; one line of an export."""

    url: str
    state: Literal["queued", "done", "dropped"]
    reason: Annotated[str, Meta(max_length=200)] | None = None
    priority: float | None = None
    given: float | None = None
    relevance: Annotated[float, Meta(ge=0, le=1)] | None = None
    discovered: float | None = None
    fetched: float | None = None
    due: Annotated[float, Meta(ge=0, le=1e12)] | None = None
    parent_sum: float | None = None
    parent_best: float | None = None
    depth: Annotated[int, Meta(ge=0, le=32_767)] = 0
    max_depth: Annotated[int, Meta(ge=-1, le=32_767)] = -1
    status: Annotated[int, Meta(ge=0, le=999)] = 0
    tries: Annotated[int, Meta(ge=0, le=255)] = 0
    parents: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    metadata: dict[str, Any] | None = None


class KnownLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    url: str
    anchor: str = ""
    position: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0


class KnownPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The links of one page; another line of an export."""

    page: str
    links: list[KnownLink]


@dataclass(frozen=True)
class Paths(Table):
    """Rows of the link table: from which page to which, with which words, at which place."""

    parent: U64
    child: U64
    anchor: Text
    position: I32

    def __len__(self) -> int:
        return len(self.parent)
