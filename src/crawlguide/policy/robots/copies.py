"""Copies of robots.txt files: what stands for a host, how long, and when it is asked for again (RFC 9309, 2.3 and 2.4).

A file that is not there permits everything. One that cannot be had forbids everything; then an old copy stands in for
a while. So a copy is one of three: it stands, it stands in, or nothing is known and the host's URLs wait.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.outcomes import is_retryable, is_success
from crawlguide.policy.robots import matching, reading
from crawlguide.store.columns import grown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crawlguide.core.tables import F64, I64
    from crawlguide.policy.robots.matching import Matcher

HOUR = 3_600.0
DUE_AFTER_S = 12 * HOUR  # a new copy is fetched while the old one still stands
STANDS_FOR_S = 24 * HOUR
STANDS_IN_FOR_S = 48 * HOUR  # where no newer one can be had
FIRST_RETRY_S, LAST_RETRY_S = 5.0, HOUR
MOST_COPIES, MOST_BYTES = 50_000, 64 * 1024 * 1024
NEVER = float("-inf")


class Copy(msgspec.Struct, frozen=True):
    """The robots.txt of one origin as it was when it could be read; what could not be is `failures` since then."""

    body: bytes = b""
    read: float = NEVER
    tried: float = NEVER
    failures: int = 0
    version: int = 0

    def stands(self, at: float) -> bool:
        """Whether it says what may be fetched now."""
        return at - self.read <= (STANDS_IN_FOR_S if self.failures else STANDS_FOR_S)

    def due(self) -> float:
        """When it should be fetched again."""
        if not self.failures:
            return self.read + DUE_AFTER_S
        return self.tried + min(FIRST_RETRY_S * 2.0 ** (self.failures - 1), LAST_RETRY_S)

    def after(self, status: int | None, body: bytes, at: float) -> Copy:
        """The copy after one more try: without a status, or with one that blames the host, the file was not read."""
        unread = status is None or is_retryable(status) or 300 <= status < 400
        if unread:
            return msgspec.structs.replace(self, tried=at, failures=self.failures + 1, version=self.version + 1)
        said = body[: reading.MAX_BYTES + 1] if status is not None and is_success(status) else b""
        return Copy(said, at, at, 0, self.version + 1)


@dataclass(frozen=True)
class File:
    """What one robots.txt says to one agent."""

    matcher: Matcher
    pause_s: float | None
    nofollow: Matcher
    noindex: Matcher
    sitemaps: tuple[str, ...]

    @classmethod
    def read(cls, body: bytes, agent: str) -> File:
        said, sitemaps = reading.read(body, agent)
        nofollow, noindex = (matching.compiled((False, text) for text in one) for one in (said.nofollow, said.noindex))
        return cls(matching.compiled(said.rules), said.pause_s, nofollow, noindex, tuple(sitemaps))


class Stands:
    """How the files of politeness queues stand, as columns; row 0 is that of queues of which none is in memory.

    A queue's stamp is another one after every change; until its due nothing has to be done about its files.
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._stamps, self._dues = np.zeros(1), np.full(1, NEVER)

    def rows(self, queues: Sequence[str]) -> I64:
        return np.fromiter(map(self._rows.get, queues, repeat(0)), np.int64, len(queues))

    def of(self, queues: Sequence[str]) -> tuple[F64, F64]:
        """Stamp and due of each queue."""
        rows = self.rows(queues)
        return self._stamps[rows], self._dues[rows]

    def put(self, queue: str, stamp: int, due: float) -> None:
        row = self._rows.get(queue) or (self._free.pop() if self._free else len(self._rows) + 1)
        self._rows[queue] = row
        self._stamps, self._dues = grown(self._stamps, row + 1, 0.0), grown(self._dues, row + 1, NEVER)
        self._stamps[row], self._dues[row] = stamp, due

    def forget(self, queue: str) -> None:
        row = self._rows.pop(queue, None)
        if row is not None:
            self._free.append(row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)


@dataclass
class Copies:
    """Copies in memory, by origin (`https://example.org:8443`), and what they say to each agent, compiled once.

    What was not used for longest goes first; the store has it all.
    """

    fetched: bool = False  # somebody here fetches what is missing
    known: bool = False  # whether there are any, here or in the store
    stands: Stands = field(default_factory=Stands)
    _copies: OrderedDict[str, Copy] = field(default_factory=OrderedDict)
    _files: dict[str, dict[str, File]] = field(default_factory=dict)
    _bytes: int = 0
    _stamp: int = 0

    def get(self, origin: str) -> Copy | None:
        """None: it is not in memory, which says nothing."""
        copy = self._copies.get(origin)
        if copy is not None:
            self._copies.move_to_end(origin)
        return copy

    def put(self, origin: str, copy: Copy) -> None:
        self._forget(origin, keep_files=copy.body)
        self._copies[origin] = copy
        self._bytes += len(copy.body)
        self._stamp += 1
        queue = urls.queue(address(origin))
        self.stands.put(queue, self._stamp, self._due(queue))
        self.known |= copy.version > 0
        while len(self._copies) > MOST_COPIES or self._bytes > MOST_BYTES:
            self._forget(next(iter(self._copies)))

    def file(self, origin: str, agent: str) -> File | None:
        """What is compiled; None: nothing is."""
        return self._files.get(origin, {}).get(agent)

    def compiled(self, origin: str, agent: str, file: File) -> None:
        self._files.setdefault(origin, {})[agent] = file

    def _forget(self, origin: str, keep_files: bytes | None = None) -> None:
        """What was compiled of the same text stays good."""
        old = self._copies.pop(origin, None)
        if old is not None:
            self._bytes -= len(old.body)
            self.stands.forget(urls.queue(address(origin)))
        if old is None or old.body != keep_files:
            self._files.pop(origin, None)

    def _due(self, queue: str) -> float:
        """A queue may have two files, for http and https. Where an old copy stands in, all is looked at anew."""
        copies = filter(None, (self._copies.get(f"{scheme}://{queue}") for scheme in ("http", "https")))
        return min((copy.due() if not copy.failures else NEVER for copy in copies), default=NEVER)


def origin_of(url: str) -> str:
    """The origin of a canonical URL: whose robots.txt counts. Who asks does not matter."""
    origin = url[: url.index("/", 8)]
    if "@" not in origin:
        return origin
    scheme, _, authority = origin.partition("://")
    return f"{scheme}://{authority.rpartition('@')[2]}"


def address(origin: str) -> str:
    """Where the robots.txt of an origin is."""
    return origin + matching.ITSELF


def is_file(url: str) -> bool:
    """Is this canonical URL that of a robots.txt?"""
    return url.endswith(matching.ITSELF) and url.index("/", 8) == len(url) - len(matching.ITSELF)
