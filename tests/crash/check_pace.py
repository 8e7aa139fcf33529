"""I3: over the whole fleet and across restarts, starts of one politeness queue are at least its delay apart.

Held against two clocks. The server's own says what it promised: the end of a lease, less its length, is the instant of
the ask. The clients' says whether that clock can be believed: an ask happened between its first sending and the
receipt of its answer, so only what is too early whatever the true instant was is counted.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tests.crash import web
from tests.crash.facts import Word, assignments, told
from tests.crash.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.crash.facts import Assignment, Told
    from tests.crash.history import Operation

ROUNDING_S = 0.0025  # two starts, each the sum of two instants in whole milliseconds
MARGIN_S = 0.1  # between the clients' clock and the server's


class Between(NamedTuple):
    """A start as clients know it: not before, not after."""

    earliest: float
    latest: float
    url: str


def check(operations: Sequence[Operation]) -> Iterator[Violation]:
    queues: dict[str, list[Assignment]] = defaultdict(list)
    for assignment in assignments(operations):
        queues[web.queue(assignment.url)].append(assignment)
    yield from _clock(assignments(operations))
    for mine in queues.values():
        delay_s = web.delay_s(mine[0].url) - ROUNDING_S
        yield from _by_the_server(mine, delay_s)
        yield from _by_the_clients(mine, delay_s)
    for item in told(operations):
        if "retry_after_s" in item.fetch and item.word is Word.KEPT and item.reason is None:
            yield from _impatient(item, queues[web.queue(item.url)])


def _clock(given: Iterable[Assignment]) -> Iterator[Violation]:
    """The server's clock never runs backwards: each client asks one thing after another."""
    last: dict[str, Assignment] = {}
    for now in given:
        client = now.operation.invoke.client
        before = last.get(client, now)
        if now.at < before.at - ROUNDING_S:
            back_s, name = before.at - now.at, now.operation.invoke.operation
            yield Violation("I3", f"{name}: the server's clock went back by {back_s:.3f} s")
        last[client] = now


def _by_the_server(mine: Sequence[Assignment], delay_s: float) -> Iterator[Violation]:
    for first, second in pairwise(sorted(mine, key=lambda assignment: assignment.start)):
        if second.start - first.start < delay_s:
            yield _early(first.url, second.url, second.start - first.start, "by its own clock")


def _by_the_clients(mine: Sequence[Assignment], delay_s: float) -> Iterator[Violation]:
    starts = sorted(_between(assignment) for assignment in mine)
    for number, first in enumerate(starts):
        for second in starts[number + 1 :]:
            if second.earliest - first.earliest >= delay_s:
                break
            apart = max(second.latest - first.earliest, first.latest - second.earliest)
            if apart < delay_s:
                yield _early(first.url, second.url, apart, "at most, by the clients' clock")


def _impatient(item: Told, mine: Sequence[Assignment]) -> Iterator[Violation]:
    """After a Retry-After was acknowledged, nobody is sent there before it is over."""
    over = item.operation.sent + item.fetch["retry_after_s"] - MARGIN_S
    for given in mine:
        if given.operation.sent > item.operation.answered and given.start < over:
            name = item.operation.invoke.operation
            yield Violation(
                "I3", f"{given.url} may start {over - given.start:.3f} s before {name}'s Retry-After is over"
            )


def _between(assignment: Assignment) -> Between:
    wait, operation = assignment.not_before_s, assignment.operation
    return Between(operation.sent + wait, operation.answered + wait, assignment.url)


def _early(first: str, second: str, apart_s: float, clock: str) -> Violation:
    return Violation("I3", f"{first} and {second} may start {apart_s:.4f} s apart, {clock}")
