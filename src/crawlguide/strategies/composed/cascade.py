"""Predictors one behind the other: each judges the best rows of the one before, so the last may be expensive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from crawlguide.core.definition import Fixed
from crawlguide.strategies.composed.guard import HEURISTIC, Composite, Opinion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, Rows
    from crawlguide.core.types import Batch
    from crawlguide.strategies.composed.guard import Member, Purpose


class Stage(Fixed, frozen=True):
    """The option of a stage beside its own."""

    top: Annotated[int, Meta(ge=0, le=1_000_000, description="an integer from 0 to 1000000 (0 means all)")] = 0


@dataclass(frozen=True)
class Cascade(Composite):
    tops: tuple[int, ...]  # how many rows of each stage go on to the next; 0: all

    @property
    def version(self) -> str:
        return ">".join(member.version for member in self.members)

    def judge(self, batch: Batch, purpose: Purpose) -> Opinion | None:
        """Rows that wait are judged by the first stage that works: what comes later depends on who stands beside it."""
        if purpose == "waiting":
            opinions = (member.judge(batch, purpose) for member in self.members)
            return next((one for one in opinions if one is not None), None)
        return self._judge_stages(batch, purpose)

    def _judge_stages(self, batch: Batch, purpose: Purpose) -> Opinion | None:
        """Rows that went further come before the others, and wait with the value of the last stage that saw them.

        A stage that fails is passed over; in place of the first, the share of relevant parents says who goes on.
        """
        rows: Rows = np.arange(len(batch))
        value, bonus, level = np.zeros(len(batch)), np.zeros(len(batch)), np.zeros(len(batch), np.int64)
        any_works = False
        for number, (member, top) in enumerate(zip(self.members, self.tops, strict=True)):
            remaining = batch if len(rows) == len(batch) else batch.take(rows)
            opinion = member.judge(remaining, purpose)
            any_works |= opinion is not None
            if opinion is None and number == 0:
                opinion = Opinion(HEURISTIC.predict(remaining))
            if opinion is not None:
                value[rows], level[rows] = opinion.value, number
                if opinion.exploration is not None:
                    bonus[rows] = opinion.exploration
            if top and top < len(rows):
                total = _first_stage_total(value, bonus, batch) if number == 0 else value + bonus
                rows = rows[_best(total[rows], top)]
        waits = np.where(level == 0, _first_stage_total(value, bonus, batch) - bonus, value)
        return Opinion(behind(value, level), bonus, waits) if any_works else None


def _first_stage_total(value: F64, bonus: F64, batch: Batch) -> F64:
    """Value and bonus by the first stage; but a row of which a later one thought little does not come up again.

    The value of that later stage is the priority with which the row has waited since, until new evidence makes the
    first stage rank it again.
    """
    return np.minimum(value + bonus, batch.priority)


def _best(total: F64, top: int) -> Rows:
    """The best of them, in the order in which they came."""
    return np.sort(np.argsort(-total, kind="stable")[:top])


def behind(value: F64, level: Rows) -> F64:
    """Rows of a lower level keep their order, and their values as far as these are below all of a higher level."""
    placed, lowest = value.copy(), np.inf
    for number in range(int(level.max(initial=0)), -1, -1):
        rows = np.flatnonzero(level == number)
        if not len(rows):
            continue
        highest = placed[rows].max()
        if highest > lowest:
            placed[rows] = placed[rows] * (lowest / highest) if lowest > 0.0 else np.minimum(placed[rows], lowest)
        lowest = min(lowest, placed[rows].min())
    return placed


def build(members: Sequence[Member], stages: Sequence[Stage]) -> Cascade:
    return Cascade(tuple(members), tuple(stage.top for stage in stages))
