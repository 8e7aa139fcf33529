"""forager's eleven features of a link, by name and order, each brought to about 0…1.

They are those of the moment in which a link is found. Of URLs that came another way (an import, a full room) the
features are those that the columns of a batch tell; what nobody knows of them is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.features.embedding import Embedding, words_of
from crawlguide.strategies.tres.options import Settings, param
from crawlguide.strategies.tres.records import X

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import F32, F64, I64, Mask, Rows
    from crawlguide.core.types import Batch, Hosts

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


def path_depth(urls: Sequence[str]) -> F64:
    """How many segments; ten are deep."""
    counts = [url.partition("?")[0].count("/") - 2 for url in urls]
    return np.minimum(np.array(counts, np.float64) / 10.0, 1.0)


def has_query(urls: Sequence[str]) -> F64:
    return np.array(["?" in url for url in urls], np.float64)


def domain_weight(hosts: Sequence[str], weights: Mapping[str, float]) -> F64:
    """w / (1 + w): one half where nobody said anything. The longest name that a host ends in counts."""
    if not weights:
        return np.full(len(hosts), 0.5)
    said = {host: _weight(host.partition(":")[0], weights) for host in set(hosts)}
    weight = np.array([said[host] for host in hosts])
    return weight / (1.0 + weight)


def _weight(host: str, weights: Mapping[str, float]) -> float:
    labels = host.split(".")
    names = (".".join(labels[start:]) for start in range(len(labels)))
    return next((weights[name] for name in names if name in weights), 1.0)


def round_discovered(turn: float) -> float:
    """Rounds have no end: r / (r + 100)."""
    return turn / (turn + 100.0)


class Likeness:
    """forager's similarity: max(0, cos(reference, words) − ½ · cos(anti-reference, words)) of the words of a link."""

    def __init__(self, goal: Goal) -> None:
        about = goal.reference or goal.topic or " ".join(goal.keywords)
        self._embedding = Embedding.load()
        for_it, against = self._embedding.embed([about, goal.anti_reference])
        self._goal = for_it - ANTI_WEIGHT * against if about else None

    def of(self, anchors: Sequence[str], urls: Sequence[str]) -> F64:
        """Each distinct text is looked at once. A link without words is as good as its address."""
        if self._goal is None or not anchors:
            return np.zeros(len(anchors))
        texts = [anchor or words_of(url) for anchor, url in zip(anchors, urls, strict=True)]
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        alike = np.maximum(self._embedding.embed(list(distinct)) @ self._goal, 0.0)
        found: F64 = alike[[distinct[text] for text in texts]].astype(np.float64)
        return found


def of_batch(batch: Batch, rows: Rows, weights: Mapping[str, float]) -> F32:
    """What the columns of a batch tell of some of its rows."""
    some, hosts = batch.take(rows), batch.hosts
    host: I64 = some.host
    urls = some.url.tolist()
    x = np.zeros((len(rows), X), np.float32)
    x[:, DEPTH] = depth(some.depth)
    x[:, DOMAIN_RELEVANCE] = domain_relevance(hosts.relevance_sum, hosts.judged)[host]
    x[:, DOMAIN_COUNT] = domain_count(hosts.pages + hosts.failures)[host]
    x[:, DOMAIN_FAILURE_RATE] = domain_failure_rate(hosts.failures, hosts.pages + hosts.failures)[host]
    x[:, PARENT_SCORE] = some.parent_sum / np.maximum(some.parents, 1.0)
    x[:, PATH_DEPTH] = path_depth(urls)
    x[:, HAS_QUERY] = has_query(urls)
    x[:, DOMAIN_WEIGHT] = domain_weight(hosts.name.tolist(), weights)[host]
    return x


# forager's profiles of domains: not too many pages of one, none of those that fail, slow ones last.
#
# A limit that is learned (`auto`, `range`) gives way where it would leave an answer short, and stays there; a domain
# that
# pays more than the crawl does on average may go on beyond `domain_max_pages`.

PAGES, SLOW, UNRELIABLE = 0, 1, 2
TRIES = 10  # fetches before a failure rate says anything
GIVES_WAY = 20  # times at most, in one answer


class Profiles:
    """`crawl` is the record in which limits stand as they are now."""

    def __init__(self, settings: Settings, crawl: Records) -> None:
        self._settings, self._crawl = settings, crawl
        self._params = tuple(
            param(given)
            for given in (settings.domain_max_pages, settings.slow_domain_ms, settings.unreliable_threshold)
        )
        limits = crawl["limits"][0]
        for place, one in enumerate(self._params):  # 0: never set
            limits[place] = one.bound(float(limits[place]) or one.value)

    def limit(self, which: int) -> float:
        return float(self._crawl["limits"][0][which])

    def keep(self, batch: Batch, wanted: int) -> Mask:
        """Rows that may go out. What was learned gives way while they are fewer than wanted."""
        for _ in range(GIVES_WAY):
            refused = self._refused(batch)
            keep: Mask = ~np.any(refused, axis=0)
            short = np.count_nonzero(keep) < min(wanted, len(batch))
            in_the_way = [which for which, mine in enumerate(refused) if mine.any()]
            if not short or not sum(self._give_way(which) for which in in_the_way):
                break
        return keep

    def slow(self, hosts: Hosts) -> Mask:
        """Hosts whose median answer takes too long; unknown ones are not slow."""
        mine: Mask = hosts.median_ms > self.limit(SLOW)
        return mine & (self._settings.slow_domains != "off")

    def _refused(self, batch: Batch) -> tuple[Mask, Mask, Mask]:
        hosts, row = batch.hosts, batch.host
        slow = self.slow(hosts) & (self._settings.slow_domains == "filter")
        return self._full(hosts)[row], slow[row], self._unreliable(hosts)[row]

    def _full(self, hosts: Hosts) -> Mask:
        mode = self._params[PAGES]
        most = np.full(len(hosts.name), self.limit(PAGES))
        if mode.mode != "fixed":
            pays = hosts.relevance_sum > self._mean() * np.maximum(hosts.judged, 1.0)
            most[pays] = mode.bound(np.inf)
        full: Mask = hosts.domain_pages >= most
        return full

    def _unreliable(self, hosts: Hosts) -> Mask:
        """Missing pages do not count: they say nothing about the host."""
        tries: F64 = hosts.pages + hosts.failures
        failing: Mask = hosts.errors > self.limit(UNRELIABLE) * tries
        return failing & (tries >= TRIES)

    def _mean(self) -> float:
        crawl = self._crawl[0]
        return float(crawl["reward"]) / max(float(crawl["transitions"]), 1.0)

    def _give_way(self, which: int) -> bool:
        """Twice as much, and of a failure rate half of the way to 1; whether anything changed."""
        limits, one = self._crawl["limits"][0], self._params[which]
        before = float(limits[which])
        limits[which] = one.bound((1.0 + before) / 2.0 if which == UNRELIABLE else 2.0 * before)
        return bool(limits[which] > before)
