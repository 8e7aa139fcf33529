"""What is known of pages that are fetched again, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import to_builtins

from crawlguide.freshness.rates import DAY_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.guide.recrawl.refresher import Refresher

UNITS = (("year", 365.0), ("month", 30.0), ("week", 7.0), ("day", 1.0), ("hour", 1 / 24), ("minute", 1 / 1_440))
AGES = (1 / 24, 0.25, 1.0, 7.0, 30.0)  # days
AGE_NAMES = ("hour", "6_hours", "day", "week", "month", "older")


def of_page(facts: Mapping[str, float | None], at: float) -> str:
    """changes about every 3 days; last seen 5 days ago; 81 % likely to have changed"""
    rate, seen, chance = (facts[name] or 0.0 for name in ("changes_per_day", "seen", "chance_changed"))
    every = "hardly ever changes" if rate < 1 / 3_650 else f"changes about every {span(1 / rate)}"
    return f"{every}; last seen {span(max(at - seen, 0.0) / DAY_S)} ago; {chance:.0%} likely to have changed".replace(
        "%", " %"
    )


def span(days: float) -> str:
    """3.2 -> "3 days"; 0.26 -> "6 hours"."""
    for name, length in UNITS:
        if days >= length * 0.95:
            count = round(days / length)
            return name if count == 1 and name != "day" else f"{count} {name}{'' if count == 1 else 's'}"
    return "less than a minute"


def stats(refresher: Refresher, at: float) -> dict[str, Any]:
    """Ages of copies, price and promises; of very many pages a part is counted, evenly."""
    rows, each = refresher.known.sample()
    days = np.maximum(at - refresher.known.rates.pages.rows["seen"][rows].astype(np.float64), 0.0) / DAY_S
    counts = (each * np.bincount(np.searchsorted(AGES, days), minlength=len(AGE_NAMES))).astype(np.int64).tolist()
    chance = refresher.known.rates.chance_changed(rows, np.full(len(rows), at))
    return {
        "pages": len(refresher.known),
        "ages": dict(zip(AGE_NAMES, counts, strict=True)),
        "median_age_s": round(float(np.median(days)) * DAY_S, 1) if len(days) else None,
        "current_share": round(float(1.0 - np.mean(chance)), 4) if len(rows) else None,
        "price": refresher.price.now,
        "recrawls_per_day": refresher.price.per_day,
        "promises": to_builtins(refresher.states(at)),
    }
