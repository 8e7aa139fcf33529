"""How good a model of risk is: on domains it never saw, and on collections it never saw."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.training.risk.examples import MALICIOUS, folds
from crawlguide.training.risk.fitting import calibrated, fitted

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.policy.risk.model import Model
    from crawlguide.training.risk.examples import Examples

FOLDS, BINS, THRESHOLD = 5, 15, 0.8


def unseen_domains(examples: Examples, seed: int) -> F64:
    """The sum of each example by a model that saw no URL of its domain."""
    sums = np.empty(len(examples))
    for test in folds(examples, FOLDS, np.random.default_rng(seed)):
        sums[test] = fitted(examples.take(~test), seed).sums(examples.url[test].tolist())
    return sums


def unseen_source(examples: Examples, source: str, seed: int) -> tuple[F64, F64]:
    """Labels and sums where the good URLs of one collection, and a fifth of the bad domains, were left out."""
    bad = folds(examples, FOLDS, np.random.default_rng(seed))[0] & (examples.label == 1)
    rest = ~bad & (examples.source != source)
    known = set(examples.domain[rest].tolist())
    fresh = np.array([domain not in known for domain in examples.domain], np.bool_)
    test = bad | ((examples.source == source) & fresh)
    return examples.label[test], fitted(examples.take(rest), seed).sums(examples.url[test].tolist())


def final(examples: Examples, seed: int) -> tuple[Model, dict[str, float]]:
    """The model of all examples, calibrated on sums of models that had not seen them; and what those were worth."""
    sums = unseen_domains(examples, seed)
    slope, offset = calibrated(sums, examples.label)
    likely = 1.0 / (1.0 + np.exp(-(slope * sums + offset)))
    figures = {"auc": auc(examples.label, sums), "ece": calibration_error(examples.label, likely)}
    for source in np.unique(examples.source).tolist():
        mine = examples.source == source
        word = "recall" if source == MALICIOUS else f"refused {source}"
        figures[word] = float((likely[mine] >= THRESHOLD).mean())
    return replace(fitted(examples, seed), slope=slope, offset=offset), figures


def auc(label: F64, score: F64) -> float:
    """The chance that a bad URL scores higher than a good one; ties count half."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    bad = label.sum()
    return float((rank[label == 1].sum() - bad * (bad + 1) / 2) / (bad * (len(label) - bad)))


def calibration_error(label: F64, likely: F64) -> float:
    """Expected calibration error: |how many were bad − how many were said to be|, over bins of equal width."""
    place = np.minimum((likely * BINS).astype(np.int64), BINS - 1)
    gaps = [abs(label[place == at].sum() - likely[place == at].sum()) for at in range(BINS)]
    return float(sum(gaps) / len(label))
