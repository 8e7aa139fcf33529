"""A `layered` learner that stands alone, and what it knows of a URL."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlguide.core.definition import Goal
from crawlguide.strategies.layered import scores
from crawlguide.strategies.layered.columns import NAMES
from crawlguide.strategies.layered.learner import Layered
from crawlguide.strategies.layered.records import COLUMNS, Tables
from tests.strategies.lessons import ids

A = "https://a.org/"
describe_link: Any = scores.describe_link  # kernels have no annotations: their signatures say more


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


def parents(found: Layered, url: str) -> tuple[float, float, float]:
    """Pages with a reward that link here: how many, the sum of their rewards, and the best."""
    one = link(found, url)
    labels = found.memory.pages.rows["label"][one["parents"][one["parents"] >= 0]]
    labels = labels[~np.isnan(labels)]
    best = max([one["best"], *labels.tolist()])
    return float(one["count"]) + len(labels), float(one["sum"] + labels.sum()), float(best)


def column(found: Layered, url: str, name: str) -> float:
    """One column of a link, as it is now."""
    columns = np.zeros(COLUMNS, np.float32)
    describe_link(int(found.memory.find(ids(url))[0]), found.memory.tables(), columns)
    return float(columns[NAMES.index(name)])


def tables(**arrays: Any) -> Tables:
    """What kernels read and write, blank but for these."""
    return learner().memory.tables()._replace(**arrays)


def linked(url: str, anchor: str = "") -> dict[str, str]:
    return {"url": url, "anchor": anchor}
