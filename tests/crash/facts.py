"""What a history says, sorted out: fetches told, URLs assigned, URLs made known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.crash.history import Operation

GRACE = 1.25
DUPLICATE = "duplicate"


class Fate(Enum):
    """What a told fetch makes of its URL."""

    DONE = "done"
    PASSING = "passing"  # a failure that may pass: queued again, later
    RELEASED = "released"


class Word(Enum):
    """What the server said to a told fetch."""

    KEPT = "kept"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Told:
    """One fetch in a report or in an ask's history."""

    operation: Operation
    fetch: dict[str, Any]
    word: Word
    reason: str | None = None

    @property
    def url(self) -> str:
        return str(self.fetch["url"])

    @property
    def place(self) -> tuple[str, str]:
        return self.operation.invoke.crawl, self.url

    @property
    def fetch_of(self) -> tuple[str, str, str]:
        """What makes two tellings the same fetch."""
        return *self.place, str(self.fetch.get("fetch_time"))

    @property
    def fate(self) -> Fate:
        if self.fetch.get("error") == "released":
            return Fate.RELEASED
        status = self.fetch.get("status", 0)
        return Fate.PASSING if status == 429 or status >= 500 else Fate.DONE

    @property
    def failed(self) -> bool:
        return bool(self.fetch.get("status", 0) >= 400)

    def pages(self) -> list[str]:
        """The URLs that this fetch is about: after a redirect there are two."""
        return [self.url, *([self.fetch["redirected_to"]] if "redirected_to" in self.fetch else [])]

    def mentioned(self) -> list[str]:
        return [*self.pages(), *(link["url"] for link in self.fetch.get("outlinks", ()))]


class Assignment(NamedTuple):
    """One URL in one answer. `at`, `expires` and `start` are instants of the server's own clock."""

    operation: Operation
    url: str
    at: float
    expires: float
    not_before_s: float

    @property
    def place(self) -> tuple[str, str]:
        return self.operation.invoke.crawl, self.url

    @property
    def start(self) -> float:
        return self.at + self.not_before_s


def told(operations: Iterable[Operation]) -> Iterator[Told]:
    """Every fetch that was ever told, with what came of it."""
    for operation in operations:
        body = operation.invoke.body
        if operation.invoke.kind == "tell":
            yield from _reported(operation)
        elif operation.invoke.kind == "ask":
            word = Word.KEPT if operation.answers else Word.UNKNOWN
            yield from (Told(operation, fetch, word) for fetch in body["context"].get("recent_history", ()))


def _reported(operation: Operation) -> Iterator[Told]:
    fetches = operation.invoke.body["fetches"]
    if not operation.answers:
        yield from (Told(operation, fetch, Word.UNKNOWN) for fetch in fetches)
        return
    for fetch, result in zip(fetches, operation.answers[0].answer["results"], strict=True):
        reason = result.get("reason")
        kept = result["status"] == "ok" or reason == DUPLICATE  # which says: that is here already
        yield Told(operation, fetch, Word.KEPT if kept else Word.REFUSED, reason)


def seeds(operation: Operation) -> list[str]:
    """The seeds in a call, be it an ask or a list of seeds."""
    body, kind = operation.invoke.body, operation.invoke.kind
    if kind == "seed":
        return list(body["urls"])
    return list(body["context"].get("seed_urls", ())) if kind == "ask" else []


def assignments(operations: Iterable[Operation]) -> Iterator[Assignment]:
    """Every URL that was ever given out; an answer that came twice counts once."""
    for operation in operations:
        if operation.invoke.kind != "ask" or not operation.answers:
            continue
        lease_s = operation.invoke.body["budget"]["timeout_ms"] / 1_000 * GRACE
        for given in operation.answers[0].answer["assigned_urls"]:
            expires = datetime.fromisoformat(given["lease_expires"]).timestamp()
            yield Assignment(operation, given["url"], expires - lease_s, expires, given["not_before_ms"] / 1_000)
