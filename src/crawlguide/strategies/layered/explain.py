"""What speaks for or against a link, in sentences for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.strategies.layered.columns import TABLE

if TYPE_CHECKING:
    from crawlguide.core.tables import F32
    from crawlguide.strategies.layered.memory import LayeredMemory

SENTENCES = 3
NEGLIGIBLE = 0.1  # in log-odds


def sentences(memory: LayeredMemory, row: int, columns: F32) -> list[str]:
    """The evidence that weighs most, each sentence once."""
    weighted = memory.weights.rows["weight"][: len(TABLE)] * columns[: len(TABLE)]
    known, said = facts(memory, row), dict[str, None]()
    for number in sorted(range(len(TABLE)), key=lambda one: -abs(float(weighted[one]))):
        column, weight = TABLE[number], float(weighted[number])
        if abs(weight) >= NEGLIGIBLE and column.speaks_for:
            words = column.speaks_for if weight > 0 else column.speaks_against or column.speaks_for
            said[words.format_map(known)] = None
    return list(said)[:SENTENCES] or ["nothing speaks for or against it yet"]


def facts(memory: LayeredMemory, row: int) -> dict[str, Any]:
    """Numbers that sentences may name."""
    link, pages = memory.links.rows[row], memory.pages.rows
    labels = pages["label"][link["parents"][link["parents"] >= 0]]
    labels = labels[~np.isnan(labels)]
    count, total = link["count"] + len(labels), link["sum"] + labels.sum()
    places = memory.places.rows[link["places"][: link["levels"]]]  # from its host to the innermost
    host, tried = places[0], np.flatnonzero(places["tried"] > 0)
    place = places[tried[-1] if len(tried) else 0]
    return {
        "parents": count,
        "parents_sum": total,
        "pages": "page" if count == 1 else "pages",
        "host_sum": host["total"],
        "host_fetched": host["fetched"],
        "place": "links of this form" if len(tried) == len(places) else "links around it",
        "place_rate": place["good"] / max(float(place["tried"]), 1e-9),
    }
