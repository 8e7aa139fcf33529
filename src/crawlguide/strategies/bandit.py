"""A contextual bandit over hosts or parts of them: a linear model of links, one of whose features is the arm's reward.

    value = w · x,  where x holds the expected reward of the link's arm

Thompson sampling draws that reward from Γ(reward of the arm + k·m) / (its fetches + k), again after every fetch of the
arm and now and then in between. LinUCB takes the mean, and adds c · √(xᵀ A⁻¹ x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from msgspec import Meta

from crawlguide.core.definition import CLASSIC, Factor, Fixed
from crawlguide.core.kernels import f64s, kernel, matrix, nothing
from crawlguide.core.notebook import Notebook
from crawlguide.core.tables import rows_of
from crawlguide.strategies.arms.arm_table import ArmSettings, ArmTable
from crawlguide.strategies.arms.link_features import FEATURES, Scan, examples, features
from crawlguide.strategies.arms.naming import by_folder, by_host, by_place
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import gamma_by_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson

NAMINGS = {"host": by_host, "place": by_place, "template": by_folder}
PRIOR = {"pages_paid": 0.4, "words": 0.3, "siblings_paid": 0.1, "arm_paid": 0.4}  # first weights of the linear model
PRIOR_EXAMPLES = 200.0  # that these stand for: rewards are rare, and a model of little else than failures is no guide
ARM_PAID = FEATURES.index("arm_paid")
LEAST = 0.05  # smaller values are squeezed into 0…0.05
REDRAWN = 8  # arms drawn again with each lesson in turn, whether anything was learned of them or not
CHANGED = 0.05  # a change of an arm's expected reward for which its links are ranked again
UNTRIED = 0.25  # m: the reward expected of an arm that was never tried, until some were


class Options(Fixed, frozen=True):
    """`doubt` is k: how many fetches of an arm count as much as what is expected of any arm."""

    kind: str = "bandit"
    algorithm: Literal["thompson", "linucb"] = "thompson"
    arms: Literal["host", "place", "template"] = "place"
    forget: Annotated[float, Meta(ge=0.5, le=1, description="a number from 0.5 to 1")] = 0.98
    doubt: Annotated[float, Meta(gt=0, le=100, description="a number up to 100")] = 2.0
    exploration: Factor = 0.3


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    settings = ArmSettings("ba-", NAMINGS[options.arms], Scan(goal), seed, opening=UNTRIED, decay=options.forget)
    return Composition(Top(), Bandit(settings, options), CLASSIC)


class Bandit:
    def __init__(self, settings: ArmSettings, options: Options) -> None:
        self._linucb = options.algorithm == "linucb"
        self.version = "linucb-1" if self._linucb else "thompson-1"
        self._settings, self._exploration, self._doubt = settings, options.exploration, options.doubt
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        first = [PRIOR.get(name, 0.0) for name in FEATURES]
        self._model = Ridge(notebook, f"{self._settings.prefix}model", first, PRIOR_EXAMPLES)
        self._table = ArmTable(self._settings, notebook, self._key, self._value)

    def predict(self, batch: Batch) -> F64:
        return self._table.predict(batch)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._table.assigned(batch)

    def learn(self, lesson: Lesson) -> U64:
        table, found = self._table, examples(self._table, lesson)
        self._model.learn(found.x, found.reward)
        table.crawl["updates"] += len(found.reward)
        tried = np.unique(np.concatenate([found.tried, self._next_in_turn()]))
        changed = tried[self._redraw(tried)]
        arms = np.union1d(found.arms, tried)
        return table.to_rank(arms, np.isin(arms, changed))

    def stats(self) -> Mapping[str, float]:
        return {"arms": self._table.count, "updates": int(self._table.crawl["updates"])}

    def _value(self, rows: I64) -> F64:
        x = features(self._table, rows)
        if self._linucb:
            value = self._model.mean(x) + self._exploration * self._model.width(x)
        else:
            x[:, ARM_PAID] = self._table.arms["value"][self._table.urls["arm"][rows]]
            value = self._model.mean(x)
        return positive(value)

    def _key(self, rows: I64) -> F64:
        return positive(self._model.mean(features(self._table, rows)))

    def _next_in_turn(self) -> I64:
        """The arms whose turn it is to be drawn again."""
        crawl, count = self._table.crawl, self._table.count
        turn = (int(crawl["cursor"]) + np.arange(min(REDRAWN, count))) % max(count, 1)
        crawl["cursor"] = (int(crawl["cursor"]) + REDRAWN) % max(count, 1)
        return np.unique(turn)

    def _redraw(self, arms: I64) -> Mask:
        """Draw the expected reward of these arms; returns for which it changed much."""
        records, crawl = rows_of(self._table.arms, arms), self._table.crawl
        crawl["draws"] += 1
        shape = records["reward"] + self._doubt * self._table.expected_first_reward(UNTRIED)
        paid = shape if self._linucb else gamma_by_id(shape, self._settings.seed, int(crawl["draws"]), records["id"])
        now = np.minimum(paid / (records["plays"] + self._doubt), 1.0)
        self._table.arms["value"][arms] = now
        changed: Mask = np.abs(now - records["value"]) > CHANGED
        return changed


def positive(value: F64) -> F64:
    """A linear model may give less than 0: brought to 0…1, in the same order."""
    return np.where(value > LEAST, np.minimum(value, 1.0), LEAST * np.exp(np.minimum(value / LEAST - 1.0, 0.0)))


class Ridge:
    """Linear regression, one example at a time; the inverse is updated by the formula of Sherman and Morrison.

        w = A⁻¹ b,  A = λI + Σ x xᵀ,  b = λ w₀ + Σ y x;   uncertainty √(xᵀ A⁻¹ x)

    `first` are the weights to begin with (w₀), `trust` is how many examples they stand for (λ).
    """

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
        weights: F64 = self._sheet.rows["weights"][0]
        return weights

    def mean(self, x: F64) -> F64:
        """The expected reward of each row of `x`."""
        value: F64 = x @ self.weights
        return value

    def width(self, x: F64) -> F64:
        """How uncertain that expectation is."""
        value: F64 = np.sqrt(np.einsum("ij,jk,ik->i", x, self._sheet.rows["inverse"][0], x))
        return value

    def learn(self, x: F64, y: F64) -> None:
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
