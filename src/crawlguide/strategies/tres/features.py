"""forager's eleven features of a link, by name and order, each brought to about 0…1.

They are computed when a link is found (`of_links`). For URLs that came another way (an import, or forgotten by a full
queue) they are computed from the columns of a batch (`of_batch`), and those that a batch does not have are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.features.embedding import Embedding, words_of
from crawlguide.strategies.tres.records import DONE, FREE, X

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F32, F64, I64, Rows
    from crawlguide.core.types import Batch, Hosts, Lesson
    from crawlguide.strategies.tres.tables import Tables

(
    DEPTH,
    DOMAIN_RELEVANCE,
    DOMAIN_COUNT,
    DOMAIN_FAILURE_RATE,
    PARENT_SCORE,
    ANCHOR_SIMILARITY,
    SIBLING_SCORE,
    PATH_DEPTH,
    HAS_QUERY,
    DOMAIN_WEIGHT,
    ROUND_DISCOVERED,
) = range(X)
ANTI_WEIGHT = np.float32(0.5)


def depth(links: F64) -> F64:
    return np.minimum(links / 10.0, 1.0)


def domain_relevance(score: F64, judged: F64) -> F64:
    return score / np.maximum(judged, 1.0)


def domain_count(fetched: F64) -> F64:
    return np.minimum(np.log1p(fetched) / 8.0, 1.0)


def domain_failure_rate(failed: F64, fetched: F64) -> F64:
    return failed / np.maximum(fetched, 1.0)


def of_domain(hosts: Hosts, column: F64) -> F64:
    """For each host the sum of a column over all hosts of its registrable domain."""
    _, domain = np.unique(hosts.domain, return_inverse=True)
    total: F64 = np.bincount(domain, column).astype(np.float64)
    return total[domain]


def path_depth(urls: Sequence[str]) -> F64:
    """How many segments the path has, 0 for the root; ten are deep."""
    counts = [sum(map(bool, url.partition("?")[0].split("/")[3:])) for url in urls]
    return np.minimum(np.array(counts, np.float64) / 10.0, 1.0)


def has_query(urls: Sequence[str]) -> F64:
    return np.array(["?" in url for url in urls], np.float64)


def domain_weight(weight: F64) -> F64:
    return weight / (1.0 + weight)


def weights_of(hosts: Sequence[str], weights: Mapping[str, float]) -> F64:
    """The weight of each host, 1 unless it was set. The longest name that a host ends in counts."""
    if not weights:
        return np.ones(len(hosts))
    by_host = {host: _weight(addresses.host_of(host), weights) for host in set(hosts)}
    return np.array([by_host[host] for host in hosts])


def _weight(host: str, weights: Mapping[str, float]) -> float:
    labels = host.split(".")
    names = (".".join(labels[start:]) for start in range(len(labels)))
    return next((weights[name] for name in names if name in weights), 1.0)


def round_discovered(number: float) -> float:
    """Rounds have no end: r / (r + 100)."""
    return number / (number + 100.0)


def sibling_scores(tables: Tables, lesson: Lesson) -> F64:
    """For each page of a lesson the mean reward of those of its links that were fetched before."""
    pages, parent, rows = len(lesson.fetches), lesson.links.parent, tables.find(lesson.links.id)
    done = np.flatnonzero((tables.column("state", rows, FREE) == DONE) & (parent >= 0))
    count = np.bincount(parent[done], minlength=pages)[:pages]
    total = np.bincount(parent[done], tables.links.rows["reward"][rows[done]], minlength=pages)[:pages]
    mean: F64 = total / np.maximum(count, 1)
    return mean


class AnchorSimilarity:
    """forager's similarity of a link's words: max(0, cos(reference, words) − ½ · cos(anti-reference, words))."""

    def __init__(self, goal: Goal) -> None:
        about = goal.reference or goal.topic or " ".join(goal.keywords)
        self._embedding = Embedding.load()
        reference, anti_reference = self._embedding.embed([about, goal.anti_reference])
        self._goal = reference - ANTI_WEIGHT * anti_reference if about else None

    def of(self, anchors: Sequence[str], urls: Sequence[str]) -> F64:
        """Each distinct text is embedded once. For a link without anchor text the words of its URL count."""
        if self._goal is None or not anchors:
            return np.zeros(len(anchors))
        texts = [anchor or words_of(url) for anchor, url in zip(anchors, urls, strict=True)]
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        similarity = np.maximum(self._embedding.embed(list(distinct)) @ self._goal, 0.0)
        of_links: F64 = similarity[[distinct[text] for text in texts]].astype(np.float64)
        return of_links


@dataclass(frozen=True)
class Describer:
    """Computes the features of links; `weights` are the domain weights of the crawl."""

    similarity: AnchorSimilarity
    weights: Mapping[str, float]

    def of_links(self, tables: Tables, lesson: Lesson, rows: I64, links_from_seed: F64, round_number: int) -> F32:
        """Of some links of a lesson, as things stand when they are found."""
        links, parent = lesson.links, lesson.links.parent[rows]
        urls, hosts = links.url[rows].tolist(), links.host[rows].tolist()
        domain = tables.domain_rows(hosts)  # may add records, so it comes first
        domains = tables.domains.rows[domain]
        reward = np.nan_to_num(lesson.reward)
        x = np.zeros((len(rows), X), np.float32)
        x[:, DEPTH] = depth(links_from_seed)
        x[:, DOMAIN_RELEVANCE] = domain_relevance(domains["score"], domains["judged"])
        x[:, DOMAIN_COUNT] = domain_count(domains["fetched"])
        x[:, DOMAIN_FAILURE_RATE] = domain_failure_rate(domains["failed"], domains["fetched"])
        x[:, PARENT_SCORE] = np.append(reward, 0.0)[parent]  # seeds (-1) have no parent
        x[:, ANCHOR_SIMILARITY] = self.similarity.of(links.anchor[rows].tolist(), urls)
        x[:, SIBLING_SCORE] = np.append(sibling_scores(tables, lesson), 0.0)[parent]
        x[:, PATH_DEPTH] = path_depth(urls)
        x[:, HAS_QUERY] = has_query(urls)
        x[:, DOMAIN_WEIGHT] = domain_weight(weights_of(hosts, self.weights))
        x[:, ROUND_DISCOVERED] = round_discovered(round_number)
        return x

    def of_batch(self, batch: Batch, rows: Rows) -> F32:
        """Of some rows of a batch, as far as its columns go."""
        some, hosts = batch.take(rows), batch.hosts
        host: I64 = some.host
        urls = some.url.tolist()
        x = np.zeros((len(rows), X), np.float32)
        x[:, DEPTH] = depth(some.depth)
        judged, score, pages, failed = (
            of_domain(hosts, column)[host]
            for column in (hosts.judged, hosts.relevance_sum, hosts.pages, hosts.failures)
        )
        x[:, DOMAIN_RELEVANCE] = domain_relevance(score, judged)
        x[:, DOMAIN_COUNT] = domain_count(pages + failed)
        x[:, DOMAIN_FAILURE_RATE] = domain_failure_rate(failed, pages + failed)
        x[:, PARENT_SCORE] = some.parent_sum / np.maximum(some.parents, 1.0)
        x[:, PATH_DEPTH] = path_depth(urls)
        x[:, HAS_QUERY] = has_query(urls)
        x[:, DOMAIN_WEIGHT] = domain_weight(weights_of(hosts.name.tolist(), self.weights))[host]
        return x
