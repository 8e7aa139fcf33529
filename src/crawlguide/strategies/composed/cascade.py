"""Predictors one behind the other: each judges the best rows of the one before, so the last may be dear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from crawlguide.core.definition import Fixed
from crawlguide.strategies.composed.guard import Opinion
from crawlguide.strategies.composed.several import Several
from crawlguide.strategies.relational import Relational

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, Rows
    from crawlguide.core.types import Batch
    from crawlguide.strategies.composed.guard import Member


class Stage(Fixed, frozen=True):
    """What a stage says beside its kind and its options."""

    top: Annotated[int, Meta(ge=0, le=1_000_000, description="an integer from 0 to 1000000 (0 means all)")] = 0


@dataclass(frozen=True)
class Cascade(Several):
    tops: tuple[int, ...]  # how many rows of each stage go on to the next; 0: all

    @property
    def version(self) -> str:
        return ">".join(member.version for member in self.members)

    def rest(self, batch: Batch) -> Opinion | None:
        """By the first stage that works: what comes later depends on who stands beside it."""
        return next((found for member in self.members if (found := member.rest(batch)) is not None), None)

    def judge(self, batch: Batch) -> Opinion | None:
        """Those that went further stand before the others, and wait by what the last that saw them said.

        A stage that is out is passed over; for the first, counting relevant parents says who goes on.
        """
        rows: Rows = np.arange(len(batch))
        value, hope, level = np.zeros(len(batch)), np.zeros(len(batch)), np.zeros(len(batch), np.int64)
        heard = False
        for number, (member, top) in enumerate(zip(self.members, self.tops, strict=True)):
            mine = batch if len(rows) == len(batch) else batch.take(rows)
            found = member.judge(mine)
            heard |= found is not None
            if found is None and number == 0:
                found = Opinion(Relational().predict(mine))
            if found is not None:
                value[rows], level[rows] = found.value, number
                if found.exploration is not None:
                    hope[rows] = found.exploration
            if top and top < len(rows):
                rows = rows[_first(_standing(value, hope, batch)[rows] if number == 0 else (value + hope)[rows], top)]
        waits = np.where(level == 0, _standing(value, hope, batch) - hope, value)
        return Opinion(behind(value, level), hope, waits) if heard else None


def _standing(value: F64, hope: F64, batch: Batch) -> F64:
    """By what the first stage says; but what a later one thought little of does not come up again before others.

    What it said is the priority by which such a row has waited since. New evidence makes the first stage rank it anew.
    """
    return np.minimum(value + hope, batch.priority)


def _first(standing: F64, top: int) -> Rows:
    """The best of them, in the order in which they came."""
    return np.sort(np.argsort(-standing, kind="stable")[:top])


def behind(value: F64, level: Rows) -> F64:
    """Rows of a lower level keep their order, and their values as far as these are below all of a higher level."""
    placed, lowest = value.copy(), np.inf
    for number in range(int(level.max(initial=0)), -1, -1):
        mine = np.flatnonzero(level == number)
        if not len(mine):
            continue
        highest = placed[mine].max()
        if highest > lowest:
            placed[mine] = placed[mine] * (lowest / highest) if lowest > 0.0 else np.minimum(placed[mine], lowest)
        lowest = min(lowest, placed[mine].min())
    return placed


def build(members: Sequence[Member], stages: Sequence[Stage]) -> Cascade:
    return Cascade(tuple(members), tuple(stage.top for stage in stages))
