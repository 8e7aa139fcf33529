"""What was said of links, and how long it holds: until something is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U64


class Judged(NamedTuple):
    """The chance of each link, what it is worth with what may be learned from it, and what of that is hope."""

    value: F64
    wish: F64
    hope: F64


class Looked(NamedTuple):
    """URLs that were looked at, their records, what was said of them, and in which turn of learning."""

    ids: U64
    rows: I64
    judged: Judged
    turn: int

    def holds(self, ids: U64, turn: int) -> bool:
        """Whether it is known what to say of these URLs: the same, or the first of them."""
        return self.turn == turn and (
            ids is self.ids or bool(len(ids) <= len(self.ids) and np.array_equal(self.ids[: len(ids)], ids))
        )

    def first(self, ids: U64) -> Looked:
        """Only these, which are the first."""
        count = len(ids)
        return Looked(ids, self.rows[:count], Judged(*(column[:count] for column in self.judged)), self.turn)
