"""A `layered` learner that stands alone, and what it knows of a URL."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlguide.core.definition import Goal
from crawlguide.strategies.layered import ingest, model
from crawlguide.strategies.layered.columns import NAMES
from crawlguide.strategies.layered.learner import Layered
from crawlguide.strategies.layered.records import COLUMNS
from tests.strategies.lessons import ids

A = "https://a.org/"
judging: Any = model  # kernels have no annotations: their signatures say more


def learner(topic: str = "", *without: str, seed: int = 1, most: int = 100_000) -> Layered:
    return Layered(Goal(topic=topic), seed, without, most)


def link(found: Layered, url: str) -> Any:
    (row,) = found.memory.find(ids(url))
    assert row >= 0
    return found.memory.links.rows[row]


def place(found: Layered, url: str, level: int = 0) -> Any:
    return found.memory.places.rows[link(found, url)["places"][level]]


def page(found: Layered, url: str) -> Any:
    return found.memory.pages.rows[link(found, url)["page"]]


def column(found: Layered, url: str, name: str) -> float:
    """One column of a link, as it is judged now."""
    memory, columns = found.memory, np.zeros(COLUMNS, np.float32)
    judging.look(
        int(memory.find(ids(url))[0]), ingest.taste(memory), found.tuning, memory.links.rows, memory.links.used,
        memory.pages.rows, memory.places.rows, memory.crawl.rows, columns,
    )  # fmt: skip
    return float(columns[NAMES.index(name)])


def linked(url: str, anchor: str = "") -> dict[str, str]:
    return {"url": url, "anchor": anchor}
