"""Everything that `tres` stores: its sheets, and what follows from them (the index of URLs, their places, the sums)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from crawlguide.core import urls
from crawlguide.store.columns import grown
from crawlguide.store.tables.index import Index
from crawlguide.strategies.tres import network, replay, tree
from crawlguide.strategies.tres.records import (
    ASSIGNED,
    CRAWL,
    DOMAIN,
    DOMAIN_BEFORE,
    DONE,
    FREE,
    LEAF,
    LINK,
    MEAN,
    NETWORK,
    NODE,
    ONLINE,
    QUEUE,
    RECENT,
    SAMPLE,
    SAMPLES,
    SQUARE,
    TARGET,
    TRANSITION,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.notebook import Notebook, Records, Sheet
    from crawlguide.core.tables import F32, F64, I32, I64, U64

BLANK = np.zeros(1, LINK)[0]


class Tables:
    """Everything a crawl has learned. Whoever changes records says so to their sheet."""

    def __init__(self, notebook: Notebook, seed: int, capacity: int, alpha: float, model: F32 | None) -> None:
        self.seed = seed
        self.places: I32  # where each URL waits in the queues, -1: nowhere
        self.links: Sheet = notebook.sheet("t.link", LINK)
        self.queues: Sheet = notebook.sheet("t.room", np.dtype(np.int32))
        self.nodes: Sheet = notebook.sheet("t.node", NODE)
        self.leaves: Sheet = notebook.sheet("t.leaf", LEAF)
        self.samples: Sheet = notebook.sheet("t.sample", SAMPLE)
        self.domains: Sheet = notebook.sheet("t.dom", DOMAIN)
        self.recent: Sheet = notebook.sheet("t.gone", np.dtype(np.uint64))
        self.transitions: Sheet = notebook.sheet("t.step", TRANSITION)
        self.priorities: Sheet = notebook.sheet("t.prior", np.dtype(np.float64))
        self.networks: Sheet = notebook.sheet("t.net", NETWORK)
        self.crawls: Sheet = notebook.sheet("t.crawl", CRAWL)
        self._fill_new(model)
        self._take_over(notebook.sheet("t.domain", DOMAIN_BEFORE))
        self._rebuild(capacity, alpha)

    @property
    def crawl(self) -> Records:
        """The one record of the whole crawl."""
        return self.crawls.rows[:1]

    def crawl_changed(self) -> None:
        """The record of the crawl has changed."""
        self.crawls.changed(np.zeros(1, np.int64))

    def weights(self, which: int) -> F32:
        return self.networks.rows["weights"][which]  # type: ignore[no-any-return]

    def find(self, ids: U64) -> I64:
        return self._index.find(ids)

    def leaf(self, ids: U64) -> I64:
        """The leaf in whose queue each URL waits, -1: in none."""
        rows = self.find(ids)
        places = self.places[rows].astype(np.int64) // QUEUE
        places[rows < 0] = -1
        return places

    def column(self, name: str, rows: I64, default: Any) -> Any:
        """One column of the records of these URLs; `default` where there is no record (-1)."""
        found = np.full(len(rows), default, self.links.rows[name].dtype)
        found[rows >= 0] = self.links.rows[name][rows[rows >= 0]]
        return found

    def claim(self, ids: U64) -> I64:
        """The record of each id, new ones for unknown ids."""
        rows, fresh = self._index.claim(ids)
        self.links.fit(self._index.rows)
        self.places = grown(self.places, self._index.rows, -1)
        new = fresh.astype(np.bool_)
        self.live += int(np.count_nonzero(new))
        self.links.rows[rows[new]] = BLANK
        self.links.rows["id"][rows[new]] = ids[new]
        return rows

    def forget(self, rows: I64) -> None:
        self.places[rows] = -1
        self.links.rows["state"][rows] = FREE
        self.links.changed(rows)
        self._index.forget(rows)
        self.live -= len(rows)

    def enter(self, rows: I64) -> None:
        """These URLs wait in the queues of their leaves from now on."""
        changed, lost = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        count = tree.enter(
            rows, self.links.rows, self.nodes.rows, self.leaves.rows, self.queues.rows, self.places, self.crawl,
            self.seed, changed, lost,
        )  # fmt: skip
        self.links.changed(rows)
        self._queues_changed(changed)
        if count:
            self.forget(lost[:count])

    def leave(self, rows: I64, state: int) -> None:
        """These URLs wait no longer."""
        changed = np.empty(len(rows), np.int64)
        tree.leave(rows, self.leaves.rows, self.queues.rows, self.places, changed)
        self.links.rows["state"][rows] = state
        self.links.changed(rows)
        self._queues_changed(changed)

    def keep_recent(self, ids: U64) -> None:
        """These URLs were assigned: their records are kept a while yet, until so many others followed."""
        crawl = self.crawl[0]
        places = (int(crawl["gone"]) + np.arange(len(ids))) % RECENT
        if crawl["gone"] + len(ids) > RECENT:
            self._forget_old(self.recent.rows[places[places < self.recent.used]])
        self.recent.fit(int(places.max()) + 1)
        self.recent.rows[places] = ids
        self.recent.changed(places)
        crawl["gone"] += len(ids)

    def split(self, leaf: int, feature: int, threshold: float) -> None:
        """A leaf becomes two, with all that is in it."""
        new_leaf, new_node = self.leaves.used, self.nodes.used
        self._make_leaf(new_leaf)
        self.nodes.fit(new_node + 2)
        old_node = int(self.leaves.rows["node"][leaf])
        tree.split_leaf(
            self.nodes.rows, self.leaves.rows, self.samples.rows, leaf, new_leaf, new_node, feature, threshold
        )  # fmt: skip
        tree.split_queue(
            self.links.rows, self.leaves.rows, self.queues.rows, self.places, leaf, new_leaf, feature, threshold
        )
        self.nodes.changed(np.array([old_node, new_node, new_node + 1]))
        self.leaves.changed(np.array([leaf, new_leaf]))
        for one in (leaf, new_leaf):
            count, heard = int(self.leaves.rows["waiting"][one]), int(self.leaves.rows["heard"][one])
            self.queues.changed(np.arange(one * QUEUE, one * QUEUE + count))
            self.samples.changed(np.arange(one * SAMPLES, one * SAMPLES + heard))

    def domain_rows(self, hosts: Sequence[str]) -> I64:
        """The record of each host's registrable domain; new ones for unknown domains."""
        rows = self._domain_rows
        keys = {host: _key(urls.domain_of(host)) for host in set(hosts)}
        for key in keys.values():
            if key not in rows:
                rows[key] = self.domains.used
                self.domains.fit(self.domains.used + 1)
                self.domains.rows["key"][rows[key]] = key
                self.domains.changed(np.array([rows[key]]))
        for host, key in keys.items():
            if (by_host := rows.get(_key(host), rows[key])) != rows[key]:
                self._add_host(by_host, rows[key])
        return np.array([rows[keys[host]] for host in hosts], np.int64)

    def _add_host(self, host: int, domain: int) -> None:
        """Version 0.1.0 kept a record for each host: what it counted belongs to the host's domain."""
        records = self.domains.rows
        if records["fetched"][host] or records["failed"][host]:
            for name in ("fetched", "failed", "score", "judged"):
                records[name][domain] += records[name][host]
                records[name][host] = 0
            self.domains.changed(np.array([host, domain]))

    def _queues_changed(self, places: I64) -> None:
        changed = places[places >= 0]
        self.queues.changed(changed)
        self.leaves.changed(changed // QUEUE)

    def _forget_old(self, ids: U64) -> None:
        """Unless they wait again by now."""
        rows = np.unique(self.find(ids))
        rows = rows[rows >= 0]
        state = self.links.rows["state"][rows]
        rows = rows[(state == ASSIGNED) | (state == DONE)]
        if len(rows):
            self.forget(rows)

    def _make_leaf(self, number: int) -> None:
        self.leaves.fit(number + 1)
        self.queues.fit((number + 1) * QUEUE)
        self.samples.fit((number + 1) * SAMPLES)

    def _fill_new(self, model: F32 | None) -> None:
        """Begin with a random network, one from a file, or that of another crawl, which lies in its sheet already."""
        new, taught = not self.crawls.used, bool(self.networks.used) or model is not None
        if not self.networks.used:
            self.networks.fit(4)
            network.randomise(self.weights(ONLINE), self.seed)
            if model is not None:
                self.weights(ONLINE)[:] = model
        if new:
            self.weights(TARGET)[:] = self.weights(ONLINE)
            self.networks.rows[[MEAN, SQUARE]] = np.zeros(1, NETWORK)
            self.networks.changed(np.arange(4))
            self.crawls.fit(1)
            self.crawl["largest"], self.crawl["taught"] = 1.0, taught
            self.crawl_changed()
        if not self.leaves.used:
            self._make_leaf(0)
            self.nodes.fit(1)
            self.nodes.rows["feature"][0] = -1
            self.nodes.changed(np.zeros(1, np.int64))
            self.leaves.changed(np.zeros(1, np.int64))

    def _take_over(self, before: Sheet) -> None:
        """Go on from the records of version 0.1.0, in which every fetch counted as judged."""
        if before.used and not self.domains.used:
            self.domains.fit(before.used)
            for name in ("key", "fetched", "failed", "score"):
                self.domains.rows[name][: before.used] = before.rows[name][: before.used]
            self.domains.rows["judged"][: before.used] = before.rows["fetched"][: before.used]
            self.domains.changed(np.arange(before.used))

    def _rebuild(self, capacity: int, alpha: float) -> None:
        count = self.links.used
        self._index = Index()
        self._index.ids = self.links.rows["id"][:count].copy()
        used = np.flatnonzero(self.links.rows["state"][:count] != FREE)
        self._index.load(count, used)
        self.live = len(used)  # URLs that have a record
        self.places = np.full(max(count, 16), -1, np.int32)
        tree.find_places(self.queues.rows, self.leaves.rows[: self.leaves.used], self.places)
        keys = self.domains.rows["key"][: self.domains.used].tolist()  # 0: a version before did not write it
        self._domain_rows = {key: row for row, key in enumerate(keys) if key}
        self.sums: F64 = np.zeros(2 << max(capacity - 1, 1).bit_length())
        replay.build_sums(self.sums, self.priorities.rows[: self.priorities.used], alpha)


def _key(domain: str) -> int:
    return xxhash.xxh3_64_intdigest(domain.encode())
