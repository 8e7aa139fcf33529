"""I1: what was acknowledged is there at the end exactly once, and an answer given twice is the same twice."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.crash.facts import DUPLICATE, Fate, Word, seeds, told
from tests.crash.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.crash.facts import Told
    from tests.crash.final import Final
    from tests.crash.history import Operation

HARMLESS = {Fate.RELEASED: {"not_leased"}}  # the lease had run out, or an earlier attempt had given it back
REPEATED = ("ask", "tell")


def check(operations: Sequence[Operation], final: Final) -> Iterator[Violation]:
    """`operations` are those since which their crawl was not deleted."""
    items = list(told(operations))
    yield from _answers(operations)
    yield from _refused(items)
    yield from _duplicates(items)
    for name, crawl in final.items():
        mine = [item for item in items if item.operation.invoke.crawl == name]
        yield from _counted(name, mine, crawl.numbers)
        if crawl.urls is not None:
            states = {known.url: known.state for known in crawl.urls}
            yield from _kept(mine, states)
            yield from _seeded([one for one in operations if one.invoke.crawl == name], states)


def _answers(operations: Sequence[Operation]) -> Iterator[Violation]:
    """No fault of the server, no refusal, and to one call one answer."""
    for operation in operations:
        name, kind = operation.invoke.operation, operation.invoke.kind
        for fail in operation.fails:
            yield Violation("I1", f"{name}: {kind} was refused with {fail.status}: {fail.answer[:300]}")
        for unknown in operation.unknowns:
            if unknown.why.startswith("5"):
                yield Violation("I1", f"{name}: {kind} met a fault: {unknown.why[:300]}")
        if kind in REPEATED and any(again.answer != operation.answers[0].answer for again in operation.answers):
            answers = [again.answer for again in operation.answers]
            yield Violation("I1", f"{name}: the same {kind} was answered in {len(answers)} ways: {answers!s:.600}")


def _refused(items: Sequence[Told]) -> Iterator[Violation]:
    for item in items:
        if item.word is Word.REFUSED and item.reason not in HARMLESS.get(item.fate, ()):
            where = item.operation.invoke.operation
            yield Violation("I1", f"{where}: {item.url} was told once and skipped with reason {item.reason!r}")


def _duplicates(items: Sequence[Told]) -> Iterator[Violation]:
    """The same fetch in another report counts once; and only what was told before is a duplicate."""
    fetches: dict[tuple[str, str, str], list[Told]] = defaultdict(list)
    for item in items:
        fetches[item.fetch_of].append(item)
    for item in items:
        name, others = item.operation.invoke.operation, [one for one in fetches[item.fetch_of] if one is not item]
        before = any(one.operation.sent < item.operation.answered for one in others)
        if item.reason == DUPLICATE and not (before or item.operation.retried):
            yield Violation("I1", f"{name}: {item.url} was told once and called a duplicate")
        surely = any(one.word is Word.KEPT and one.operation.answered < item.operation.sent for one in others)
        if surely and item.operation.invoke.kind == "tell" and item.reason is None and item.fate is not Fate.RELEASED:
            yield Violation("I1", f"{name}: {item.url} was told before, and accepted again")


def _counted(crawl: str, items: Sequence[Told], numbers: dict[str, int]) -> Iterator[Violation]:
    """acknowledged <= counted <= acknowledged + unknown."""
    fetches = [item for item in items if item.fate is not Fate.RELEASED]
    failures = [item for item in fetches if item.failed]
    for name, counted in (("fetches", fetches), ("failed", failures)):
        least = len({item.fetch_of for item in counted if item.word is Word.KEPT})
        most = len({item.fetch_of for item in counted if item.word is not Word.REFUSED})
        if not least <= numbers[name] <= most:
            yield Violation("I1", f"{crawl}: {name} is {numbers[name]}, expected {least} to {most}")


def _kept(items: Sequence[Told], states: dict[str, str]) -> Iterator[Violation]:
    """Done pages are done, and everything an acknowledged fetch mentions is known."""
    missing: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if item.word is not Word.KEPT:
            continue
        where = item.operation.invoke.operation
        for url in item.pages() if item.fate is Fate.DONE else ():
            if states.get(url) != "done":
                yield Violation("I1", f"{where}: {url} was told and acknowledged, but is {states.get(url)} at the end")
        missing[where] += [url for url in item.mentioned() if url not in states]
    for where, urls in missing.items():
        if urls:
            yield Violation("I1", f"{where}: {len(urls)} URLs of an acknowledged call are lost, such as {urls[0]}")


def _seeded(operations: Sequence[Operation], states: dict[str, str]) -> Iterator[Violation]:
    for operation in operations:
        lost = [url for url in seeds(operation) if url not in states] if operation.answers else []
        if lost:
            yield Violation("I1", f"{operation.invoke.operation}: {len(lost)} acknowledged seeds are lost: {lost[0]}")
