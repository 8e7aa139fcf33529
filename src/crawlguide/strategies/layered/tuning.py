"""The numbers that were chosen, and what can be left out to see what it is worth (docs/explain/ordering.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.strategies.layered.columns import NAMES
from crawlguide.strategies.layered.records import COLUMNS, TUNING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F32

CHOSEN = {
    "dense_step": 0.03,
    "word_step": 0.3,
    "place_step": 0.1,
    "meaning_step": 0.05,
    "hub_step": 0.05,
    "honest_step": 0.1,
    "replays": 2,
    "new_place": 1.0,
    "little_known": 4.0,
    "hope": 0.11,
    "near_hope": 0.65,
    "lost_hope": 3.0,
    "lead": 0.01,
    "seed": 0.9,
    "memory": 0.97,
    "crawl_memory": 0.99,
    "few_parents": 1.0,
    "few_children": 2.0,
    "few_fetches": 3.0,
    "pending": 0.5,
    "least_draws": 0.03,
    "most_draws": 0.2,
}
MEANINGS = ("anchor meaning", "address meaning", "best meaning", "title meaning", "liking")
NO_BONUS = {"new_place": 0.0, "little_known": 0.0}
NO_HOPES = {"hope": 0.0, "near_hope": 0.0}
NO_LEADS = {"lead": 0.0}
NO_DRAWS = {"least_draws": 0.0, "most_draws": 0.0}
PARTS: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {  # columns and numbers that make up a part
    "parents": (("parents", "good parents", "bad parents", "parents and yield", "near worth"), {}),
    "yield": (("mean yield", "best yield", "parents and yield"), {}),
    "neighbours": (("neighbours",), {}),
    "words": (("words in anchor", "words in address"), {"word_step": 0.0}),
    "meaning": (MEANINGS, {"meaning_step": 0.0}),
    "places": (("host", "place"), {"place_step": 0.0}),
    "told": (("told", "history"), {}),
    "exploration": ((), {**NO_BONUS, **NO_HOPES, **NO_LEADS, **NO_DRAWS, "seed": 0.0}),
    "bonus": ((), NO_BONUS),
    "hopes": ((), NO_HOPES),
    "losses": ((), {"lost_hope": 0.0}),
    "leads": ((), NO_LEADS),
    "seeds": ((), {"seed": 0.0}),
    "draws": ((), NO_DRAWS),
    "hubs": ((), {"hub_step": 0.0}),
    "forgetting": ((), {"memory": 1.0, "crawl_memory": 1.0}),
    "learning": ((), {"dense_step": 0.0, "word_step": 0.0, "place_step": 0.0, "meaning_step": 0.0}),
    "prior": ((), {}),  # weights begin at zero
}


def tuned(without: Sequence[str], *, aimless: bool = False) -> np.ndarray[Any, Any]:
    """The tuning without some parts; raises `MalformedRequest` for one that does not exist.

    Where a crawl has no goal nothing is like it.
    """
    found = np.zeros(1, TUNING)
    found["use"] = 1.0
    for name, number in CHOSEN.items():
        found[name] = number
    for part in without:
        if part not in PARTS:
            where = "strategy.without"
            raise MalformedRequest(f"{where}: expected some of {', '.join(PARTS)}, got {part!r}", field=where)
        columns, numbers = PARTS[part]
        found["use"][0, [NAMES.index(name) for name in columns]] = 0.0
        for name, number in numbers.items():
            found[name] = number
    if aimless:
        found["use"][0, [NAMES.index(name) for name in MEANINGS if name != "liking"]] = 0.0
    return found


def prior(weights: F32, without: Sequence[str]) -> F32:
    """Weights of the columns to begin with."""
    begin = np.zeros(COLUMNS, np.float32)
    if "prior" not in without:
        begin[: len(weights)] = weights
    return begin
