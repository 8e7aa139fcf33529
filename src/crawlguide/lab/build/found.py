"""What sources of a web give, before it is written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class FoundLink:
    """A link in its absolute form; `kind` is body or redirect."""

    url: str
    anchor: str
    kind: str = "body"


@dataclass(frozen=True)
class FoundPage:
    """One answer of the web."""

    url: str
    status: int = 200
    title: str = ""
    text: str = ""
    language: str = ""
    size: int = 0
    links: tuple[FoundLink, ...] = ()
    redirect: str | None = None
    label: str = ""  # where it came from, for people


@dataclass
class Found:
    """All that the sources gave: pages, where a crawl may begin, and what was relevant to whom."""

    pages: list[FoundPage] = field(default_factory=list)
    homes: list[str] = field(default_factory=list)
    relevant: dict[str, set[str]] = field(default_factory=dict)
    skipped: int = 0  # what could not be read

    def add(self, other: Found) -> None:
        self.pages += other.pages
        self.homes += other.homes
        self.skipped += other.skipped
        for name, urls in other.relevant.items():
            self.judge(name, urls)

    def judge(self, name: str, urls: Iterable[str]) -> None:
        self.relevant.setdefault(name, set()).update(urls)
