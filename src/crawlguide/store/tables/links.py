"""The link table: which page links where, with which anchor text, at which place.

A page's links lie together in one record, its run. Links to one page are chained, newest first: a row names the page
with its newest link, and that page's run names, beside the link, the page with the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.core.columns import texts
from crawlguide.core.types import Paths
from crawlguide.store.tables.keyspace import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I32, U64
    from crawlguide.store.tables.keyspace import Keyspace

NOWHERE = 0


class StoredRun(msgspec.Struct, array_like=True):
    """What is stored of one page: its links, then links it no longer holds but chains still lead through."""

    live: int
    sequence: int
    child: bytes
    next_in: bytes
    position: bytes
    anchors: list[str]


@dataclass(frozen=True)
class LinkRun:
    """The links of one page, the last ones perhaps only links of chains.

    A URL discovered after the run was written has been forgotten in between: its chain does not lead through here.
    """

    live: int
    sequence: int  # of the next URL to be discovered when this was written
    child: U64
    next_in: U64
    position: I32
    anchors: list[str]

    def paths(self, page: int, which: Sequence[int] | range) -> Paths:
        rows = np.array(which, np.intp)
        parent = np.full(len(rows), page, np.uint64)
        return Paths(parent, self.child[rows], texts(self.anchors[row] for row in rows), self.position[rows])


_decoder = msgspec.msgpack.Decoder(StoredRun)
_encoder = msgspec.msgpack.Encoder()
NO_LINKS = LinkRun(0, 0, np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int32), [])


class LinkTable:
    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace

    def run(self, page: int) -> LinkRun:
        stored = self._keyspace.get(key_of(page, 8))
        if stored is None:
            return NO_LINKS
        run = _decoder.decode(stored)
        child, next_in = np.frombuffer(run.child, np.uint64), np.frombuffer(run.next_in, np.uint64)
        return LinkRun(run.live, run.sequence, child, next_in, np.frombuffer(run.position, np.int32), run.anchors)

    def write(self, page: int, run: LinkRun) -> None:
        columns = (run.child.tobytes(), run.next_in.tobytes(), run.position.tobytes())
        self._keyspace.put(key_of(page, 8), _encoder.encode(StoredRun(run.live, run.sequence, *columns, run.anchors)))

    def forget(self, page: int) -> None:
        """Chains end here from now on; as they run from new to old, what lies behind was to go soon anyway."""
        self._keyspace.delete(key_of(page, 8))

    def children(self, page: int) -> Paths:
        run = self.run(page)
        return run.paths(page, range(run.live))

    def parents(self, child: int, newest: int, most: int | None = None) -> Paths:
        """Every page that links to a URL, newest first; or only so many of the newest.

        A page that was forgotten and came back stands at the head of the chain, and its old place still leads to it.
        """
        paths: list[Paths] = []
        seen: set[int] = set()
        page, wanted = newest, np.uint64(child)
        while page != NOWHERE and page not in seen and (most is None or len(paths) < most):
            seen.add(page)
            run = self.run(page)
            here = np.flatnonzero(run.child == wanted)[:1]
            if not len(here):
                break
            paths.append(run.paths(page, here.tolist()))
            page = int(run.next_in[here[0]])
        return joined(paths)


def joined(paths: Sequence[Paths]) -> Paths:
    if not paths:
        none = np.zeros(0, np.uint64)
        return Paths(none, none, np.zeros(0, object), np.zeros(0, np.int32))
    columns = zip(*((p.parent, p.child, p.anchor, p.position) for p in paths), strict=True)
    return Paths(*(np.concatenate(column) for column in columns))
