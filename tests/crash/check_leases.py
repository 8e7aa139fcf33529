"""I2: a URL goes to a second request only when the first lease has ended; what is done is never given out again."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING

from tests.crash import web
from tests.crash.facts import Fate, Word, assignments, told
from tests.crash.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.crash.facts import Assignment, Told
    from tests.crash.history import Operation

ROUNDING_S = 0.002  # instants come in whole milliseconds
MARGIN_S = 0.1  # between the clients' clock and the server's
Place = tuple[str, str]


def check(operations: Sequence[Operation]) -> Iterator[Violation]:
    given: dict[Place, list[Assignment]] = defaultdict(list)
    for assignment in assignments(operations):
        given[assignment.place].append(assignment)
    items: dict[Place, list[Told]] = defaultdict(list)
    for item in told(operations):
        for url in item.pages():
            items[item.operation.invoke.crawl, url].append(item)
    finished = _finished(told(operations))
    for place, mine in given.items():
        mine.sort(key=lambda assignment: assignment.at)
        yield from _twice(mine, items[place])
        yield from _lost(mine, items[place])
        yield from _again(mine, finished.get(place, inf))
        yield from _denied(mine)


def _twice(mine: Sequence[Assignment], items: Sequence[Told]) -> Iterator[Violation]:
    for first, second in combinations(mine, 2):
        overlap_s = first.expires - second.at
        if overlap_s > ROUNDING_S and not any(_ends(item, first, second) for item in items):
            names = f"{first.operation.invoke.operation} and {second.operation.invoke.operation}"
            yield Violation("I2", f"{first.url} was given to {names}, {overlap_s:.3f} s before the first lease ended")


def _ends(item: Told, first: Assignment, second: Assignment) -> bool:
    """Whether the holder of the first lease may have given it back before the second was granted."""
    in_time = first.operation.sent < item.operation.answered and item.operation.sent < second.operation.answered
    heard = item.word is not Word.REFUSED or item.operation.retried
    return _same_client(item, first) and in_time and heard and item.fate is not Fate.DONE


def _lost(mine: Sequence[Assignment], items: Sequence[Told]) -> Iterator[Violation]:
    """A lease given back in time, and only once, by its holder, of which the server knew nothing any more."""
    for item in items:
        if item.word is not Word.REFUSED or item.fate is not Fate.RELEASED or item.operation.retried:
            continue
        for given in mine:
            ran = given.operation.answered < item.operation.sent and item.operation.answered < given.expires - MARGIN_S
            if ran and _same_client(item, given) and not any(_between(given, other, item) for other in items):
                name = item.operation.invoke.operation
                yield Violation("I2", f"{name}: the lease of {given.url} was given back in time, but was forgotten")


def _between(given: Assignment, other: Told, item: Told) -> bool:
    """Whether something else told of this URL may have ended the lease before."""
    in_time = given.operation.sent < other.operation.answered and other.operation.sent < item.operation.answered
    return other is not item and in_time


def _same_client(item: Told, given: Assignment) -> bool:
    return item.operation.invoke.client == given.operation.invoke.client


def _finished(items: Iterable[Told]) -> dict[Place, float]:
    """Since when each URL is surely done."""
    finished: dict[Place, float] = {}
    for item in items:
        if item.fate is Fate.DONE and item.word is Word.KEPT:
            for url in item.pages():
                place = item.operation.invoke.crawl, url
                finished[place] = min(finished.get(place, inf), item.operation.answered)
    return finished


def _again(mine: Sequence[Assignment], finished: float) -> Iterator[Violation]:
    for assignment in mine:
        if assignment.operation.sent > finished:
            late_s, name = assignment.operation.sent - finished, assignment.operation.invoke.operation
            yield Violation("I2", f"{assignment.url} was given to {name} {late_s:.3f} s after it was acknowledged done")


def _denied(mine: Sequence[Assignment]) -> Iterator[Violation]:
    for assignment in mine:
        if web.queue(assignment.url).endswith(web.DENIED):
            yield Violation("I2", f"{assignment.url} was given out, but its domain is denied")
