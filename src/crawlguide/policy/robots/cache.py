"""A cache of robots.txt files: how long each is valid, and when it is fetched again (RFC 9309, 2.3 and 2.4).

A file that does not exist permits everything. One that cannot be fetched forbids everything; but an older copy stays
valid for a while. So a copy is either valid, or nothing is known and the URLs of its origin wait.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.outcomes import is_retryable, is_success
from crawlguide.policy.robots import matcher, parser
from crawlguide.store.columns import grown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crawlguide.core.tables import F64, I64
    from crawlguide.policy.robots.matcher import Matcher

HOUR = 3_600.0
DUE_AFTER_S = 12 * HOUR  # a new copy is fetched while the old one is still valid
VALID_FOR_S = 24 * HOUR
STALE_FOR_S = 48 * HOUR  # valid where no newer one can be fetched
FIRST_RETRY_S, LAST_RETRY_S = 5.0, HOUR
LONGEST_TOLD_S = HOUR  # to which a pause may hold everybody back that one tenant's crawlers tell of
MOST_FAILURES = 16  # that are counted: the wait is the longest by then
MOST_VERSION = 2**62  # beyond which one more could not be stored
MOST_COPIES, MOST_BYTES = 50_000, 256 * 1024 * 1024  # of all tenants
SCHEMES = ("http", "https")
BARE_BYTES = 1_024  # of a copy without a body, and a tenth of its compiled rules
COMPILED_RATIO = 9  # so much more memory than the file's bytes do its compiled rules take
MOST_AGENTS = 16  # for which one file is compiled at once
SHARED_BYTES, MOST_SHARED = 2_048, 500  # of a file whose rules those with the same bytes share, and of such rules
NEVER = float("-inf")


class CachedRobots(msgspec.Struct, frozen=True):
    """The robots.txt of one origin as it was last fetched, and how many attempts have failed since."""

    body: bytes = b""
    read: float = NEVER
    tried: float = NEVER
    failures: int = 0
    version: int = 0
    told_by: str = ""  # the tenant whose crawler fetched it; empty: the guide itself did

    def stands(self, at: float) -> bool:
        """Whether it is valid at this time."""
        return at - self.read <= (STALE_FOR_S if self.failures else VALID_FOR_S)

    def due(self) -> float:
        """When it should be fetched again."""
        if not self.failures:
            return self.read + DUE_AFTER_S
        return self.tried + min(FIRST_RETRY_S * 2.0 ** (min(self.failures, MOST_FAILURES) - 1), LAST_RETRY_S)

    def after(self, status: int | None, body: bytes, at: float) -> CachedRobots:
        """The copy after one more attempt: without a status, or with one of a host in trouble, it failed.

        A failure counts only if an attempt was due, however many are told.
        """
        failed = status is None or is_retryable(status) or 300 <= status < 400
        if failed and at < self.due():
            return self
        if failed:
            failures = min(self.failures + 1, MOST_FAILURES)
            return msgspec.structs.replace(self, tried=at, failures=failures, version=self.version + 1)
        content = body[: parser.MAX_BYTES + 1] if status is not None and is_success(status) else b""
        return CachedRobots(content, at, at, 0, self.version + 1)

    def healed(self, at: float) -> CachedRobots:
        """What was stored before may hold numbers that nobody could have meant: instants of the future, or none."""
        read, tried = (when if when <= at else at if when > at else NEVER for when in (self.read, self.tried))
        failures = min(max(self.failures, 0), MOST_FAILURES)
        version = min(max(self.version, 1), MOST_VERSION)
        return msgspec.structs.replace(self, read=read, tried=tried, failures=failures, version=version)


def newer(one: CachedRobots, other: CachedRobots) -> CachedRobots:
    """Of two copies of one file what was read last, and whether the last attempt failed since."""
    read = max(one, other, key=lambda copy: (copy.read, copy.tried))
    tried = max(one, other, key=lambda copy: copy.tried)
    if tried.tried <= read.tried:
        return read
    return msgspec.structs.replace(read, tried=tried.tried, failures=tried.failures)


class RobotsRules(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What one robots.txt says to one agent."""

    matcher: Matcher
    pause_s: float | None
    nofollow: Matcher
    noindex: Matcher
    sitemaps: tuple[str, ...]

    @classmethod
    def read(cls, body: bytes, agent: str) -> RobotsRules:
        """Many hosts have the same small file, or none: theirs is compiled once."""
        return _shared(body, agent) if len(body) <= SHARED_BYTES else _compiled(body, agent)


def _compiled(body: bytes, agent: str) -> RobotsRules:
    group, sitemaps = parser.parse(body, agent)
    nofollow, noindex = (matcher.compiled((False, text) for text in one) for one in (group.nofollow, group.noindex))
    return RobotsRules(matcher.compiled(group.rules), group.pause_s, nofollow, noindex, tuple(sitemaps))


_shared = lru_cache(MOST_SHARED)(_compiled)


def paused_s(copy: CachedRobots, rules: RobotsRules) -> float:
    """The pause that a file asks for, 0 for none. All tenants keep it: so far a file counts that one of them tells."""
    pause_s = rules.pause_s or 0.0
    return min(pause_s, LONGEST_TOLD_S) if copy.told_by else pause_s


class QueueStamps:
    """For each politeness queue the stamp and the due time of its files, as columns; row 0: no file is in the cache.

    The stamp changes whenever a file does, so what was permitted under the same stamp is permitted still. Until the due
    time no file has to be fetched again.
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._stamps, self._dues = np.zeros(1), np.full(1, NEVER)

    def rows(self, queues: Sequence[str]) -> I64:
        return np.fromiter(map(self._rows.get, queues, repeat(0)), np.int64, len(queues))

    def of(self, queues: Sequence[str]) -> tuple[F64, F64]:
        """Stamp and due time of each queue."""
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
class RobotsCache:
    """Copies in memory, by origin (`https://example.org:8443`), and their rules for each agent, compiled once.

    Each tenant has one: files that its crawlers tell of count for it alone. Bounded: the least recently used is evicted
    first; the store has all of them.
    """

    fetched: bool = False  # the guide itself fetches missing files
    known: bool = False  # whether there is any file, here or in the store
    stands: QueueStamps = field(default_factory=QueueStamps)
    _copies: OrderedDict[str, CachedRobots] = field(default_factory=OrderedDict)
    _files: dict[str, dict[str, RobotsRules]] = field(default_factory=dict)
    weight: int = 0  # bytes, roughly
    _stamp: int = 0

    def __contains__(self, origin: str) -> bool:
        return origin in self._copies

    def get(self, origin: str) -> CachedRobots | None:
        """None: it is not in the cache; the store may have it."""
        copy = self._copies.get(origin)
        if copy is not None:
            self._copies.move_to_end(origin)
        return copy

    def put(self, origin: str, copy: CachedRobots) -> None:
        self._evict(origin, new_body=copy.body)
        self._copies[origin] = copy
        self.weight += self._weight(origin)
        self._stamp += 1
        queue = urls.queue(address(origin))
        self.stands.put(queue, self._stamp, self._due(queue))
        self.known |= copy.version > 0
        while len(self._copies) > MOST_COPIES or self.weight > MOST_BYTES:
            self.evict_oldest()

    def evict_oldest(self) -> None:
        self._evict(next(iter(self._copies)))

    def file(self, origin: str, agent: str) -> RobotsRules | None:
        """The compiled rules for an agent; None: they are not compiled."""
        return self._files.get(origin, {}).get(agent)

    def ready(self, origin: str, agent: str, at: float) -> bool:
        """Whether a valid file is here that is compiled for the agent and not due."""
        copy = self.get(origin)
        if copy is None or self.file(origin, agent) is None:
            return False
        return copy.due() > at and copy.stands(at)

    def compiled(self, origin: str, agent: str, file: RobotsRules) -> None:
        before = self._weight(origin)
        files = self._files.setdefault(origin, {})
        files[agent] = file
        if len(files) > MOST_AGENTS:
            del files[next(iter(files))]
        self.weight += self._weight(origin) - before

    def pause_s(self, queue: str, at: float) -> float:
        """The longest pause that valid files of a politeness queue ask of any agent they were compiled for."""
        copies = {origin: self._copies.get(origin) for origin in (f"{scheme}://{queue}" for scheme in SCHEMES)}
        valid = {origin: copy for origin, copy in copies.items() if copy is not None and copy.stands(at)}
        pauses = (paused_s(valid[one], file) for one in valid for file in self._files.get(one, {}).values())
        return max(pauses, default=0.0)

    def _weight(self, origin: str) -> int:
        copy = self._copies.get(origin)
        compiled = COMPILED_RATIO * len(self._files.get(origin, ()))
        return 0 if copy is None else (len(copy.body) + BARE_BYTES) * (1 + compiled)

    def _evict(self, origin: str, new_body: bytes | None = None) -> None:
        """Evict; what was compiled from the same body stays."""
        self.weight -= self._weight(origin)
        old = self._copies.pop(origin, None)
        if old is not None:
            self.stands.forget(urls.queue(address(origin)))
        if old is None or old.body != new_body:
            self._files.pop(origin, None)

    def _due(self, queue: str) -> float:
        """A queue may have two files, for http and https. After a failure the queue is always due."""
        cache = filter(None, (self._copies.get(f"{scheme}://{queue}") for scheme in SCHEMES))
        return min((copy.due() if not copy.failures else NEVER for copy in cache), default=NEVER)


def origin_of(url: str) -> str:
    """The origin of a canonical URL, whose robots.txt applies; without the user name in it. Of "" it is ""."""
    origin = url[: max(0, url.find("/", 8))]
    if "@" not in origin:
        return origin
    scheme, _, authority = origin.partition("://")
    return f"{scheme}://{authority.rpartition('@')[2]}"


def address(origin: str) -> str:
    """The URL of an origin's robots.txt."""
    return origin + matcher.ITSELF


def is_file(url: str) -> bool:
    """Whether this canonical URL is that of a robots.txt."""
    return url.endswith(matcher.ITSELF) and url.find("/", 8) == len(url) - len(matcher.ITSELF)
