"""The numbers that were chosen, and the parts that can be left out to measure them (docs/explain/ordering.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.strategies.layered.columns import AT, PRIOR, TABLE
from crawlguide.strategies.layered.records import TUNING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F32
    from crawlguide.strategies.layered.records import Records

DEFAULTS = {
    "doubt": 0.03,
    "word_step": 0.3,
    "place_step": 0.1,
    "meaning_step": 0.05,
    "hub_step": 0.05,
    "calibration_step": 0.1,
    "replays": 2,
    "host_bonus": 0.11,
    "near_host_bonus": 0.65,
    "decline_bonus": 3.0,
    "boldness": 1.5,
    "lead": 0.01,
    "seed_value": 0.5,
    "decay": 0.97,
    "crawl_decay": 0.99,
    "few_parents": 1.0,
    "few_children": 2.0,
    "few_fetches": 3.0,
    "pending": 0.5,
}
NO_BONUS = {"boldness": 0.0}
NO_HOPES = {"host_bonus": 0.0, "near_host_bonus": 0.0}
NO_LEADS = {"lead": 0.0}
NUMBERS: dict[str, dict[str, float]] = {  # that each part sets when it is left out, beside its columns
    "parents": {},
    "yield": {},
    "neighbours": {},
    "words": {"word_step": 0.0},
    "meaning": {"meaning_step": 0.0},
    "places": {"place_step": 0.0},
    "told": {},
    "exploration": {**NO_BONUS, **NO_HOPES, **NO_LEADS, "seed_value": 0.0},
    "bonus": NO_BONUS,
    "hopes": NO_HOPES,
    "losses": {"decline_bonus": 0.0},
    "leads": NO_LEADS,
    "seeds": {"seed_value": 0.0},
    "hubs": {"hub_step": 0.0},
    "forgetting": {"decay": 1.0, "crawl_decay": 1.0},
    "learning": {"doubt": 0.0, "word_step": 0.0, "place_step": 0.0, "meaning_step": 0.0},
    "prior": {},  # weights begin at zero
}
GONE = ("draws",)  # parts of earlier versions: stored definitions may name them
PARTS = {  # by the name that `strategy.without` has for it: the columns and the numbers that make up a part
    part: (tuple(column.name for column in TABLE if part in column.parts), numbers) for part, numbers in NUMBERS.items()
}


def tuned(without: Sequence[str], *, aimless: bool = False) -> Records:
    """The tuning without some parts; raises `MalformedRequest` for one that does not exist.

    Where a crawl has no goal, columns that compare with it do not count.
    """
    found = np.zeros(1, TUNING)
    found["use"] = 1.0
    for name, number in DEFAULTS.items():
        found[name] = number
    for part in set(without).difference(GONE):
        if part not in PARTS:
            where = "strategy.without"
            raise MalformedRequest(f"{where}: expected some of {', '.join(PARTS)}, got {part!r}", field=where)
        found["use"][0, _columns(part)] = 0.0
        for name, number in NUMBERS[part].items():
            found[name] = number
    if aimless:
        found["use"][0, [number for number in _columns("meaning") if number != AT.profile]] = 0.0
    return found


def _columns(part: str) -> list[int]:
    return [number for number, column in enumerate(TABLE) if part in column.parts]


def prior(without: Sequence[str]) -> F32:
    """Weights of the columns to begin with."""
    return np.zeros_like(PRIOR) if "prior" in without else PRIOR
