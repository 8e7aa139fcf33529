"""feedstock's "neural" scorer: one logistic unit, learned a step at a time.

    value = 0.7 · σ(w · x) + 0.3 · best page that links here;   before five examples σ counts as 1/2

As in feedstock all weights lose 5 % with every example, so that little more than the last twenty count. With a slower
decay it found less: the weights follow where the crawl is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed, Share
from crawlguide.core.kernels import f64s, kernel, matrix, nothing, one_f64
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.arms.arm_table import ArmSettings, ArmTable
from crawlguide.strategies.arms.link_features import FEATURES, Scan, examples, features
from crawlguide.strategies.arms.naming import by_host
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

ENOUGH = 5  # examples before the logistic unit counts
PARENT = 0.3  # the share of the best page in the value
WEIGHTS = np.dtype([("weights", np.float64, len(FEATURES)), ("examples", np.int64)])


class Options(Fixed, frozen=True):
    kind: str = "scorer"
    learning_rate: Share = 0.1
    decay: Share = 0.95


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    settings = ArmSettings("sc-", by_host, Scan(goal), seed, decay=0.98)
    return Composition(Top(), Scorer(settings, options.learning_rate, options.decay), CLASSIC)


class Scorer:
    version = "scorer-1"

    def __init__(self, settings: ArmSettings, learning_rate: float, decay: float) -> None:
        self._settings, self._learning_rate, self._decay = settings, learning_rate, decay
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._model = notebook.sheet(f"{self._settings.prefix}model", WEIGHTS)
        self._model.fit(1)
        self._table = ArmTable(self._settings, notebook, self._value, self._value)

    def predict(self, batch: Batch) -> F64:
        return self._table.predict(batch)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._table.assigned(batch)

    def learn(self, lesson: Lesson) -> U64:
        learned, model = examples(self._table, lesson), self._model.rows[0]
        step(model["weights"], learned.x, learned.reward, self._learning_rate, self._decay)
        model["examples"] += len(learned.reward)
        self._model.changed(np.zeros(1, np.int64))
        return self._table.to_rank(learned.arms, np.isin(learned.arms, learned.tried))

    def stats(self) -> Mapping[str, float]:
        return {"arms": self._table.count, "updates": int(self._model.rows["examples"][0])}

    def _value(self, rows: I64) -> F64:
        x, model = features(self._table, rows), self._model.rows[0]
        unit = 1.0 / (1.0 + np.exp(-(x @ model["weights"]))) if model["examples"] >= ENOUGH else 0.5
        value: F64 = (1.0 - PARENT) * unit + PARENT * x[:, FEATURES.index("best_page")]
        return value


@kernel(nothing(f64s, matrix, f64s, one_f64, one_f64))
def step(weights, x, y, rate, decay):  # type: ignore[no-untyped-def]
    for number in range(len(y)):
        total = 0.0
        for i in range(len(weights)):
            total += weights[i] * x[number, i]
        error = y[number] - 1.0 / (1.0 + np.exp(-total))
        for i in range(len(weights)):
            weights[i] = decay * (weights[i] + rate * error * x[number, i])
