"""A plugin whose values stand in the URLs, and that misbehaves when it is told to.

`https://a.org/0.9-0.2` is worth 0.9 to the one that reads the first number, and 0.2 to the one that reads the second.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch

PLUG = "tests.composition.models"
SEEN: list[tuple[str, list[str]]] = []  # who was asked about what
FAULTS: dict[str, Callable[[F64], Any]] = {}  # by name: what becomes of the values


class Options(Fixed, frozen=True):
    kind: str = PLUG
    name: str = "model"
    number: int = 0
    fails: bool = False


class Model:
    version = "model-1"

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number

    def predict(self, batch: Batch) -> F64:
        SEEN.append((self.name, batch.url.tolist()))
        values = np.array([float(url.rsplit("/", 1)[1].split("-")[self.number]) for url in batch.url])
        return FAULTS[self.name](values) if self.name in FAULTS else values


def build(options: Options, seed: int, goal: Goal) -> Composition:
    if options.fails:
        raise FileNotFoundError("no such model")
    return Composition(Top(), Model(options.name, options.number), CLASSIC)


def raises(values: F64) -> F64:
    raise RuntimeError("the model is gone")


def sleeps(values: F64) -> F64:
    time.sleep(5.0)
    return values


NONSENSE: dict[str, Callable[[F64], Any]] = {
    "nan": lambda values: values * np.nan,
    "one nan": lambda values: np.where(np.arange(len(values)) == 1, np.nan, values),
    "inf": lambda values: values + np.inf,
    "short": lambda values: values[:-1],
    "flat": lambda values: values.sum(),
    "square": lambda values: np.stack([values, values]),
    "words": lambda values: ["good"] * len(values),
    "nothing": lambda _: None,
}
