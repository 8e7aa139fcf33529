"""What is kept: URLs, the tree's nodes and leaves and what they saw, domains, transitions and the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from crawlguide.store.columns import grown
from crawlguide.store.tables.index import Index
from crawlguide.strategies.tres import leaves, network, replay
from crawlguide.strategies.tres.records import (
    CRAWL,
    DOMAIN,
    DONE,
    FREE,
    GIVEN,
    GONE,
    LEAF,
    LINK,
    MEAN,
    NETWORK,
    NODE,
    ONLINE,
    ROOM,
    SAMPLE,
    SEEN,
    SQUARE,
    TARGET,
    TRANSITION,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.notebook import Notebook, Records, Sheet
    from crawlguide.core.tables import F32, F64, I32, I64, U64

# The sheets of a crawl, and what can be made anew from them: where each URL stands, and the sums of priorities.

BLANK = np.zeros(1, LINK)[0]


class TresMemory:
    """Everything a crawl has learned. Whoever changes records says so to their sheet."""

    def __init__(self, notebook: Notebook, seed: int, capacity: int, alpha: float, model: F32 | None) -> None:
        self.seed = seed
        self.places: I32  # where each URL waits, -1: nowhere
        self.links: Sheet = notebook.sheet("t.link", LINK)
        self.rooms: Sheet = notebook.sheet("t.room", np.dtype(np.int32))
        self.nodes: Sheet = notebook.sheet("t.node", NODE)
        self.leaves: Sheet = notebook.sheet("t.leaf", LEAF)
        self.samples: Sheet = notebook.sheet("t.sample", SAMPLE)
        self.domains: Sheet = notebook.sheet("t.domain", DOMAIN)
        self.gone: Sheet = notebook.sheet("t.gone", np.dtype(np.uint64))
        self.transitions: Sheet = notebook.sheet("t.step", TRANSITION)
        self.priorities: Sheet = notebook.sheet("t.prior", np.dtype(np.float64))
        self.networks: Sheet = notebook.sheet("t.net", NETWORK)
        self.crawls: Sheet = notebook.sheet("t.crawl", CRAWL)
        self._begin(model)
        self._find_again(capacity, alpha)

    @property
    def crawl(self) -> Records:
        """The one record of the whole crawl."""
        return self.crawls.rows[:1]

    def touch(self) -> None:
        """The record of the crawl has changed."""
        self.crawls.changed(np.zeros(1, np.int64))

    def weights(self, which: int) -> F32:
        return self.networks.rows["weights"][which]  # type: ignore[no-any-return]

    def find(self, ids: U64) -> I64:
        return self._index.find(ids)

    def leaf(self, ids: U64) -> I64:
        """The leaf in which each URL waits, -1: in none."""
        rows = self.find(ids)
        places = self.places[rows].astype(np.int64) // ROOM
        places[rows < 0] = -1
        return places

    def told(self, column: str, rows: I64, unknown: Any) -> Any:
        """What is written of these URLs, and of those that have no record (-1) what is said here."""
        found = np.full((len(rows), *self.links.rows[column].shape[1:]), unknown, self.links.rows[column].dtype)
        known = rows >= 0
        found[known] = self.links.rows[column][rows[known]]
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
        """These URLs wait in their leaves from now on."""
        changed, lost = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        count = leaves.enter(
            rows, self.links.rows, self.nodes.rows, self.leaves.rows, self.rooms.rows, self.places, self.crawl,
            self.seed, changed, lost,
        )  # fmt: skip
        self.links.changed(rows)
        self._moved(changed)
        if count:
            self.forget(lost[:count])

    def leave(self, rows: I64, state: int) -> None:
        """These URLs wait no longer."""
        changed = np.empty(len(rows), np.int64)
        leaves.leave(rows, self.leaves.rows, self.rooms.rows, self.places, changed)
        self.links.rows["state"][rows] = state
        self.links.changed(rows)
        self._moved(changed)

    def let_go(self, ids: U64) -> None:
        """Given out: known for a while yet, the newest so many."""
        crawl = self.crawl[0]
        places = (int(crawl["gone"]) + np.arange(len(ids))) % GONE
        if crawl["gone"] + len(ids) > GONE:
            self._drop(self.gone.rows[places[places < self.gone.used]])
        self.gone.fit(int(places.max()) + 1)
        self.gone.rows[places] = ids
        self.gone.changed(places)
        crawl["gone"] += len(ids)

    def split(self, leaf: int, feature: int, threshold: float) -> None:
        """A leaf becomes two, with all that is in it."""
        new_leaf, new_node = self.leaves.used, self.nodes.used
        self._make_leaf(new_leaf)
        self.nodes.fit(new_node + 2)
        old_node = int(self.leaves.rows["node"][leaf])
        leaves.grow(
            self.nodes.rows, self.leaves.rows, self.samples.rows, leaf, new_leaf, new_node, feature, threshold
        )  # fmt: skip
        leaves.part_ways(
            self.links.rows, self.leaves.rows, self.rooms.rows, self.places, leaf, new_leaf, feature, threshold
        )
        self.nodes.changed(np.array([old_node, new_node, new_node + 1]))
        self.leaves.changed(np.array([leaf, new_leaf]))
        for one in (leaf, new_leaf):
            count, heard = int(self.leaves.rows["waiting"][one]), int(self.leaves.rows["heard"][one])
            self.rooms.changed(np.arange(one * ROOM, one * ROOM + count))
            self.samples.changed(np.arange(one * SEEN, one * SEEN + heard))

    def domain(self, hosts: Sequence[str]) -> I64:
        """The record of each host; new ones for unknown hosts."""
        known, keys = self._domain_of, {host: xxhash.xxh3_64_intdigest(host.encode()) for host in set(hosts)}
        for key in keys.values():
            if key not in known:
                known[key] = len(known)
                self.domains.fit(len(known))
                self.domains.rows["key"][known[key]] = key
        return np.array([known[keys[host]] for host in hosts], np.int64)

    def _moved(self, places: I64) -> None:
        there = places[places >= 0]
        self.rooms.changed(there)
        self.leaves.changed(there // ROOM)

    def _drop(self, ids: U64) -> None:
        """Unless it waits again by now."""
        rows = np.unique(self.find(ids))
        rows = rows[rows >= 0]
        state = self.links.rows["state"][rows]
        rows = rows[(state == GIVEN) | (state == DONE)]
        if len(rows):
            self.forget(rows)

    def _make_leaf(self, number: int) -> None:
        self.leaves.fit(number + 1)
        self.rooms.fit((number + 1) * ROOM)
        self.samples.fit((number + 1) * SEEN)

    def _begin(self, model: F32 | None) -> None:
        """With a network by chance, from a file, or of another crawl: that one lies there already."""
        new, taught = not self.crawls.used, bool(self.networks.used) or model is not None
        if not self.networks.used:
            self.networks.fit(4)
            network.begin(self.weights(ONLINE), self.seed)
            if model is not None:
                self.weights(ONLINE)[:] = model
        if new:
            self.weights(TARGET)[:] = self.weights(ONLINE)
            self.networks.rows[[MEAN, SQUARE]] = np.zeros(1, NETWORK)
            self.networks.changed(np.arange(4))
            self.crawls.fit(1)
            self.crawl["largest"], self.crawl["taught"] = 1.0, taught
            self.touch()
        if not self.leaves.used:
            self._make_leaf(0)
            self.nodes.fit(1)
            self.nodes.rows["feature"][0] = -1
            self.nodes.changed(np.zeros(1, np.int64))
            self.leaves.changed(np.zeros(1, np.int64))

    def _find_again(self, capacity: int, alpha: float) -> None:
        count = self.links.used
        self._index = Index()
        self._index.ids = self.links.rows["id"][:count].copy()
        used = np.flatnonzero(self.links.rows["state"][:count] != FREE)
        self._index.load(count, used)
        self.live = len(used)  # URLs of which anything is known
        self.places = np.full(max(count, 16), -1, np.int32)
        leaves.find_places(self.rooms.rows, self.leaves.rows[: self.leaves.used], self.places)
        self._domain_of = {key: row for row, key in enumerate(self.domains.rows["key"][: self.domains.used].tolist())}
        self.sums: F64 = np.zeros(2 << max(capacity - 1, 1).bit_length())
        replay.plant(self.sums, self.priorities.rows[: self.priorities.used], alpha)
