"""The link table: which page leads where, with which words, at which place.

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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I32, U64
    from crawlguide.store.tables.shelves import Shelf

NOWHERE = 0


class Run(msgspec.Struct, array_like=True):
    """What is written of one page: its links, then links it no longer holds but chains still lead through."""

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


_decoder = msgspec.msgpack.Decoder(Run)
_encoder = msgspec.msgpack.Encoder()
NO_LINKS = LinkRun(0, 0, np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int32), [])


class LinkTable:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def run(self, page: int) -> LinkRun:
        kept = self._shelf.get(_key(page))
        if kept is None:
            return NO_LINKS
        run = _decoder.decode(kept)
        child, next_in = np.frombuffer(run.child, np.uint64), np.frombuffer(run.next_in, np.uint64)
        return LinkRun(run.live, run.sequence, child, next_in, np.frombuffer(run.position, np.int32), run.anchors)

    def write(self, page: int, run: LinkRun) -> None:
        columns = (run.child.tobytes(), run.next_in.tobytes(), run.position.tobytes())
        self._shelf.put(_key(page), _encoder.encode(Run(run.live, run.sequence, *columns, run.anchors)))

    def forget(self, page: int) -> None:
        """Chains end here from now on; as they run from new to old, what lies behind was to go soon anyway."""
        self._shelf.delete(_key(page))

    def children(self, page: int) -> Paths:
        run = self.run(page)
        return run.paths(page, range(run.live))

    def parents(self, child: int, newest: int, most: int | None = None) -> Paths:
        """Every page that links to a URL, newest first; or only so many of the newest.

        A page that was forgotten and came back stands at the head of the chain, and its old place still leads to it.
        """
        found: list[Paths] = []
        seen: set[int] = set()
        page, wanted = newest, np.uint64(child)
        while page != NOWHERE and page not in seen and (most is None or len(found) < most):
            seen.add(page)
            run = self.run(page)
            here = np.flatnonzero(run.child == wanted)[:1]
            if not len(here):
                break
            found.append(run.paths(page, here.tolist()))
            page = int(run.next_in[here[0]])
        return joined(found)


def joined(pieces: Sequence[Paths]) -> Paths:
    if not pieces:
        none = np.zeros(0, np.uint64)
        return Paths(none, none, np.zeros(0, object), np.zeros(0, np.int32))
    columns = zip(*((p.parent, p.child, p.anchor, p.position) for p in pieces), strict=True)
    return Paths(*(np.concatenate(column) for column in columns))


def _key(page: int) -> bytes:
    return page.to_bytes(8, "big")
