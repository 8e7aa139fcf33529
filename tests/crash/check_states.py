"""I5: every URL is in exactly one state, the numbers add up, and acknowledged changes of crawls are there."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any

from tests.crash.facts import Fate, assignments, seeds, told
from tests.crash.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.crash.final import Crawled, Final, Known
    from tests.crash.history import Operation

STATES = ("queued", "leased", "done")
LASTING = ("done", "dropped", "fetches", "failed", "relevant", "discovered", "evicted")


def check(operations: Sequence[Operation], final: Final) -> Iterator[Violation]:
    """`operations` are those since which their crawl was not deleted."""
    for name, crawl in final.items():
        mine = [operation for operation in operations if operation.invoke.crawl == name]
        yield from _defined(name, mine, crawl)
        yield from _paused(name, mine, crawl)
        if crawl.urls is not None:
            yield from _sums(name, crawl.numbers, crawl.urls)
            yield from _from_nowhere(name, mine, crawl.urls)
    yield from _missing(operations, final)


def same(live: Final, stored: Final) -> Iterator[Violation]:
    """What a server said before it ended is what its folder says after."""
    if live.keys() != stored.keys():
        yield Violation("I5", f"the server had crawls {sorted(live)}, its folder has {sorted(stored)}")
    for name in live.keys() & stored.keys():
        before, after = live[name], stored[name]
        if before.definition != after.definition or before.paused != after.paused:
            yield Violation("I5", f"{name}: definition or pause changed when the server ended")
        for number in LASTING:
            if before.numbers[number] != after.numbers[number]:
                was, became = before.numbers[number], after.numbers[number]
                yield Violation("I5", f"{name}: {number} was {was} when the server ended, its folder says {became}")


def _sums(name: str, numbers: dict[str, Any], urls: Sequence[Known]) -> Iterator[Violation]:
    found = Counter(known.state for known in urls)
    told = {state: numbers[state] for state in STATES} | {"dropped": sum(numbers["dropped"].values())}
    for state in sorted(found.keys() | told.keys()):
        if found[state] != told.get(state, 0):
            yield Violation("I5", f"{name}: {found[state]} URLs are {state}, but the number says {told.get(state, 0)}")
    if len(urls) != numbers["discovered"] - numbers["evicted"]:
        known = numbers["discovered"] - numbers["evicted"]
        yield Violation("I5", f"{name}: {len(urls)} URLs are there, but {known} were discovered and not evicted")
    for url, times in Counter(known.url for known in urls).items():
        if times > 1:
            yield Violation("I5", f"{name}: {url} is there {times} times")


def _from_nowhere(name: str, operations: Sequence[Operation], urls: Sequence[Known]) -> Iterator[Violation]:
    """Nothing is known that nobody mentioned, nothing done that nobody told."""
    items = list(told(operations))
    mentioned = {url for item in items for url in item.mentioned()}
    mentioned.update(url for operation in operations for url in seeds(operation))
    fetched = {url for item in items if item.fate is not Fate.RELEASED for url in item.pages()}
    for known in urls:
        if known.url not in mentioned:
            yield Violation("I5", f"{name}: {known.url} is {known.state}, but nobody ever mentioned it")
        elif known.state == "done" and known.url not in fetched:
            yield Violation("I5", f"{name}: {known.url} is done, but nobody ever told so")


def _last(operations: Sequence[Operation], kinds: tuple[str, ...]) -> list[Operation]:
    """The last change of these kinds that was answered, and those after it of which nobody knows."""
    changes = [operation for operation in operations if operation.invoke.kind in kinds]
    answered = [number for number, operation in enumerate(changes) if operation.answers]
    return changes[answered[-1] :] if answered else changes


def _defined(name: str, operations: Sequence[Operation], crawl: Crawled) -> Iterator[Violation]:
    """A definition is known by its topic, which changes with every change."""
    possible = [operation.invoke.body["goal"]["topic"] for operation in _last(operations, ("define",))]
    topic = crawl.definition["goal"]["topic"]
    if possible and topic not in possible:
        yield Violation("I5", f"{name}: the last definition is {possible}, but at the end it is {topic!r}")


def _paused(name: str, operations: Sequence[Operation], crawl: Crawled) -> Iterator[Violation]:
    possible = {operation.invoke.kind == "pause" for operation in _last(operations, ("pause", "resume"))}
    if possible and crawl.paused not in possible:
        yield Violation("I5", f"{name}: expected paused to be {possible.pop()}, got {crawl.paused}")
    yield from _given_in_pauses(name, operations)


def _given_in_pauses(name: str, operations: Sequence[Operation]) -> Iterator[Violation]:
    changes = [operation for operation in operations if operation.invoke.kind in ("pause", "resume")]
    pauses = [
        (change.answered, changes[number + 1].sent if number + 1 < len(changes) else inf)
        for number, change in enumerate(changes)
        if change.invoke.kind == "pause"
    ]
    for given in assignments(operations):
        if any(start < given.operation.sent and given.operation.answered < end for start, end in pauses):
            yield Violation("I5", f"{name}: {given.url} was given out while the crawl was paused")


def _missing(operations: Sequence[Operation], final: Final) -> Iterator[Violation]:
    for name in {operation.invoke.crawl for operation in operations if operation.answers} - final.keys():
        yield Violation("I5", f"{name}: the crawl was acknowledged and is not there")
