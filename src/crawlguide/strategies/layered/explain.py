"""Evidence in words that a person understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.strategies.layered.columns import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from crawlguide.core.tables import F32
    from crawlguide.strategies.layered.memory import LayeredMemory

TOLD = 3  # most telling pieces of evidence
LITTLE = 0.1  # in log-odds: not worth a word


def said(memory: LayeredMemory, row: int, columns: F32) -> list[str]:
    """The pieces of evidence that weigh most for or against a link, each once."""
    weights = memory.dense.rows["weight"][: len(NAMES)]
    weighed = {name: float(weight * value) for name, weight, value in zip(NAMES, weights, columns, strict=False)}
    link = memory.links.rows[row]
    found: dict[str, None] = {}
    for name, weight in sorted(weighed.items(), key=lambda one: -abs(one[1])):
        if abs(weight) >= LITTLE and name in SAYINGS:
            found[SAYINGS[name](memory, link, weight)] = None
    return list(found)[:TOLD] or ["nothing speaks for or against it yet"]


def _parents(memory: LayeredMemory, link: Any, weight: float) -> str:
    pages = "page" if link["count"] == 1 else "pages"
    return f"{link['sum']:.3g} of {link['count']:.0f} {pages} linking here paid"


def _host(memory: LayeredMemory, link: Any, weight: float) -> str:
    place = memory.places.rows[link["places"][0]]
    return f"{place['total']:.3g} of {place['fetched']} pages fetched from this host paid"


def _place(memory: LayeredMemory, link: Any, weight: float) -> str:
    place = memory.places.rows[link["places"][link["levels"] - 1]]
    return f"links of this form paid {place['good'] / max(float(place['tried']), 1e-9):.0%} of the time lately"


def _sided(good: str, bad: str) -> Callable[[LayeredMemory, Any, float], str]:
    return lambda memory, link, weight: good if weight > 0 else bad  # noqa: ARG005


PAGES_PAID = _sided("other links of the same pages paid", "other links of the same pages did not pay")
MEANT = _sided("its words are near to the goal", "its words are far from the goal")
SAYINGS: Mapping[str, Callable[[LayeredMemory, Any, float], str]] = {
    "parents": _parents, "best parent": _parents, "good parents": _parents, "bad parents": _parents,
    "mean yield": PAGES_PAID, "best yield": PAGES_PAID,
    "neighbours": _sided("links beside it paid", "links beside it did not pay"),
    "host": _host, "place": _place,
    "words in anchor": _sided("its anchor has words of the goal", "its anchor has words of the goal, which misled"),
    "words in address": _sided("its address has words of the goal", "its address has words of the goal, which misled"),
    "unknown host": _sided("its host is new", "its host is new"),
    "answers": _sided("its host answers", "its host or place often fails"),
    "abroad": _sided("it leads to another host", "it leads to another host"),
    "anchor meaning": MEANT, "address meaning": MEANT, "best meaning": MEANT,
    "title meaning": _sided("titles that lead here are near to the goal", "titles that lead here are far from it"),
    "liking": _sided("it is like pages that paid", "it is unlike pages that paid"),
    "near worth": _sided("a page that paid is near", "a page that paid is near"),
    "told": _sided("what crawlers told of it speaks for it", "what crawlers told of it speaks against it"),
    "history": _sided("its domain yielded much before", "its domain yielded little before"),
    "turned away": _sided("its host turns crawlers away", "its host turns crawlers away"),
}  # fmt: skip
