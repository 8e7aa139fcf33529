"""Holds what clients saw against what is there at the end. Invariants are numbered as in the fault-test plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.crash import check_acks, check_leases, check_pace, check_states
from tests.crash.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.crash.final import Final
    from tests.crash.history import Note, Operation

HEALED = "healed"


def check(operations: Sequence[Operation], notes: Sequence[Note], final: Final) -> list[Violation]:
    """Every promise that was broken."""
    living, deleted = _since_deletion(operations)
    return [
        *check_acks.check(living, final),
        *check_leases.check(living),
        *check_pace.check(operations),
        *check_states.check(living, final),
        *_resurrected(deleted, final),
        *_drained(operations, notes),
    ]


def _since_deletion(operations: Sequence[Operation]) -> tuple[list[Operation], set[str]]:
    """Only what came after the last deletion of its crawl; and the crawls that are surely gone."""
    deletions = [operation for operation in operations if operation.invoke.kind == "delete"]
    last = {operation.invoke.crawl: operation for operation in deletions}
    living = [one for one in operations if one.invoke.crawl not in last or one.sent > last[one.invoke.crawl].sent]
    there = {operation.invoke.crawl for operation in living}
    return living, {crawl for crawl, operation in last.items() if operation.answers and crawl not in there}


def _resurrected(deleted: set[str], final: Final) -> Iterator[Violation]:
    for crawl in deleted & final.keys():
        yield Violation("I5", f"{crawl}: its deletion was acknowledged, but it is there at the end")


def _drained(operations: Sequence[Operation], notes: Sequence[Note]) -> Iterator[Violation]:
    """I6: once the kills have ended, work goes on."""
    for note in notes:
        if note.what == HEALED:
            after = [one for one in operations if note.at < one.sent and one.answers]
            asked = [one for one in after if one.invoke.kind == "ask" and one.answers[0].answer["assigned_urls"]]
            if not asked or not any(one.invoke.kind == "tell" for one in after):
                yield Violation("I6", f"after the last kill {len(asked)} asks were given something; work stands still")
