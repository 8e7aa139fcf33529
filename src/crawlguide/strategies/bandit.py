"""Linear regression, one example at a time: the inverse of what was seen is kept by Sherman and Morrison's formula.

w = A⁻¹ b,  A = I + Σ x xᵀ,  b = w₀ + Σ y x;   how uncertain: √(xᵀ A⁻¹ x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from msgspec import Meta

from crawlguide.core.definition import CLASSIC, Factor, Fixed
from crawlguide.core.kernels import f64s, kernel, matrix, nothing
from crawlguide.core.notebook import Notebook
from crawlguide.core.tables import rows_of
from crawlguide.strategies.arms.arm_table import ArmTable, Kind
from crawlguide.strategies.arms.naming import Scan, by_folder, by_host, by_place
from crawlguide.strategies.arms.traits import NAMES, examples, traits
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import gamma_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson


class Ridge:
    """`first` are the weights to begin with (w₀), `trust` is how many examples they stand for (λ)."""

    def __init__(self, notebook: Notebook, name: str, first: Sequence[float], trust: float = 1.0) -> None:
        size = len(first)
        shape = [("inverse", np.float64, (size, size)), ("moment", np.float64, size), ("weights", np.float64, size)]
        self._sheet = notebook.sheet(name, np.dtype(shape))
        if not self._sheet.used:
            self._sheet.fit(1)
            self._sheet.rows["inverse"][0] = np.eye(size) / trust
            self._sheet.rows["moment"][0] = trust * np.array(first)
            self._sheet.rows["weights"][0] = first
            self._sheet.changed(np.zeros(1, np.int64))

    @property
    def weights(self) -> F64:
        found: F64 = self._sheet.rows["weights"][0]
        return found

    def mean(self, x: F64) -> F64:
        """What is expected of each row of `x`."""
        value: F64 = x @ self.weights
        return value

    def width(self, x: F64) -> F64:
        """How uncertain that is."""
        value: F64 = np.sqrt(np.einsum("ij,jk,ik->i", x, self._sheet.rows["inverse"][0], x))
        return value

    def learn(self, x: F64, y: F64) -> None:
        """One example after the other."""
        one = self._sheet.rows[0]
        step(one["inverse"], one["moment"], one["weights"], x, y)
        self._sheet.changed(np.zeros(1, np.int64))


@kernel(nothing(matrix, f64s, f64s, matrix, f64s))
def step(inverse, moment, weights, x, y):  # type: ignore[no-untyped-def]
    size = len(moment)
    gain = np.empty(size)
    for number in range(len(y)):
        row = x[number]
        scale = 1.0
        for i in range(size):
            gain[i] = 0.0
            for j in range(size):
                gain[i] += inverse[i, j] * row[j]
            scale += gain[i] * row[i]
        for i in range(size):
            moment[i] += y[number] * row[i]
            for j in range(size):
                inverse[i, j] -= gain[i] * gain[j] / scale
    for i in range(size):
        weights[i] = 0.0
        for j in range(size):
            weights[i] += inverse[i, j] * moment[j]


# A bandit with context: a linear model of what speaks for a link, of which one thing is what its arm pays.
#
#     value = w · x,  and x has a place for what the arm pays
#
# Thompson: that is drawn from what is known of the arm, Γ(what it paid + k·m) / (how often it was tried + k), anew when
# something is learned of it and now and then. LinUCB: it is the mean, and c · √(xᵀ A⁻¹ x) is added.

FIRST = {"pages_paid": 0.4, "words": 0.3, "siblings_paid": 0.1, "arm_paid": 0.4}  # weights to begin with
TRUST = 200.0  # examples that these stand for: rewards are rare, and a model of little else than failures is no guide
ARM_PAID = NAMES.index("arm_paid")
LEAST = 0.05
REDRAWN = 8  # arms with each lesson
STIRRED = 0.05  # a change of what an arm pays for which its links are ranked anew
HOPE = 0.25  # m: what an arm that was never tried is thought to pay, until some were


class Bandit:
    def __init__(self, kind: Kind, *, linucb: bool, exploration: float, doubt: float) -> None:
        """`doubt` is k: how often an arm has to be tried before it is believed."""
        self.version = "linucb-1" if linucb else "thompson-1"
        self._kind, self._linucb, self._exploration, self._doubt = kind, linucb, exploration, doubt
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._model = Ridge(notebook, f"{self._kind.prefix}model", [FIRST.get(name, 0.0) for name in NAMES], TRUST)
        self._book = ArmTable(self._kind, notebook, self._key, self._worth)

    def predict(self, batch: Batch) -> F64:
        return self._book.predict(batch)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._book.assigned(batch)

    def learn(self, lesson: Lesson) -> U64:
        book, told = self._book, examples(self._book, lesson)
        self._model.learn(told.x, told.reward)
        book.crawl["updates"] += len(told.reward)
        tried = np.unique(np.concatenate([told.tried, self._round()]))
        stirred = tried[self._drawn(tried)]
        arms = np.union1d(told.arms, tried)
        return book.settled(arms, np.isin(arms, stirred))

    def stats(self) -> Mapping[str, float]:
        return {"arms": self._book.many, "updates": int(self._book.crawl["updates"])}

    def _worth(self, rows: I64) -> F64:
        """Of rows that are known; of the others it does not matter."""
        x = traits(self._book, rows)
        if self._linucb:
            value = self._model.mean(x) + self._exploration * self._model.width(x)
        else:
            x[:, ARM_PAID] = self._book.arms["value"][self._book.urls["arm"][rows]]
            value = self._model.mean(x)
        return positive(value)

    def _key(self, rows: I64) -> F64:
        return positive(self._model.mean(traits(self._book, rows)))

    def _round(self) -> I64:
        """The arms whose turn it is to be drawn anew, whether anything was learned of them or not."""
        crawl, many = self._book.crawl, self._book.many
        turn = (int(crawl["cursor"]) + np.arange(min(REDRAWN, many))) % max(many, 1)
        crawl["cursor"] = (int(crawl["cursor"]) + REDRAWN) % max(many, 1)
        return np.unique(turn)

    def _drawn(self, arms: I64) -> Mask:
        """What these arms are thought to pay; and whether that differs much from what it was."""
        records, crawl = rows_of(self._book.arms, arms), self._book.crawl
        crawl["draws"] += 1
        shape = records["reward"] + self._doubt * self._book.hope(HOPE)
        paid = shape if self._linucb else gamma_column(shape, self._kind.seed, int(crawl["draws"]), records["id"])
        now = np.minimum(paid / (records["plays"] + self._doubt), 1.0)
        self._book.arms["value"][arms] = now
        stirred: Mask = np.abs(now - records["value"]) > STIRRED
        return stirred


def positive(value: F64) -> F64:
    """A linear model may say less than nothing: from 0 to 1, in the same order."""
    return np.where(value > LEAST, np.minimum(value, 1.0), LEAST * np.exp(np.minimum(value / LEAST - 1.0, 0.0)))


# A bandit over hosts or parts of them, with context: Thompson sampling, or LinUCB.

NAMINGS = {"host": by_host, "place": by_place, "template": by_folder}


class Options(Fixed, frozen=True):
    kind: str = "bandit"
    algorithm: Literal["thompson", "linucb"] = "thompson"
    arms: Literal["host", "place", "template"] = "place"
    forget: Annotated[float, Meta(ge=0.5, le=1, description="a number from 0.5 to 1")] = 0.98
    doubt: Annotated[float, Meta(gt=0, le=100, description="a number up to 100")] = 2.0
    exploration: Factor = 0.3


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    kind = Kind("ba-", NAMINGS[options.arms], Scan(goal), seed, opening=HOPE, memory=options.forget)
    linucb = options.algorithm == "linucb"
    bandit = Bandit(kind, linucb=linucb, exploration=options.exploration, doubt=options.doubt)
    return Composition(Top(), bandit, CLASSIC)
