"""Pages and links of recorded webs with what they are about, to measure what ranks them by."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from crawlguide.core.urls import canonical
from crawlguide.training.risk import auc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Labels = NDArray[np.bool_]  # pages (or links) × topics
    Scores = NDArray[np.float64]

WEBS = Path(__file__).resolve().parents[2] / "shared" / "data" / "webs"


@dataclass(frozen=True)
class Pages:
    topics: list[str]
    url: list[str]
    title: list[str]
    text: list[str]
    labels: Labels


@dataclass(frozen=True)
class Anchors:
    topics: list[str]
    anchor: list[str]
    labels: Labels  # of the page that the link leads to


def pages(folder: Path, most: int, seed: int = 0) -> Pages:
    """Random pages of a web; all of them where it has no more."""
    nodes = pq.read_table(folder / "nodes.parquet", columns=["url", "title", "text"])
    topics, labels = _labels(folder, len(nodes))
    rows = np.sort(np.random.default_rng(seed).permutation(len(nodes))[:most])
    url, title, text = (nodes[name].take(rows).to_pylist() for name in ("url", "title", "text"))
    return Pages(
        topics, [canonical(one) for one in url], [one or "" for one in title], [one or "" for one in text], labels[rows]
    )


def anchors(folder: Path, most: int, seed: int = 0) -> Anchors:
    """Random links of a web."""
    edges = pq.read_table(folder / "edges.parquet", columns=["dst", "anchor"])
    rows = np.sort(np.random.default_rng(seed).permutation(len(edges))[:most])
    topics, labels = _labels(folder, pq.read_metadata(folder / "nodes.parquet").num_rows)
    found = edges.take(rows)
    return Anchors(topics, [one or "" for one in found["anchor"].to_pylist()], labels[found["dst"].to_numpy()])


def _labels(folder: Path, count: int) -> tuple[list[str], Labels]:
    tasks = json.loads((folder / "tasks.json").read_bytes())
    labels = np.zeros((count, len(tasks)), np.bool_)
    for column, task in enumerate(tasks):
        labels[task["relevant_ids"], column] = True
    return [task["topic"] for task in tasks], labels


def worth(labels: Labels, scores: Scores) -> tuple[float, float]:
    """AUC and average precision, each the mean over the topics."""
    columns = [at for at in range(labels.shape[1]) if labels[:, at].any()]
    areas = [auc(labels[:, at].astype(np.float64), scores[:, at]) for at in columns]
    return float(np.mean(areas)), float(np.mean([average_precision(labels[:, at], scores[:, at]) for at in columns]))


def average_precision(label: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    """Pages of one score come in at once: the precision at the last of them counts for all."""
    order = np.argsort(-score, kind="stable")
    hits, found = np.cumsum(label[order]), score[order]
    last = np.flatnonzero(np.append(found[1:] != found[:-1], True))
    gained = np.diff(np.append(0, hits[last]))
    return float((gained * hits[last] / (last + 1)).sum() / hits[-1])
