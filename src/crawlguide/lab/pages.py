"""The words of the lab: what a fetch reveals, what is looked for, and what a web can be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_LINKS = 2_000  # of a page are told, by the rules of the lab


@dataclass(frozen=True, slots=True)
class Link:
    """A link as the page says it; `position` counts from 0 in the order of the page."""

    url: str
    anchor: str
    position: int


@dataclass(frozen=True, slots=True)
class Page:
    """What a fetch reveals, and nothing else.

    A redirect (`status` 301) has no content: `redirected_to` names the target, and going there is another fetch.
    A fetch that got no answer has `status` 0 and an `error` in the words of the guide protocol.
    """

    url: str
    status: int
    title: str = ""
    text: str = ""
    size: int = 0
    language: str = ""
    links: tuple[Link, ...] = ()
    redirected_to: str | None = None
    error: str | None = None
    elapsed_ms: float | None = None
    content_hash: str | None = None


@dataclass(frozen=True)
class Task:
    """Something to look for. All URLs are in canonical form.

    `seeds` are the kinds of start the web has: "portal" (home pages), "near" (relevant pages), "far" (others).
    `relevant` is the gold: for evaluation and references only.
    """

    name: str
    seeds: Mapping[str, tuple[str, ...]]
    relevant: frozenset[str]
    goal: str | None = None  # what the guide is told to look for; None: the name

    @property
    def topic(self) -> str:
        return self.name if self.goal is None else self.goal


class Web(Protocol):
    """A web to crawl in the lab. A policy never gets it; `is_relevant`, `waste` and `reachable` are for evaluation."""

    @property
    def name(self) -> str: ...

    def tasks(self) -> Sequence[Task]: ...

    def fetch(self, url: str) -> Page:
        """Canonical or as a link says it. A URL that the web does not hold is a page with status 404."""
        ...

    def is_relevant(self, task: Task, url: str) -> bool: ...

    def waste(self, url: str) -> str | None:
        """Why fetching this URL is a waste: "trap", "duplicate", "dead" or "error"; None if it is not."""
        ...

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        """The pages (canonical) one gets to from `seeds` by following links; traps are not followed."""
        ...
