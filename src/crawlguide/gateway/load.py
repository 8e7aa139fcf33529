"""How much is let in at once: connections, bytes of bodies, requests that wait for their turn.

Whatever is over a bound is refused at once, with a hint when to come back. Nothing is remembered of it, so all is as
before as soon as a flood ends.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import Counter, deque
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from crawlguide.core.errors import RateLimited, UnavailableError
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway.access.credential import ANYONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.core.config import ServerOptions
    from crawlguide.gateway.access.credential import Credential

FILES_OF_OUR_OWN = 256  # descriptors that connections may not take: the store and requests of our own need them
SMALL_BYTES = 65_536
TURN_S, MOST_AT_ONCE = 0.01, 32
AVERAGED = 0.1  # weight of the last turn
LONGEST_WAIT_S, FEW_WAITING = 0.5, 16
RETRY_AFTER_S = 1.0
MOST_OF_ADDRESS, MOST_OF_LOOPBACK = 2_000, 12_000  # connections, unless the operator says how many
SAID_EVERY_S = 60.0
LOOPBACK_NETWORK = "::/64"  # of ::1


class Load:
    """All bounds of one server, and who is told of a refusal."""

    def __init__(self, options: ServerOptions) -> None:
        self.connections = Connections(most_connections(options), options.max_connections_per_address)
        self.places = Places()
        self.bodies = BodyBudget(options.max_bodies_bytes)
        self.answers = UnsentAnswers(options.max_bodies_bytes)
        self.turns = Turns()
        self.on_refusal: Callable[[UnavailableError], None] = lambda _: None
        self.are_tells_crowded: Callable[[], bool] = lambda: False  # whoever tells; they wait for each other
        self._said_at = -SAID_EVERY_S

    def is_crowded(self, *, tells: bool) -> bool:
        """Would one more wait too long? Nothing of it need be read to know."""
        return self.turns.is_crowded() or (tells and self.are_tells_crowded())

    def refused(self, problem: UnavailableError) -> None:
        """Count it. The log says it once a minute: a line for each would make a flood worse."""
        self.on_refusal(problem)
        now = time.monotonic()
        if now - self._said_at >= SAID_EVERY_S:
            self._said_at = now
            happened("overloaded", "refusing for now: {problem}", WARNING, problem=problem.message)


def most_connections(options: ServerOptions) -> int:
    """Of each port. Each connection is a file, and a store that cannot open its own loses reports."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = files - max(FILES_OF_OUR_OWN, files // 4)
    return max(1, min(options.max_connections, left // len(options.ports)))


class Connections:
    """How many are open, in all and of each address.

    Without `most_of_one` an address has a quarter at the most: not a few of them can take all. This machine has more.
    """

    def __init__(self, most: int, most_of_one: int = 0) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._open: Counter[str] = Counter()
        self._all = 0

    def enter(self, address: str) -> None:
        """Count one more, or raise `UnavailableError`."""
        if self._all >= self._most:
            raise UnavailableError(f"more than {self._most} connections at once", retry_after_s=RETRY_AFTER_S)
        owner = whose(address)
        most = self._most_of_one or self._usual(owner)
        if self._open[owner] >= most:
            words = f"more than {most} connections at once from {owner}"
            raise UnavailableError(words, retry_after_s=RETRY_AFTER_S)
        self._open[owner] += 1
        self._all += 1

    def _usual(self, owner: str) -> int:
        if owner.startswith("127.") or owner == LOOPBACK_NETWORK:
            return MOST_OF_LOOPBACK
        return min(MOST_OF_ADDRESS, max(1, self._most // 4))

    def leave(self, address: str) -> None:
        owner = whose(address)
        self._all -= 1
        self._open[owner] -= 1
        if not self._open[owner]:
            del self._open[owner]

    def __len__(self) -> int:
        return self._all


class Places:
    """Open sockets and streams, of each tenant and of each of its credentials: one must not take all there are.

    Where no credential is wanted there is nobody to tell apart.
    """

    def __init__(self) -> None:
        self._taken: Counter[tuple[str, ...]] = Counter()

    def enter(self, credential: Credential, bounds: tuple[int, int]) -> None:
        """Count one more, or raise `RateLimited`. Bounds are of the credential and of its tenant; 0: there is none."""
        owners = _owners(credential)
        for owner, most in zip(owners, bounds, strict=True) if credential is not ANYONE else ():
            if most and self._taken[owner] >= most:
                kind = "credential" if len(owner) > 1 else "tenant"
                words = f"your {kind}: expected at most {most} sockets and streams at once"
                raise RateLimited(words, retry_after_s=RETRY_AFTER_S)
        self._taken.update(owners)

    def leave(self, credential: Credential) -> None:
        for owner in _owners(credential):
            self._taken[owner] -= 1
            if not self._taken[owner]:
                del self._taken[owner]


def _owners(credential: Credential) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (credential.tenant, credential.name), (credential.tenant,)


def whose(address: str) -> str:
    """Whoever has one IPv6 address has the 2**64 of its network."""
    if ":" not in address:
        return address
    whole = ip_address(address.partition("%")[0])
    if not isinstance(whole, IPv6Address) or whole.ipv4_mapped is not None:
        return str(getattr(whole, "ipv4_mapped", whole))
    return str(IPv6Address(int(whole) >> 64 << 64)) + "/64"


class BodyBudget:
    """One budget for all bytes of requests and messages that have come in and are not answered yet.

    Large ones may use three quarters of it: asks go on while somebody floods the server with reports.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self.held_bytes = 0

    def grow(self, size: int, more: int) -> None:
        """A body of `size` bytes becomes larger by `more`. Raises `UnavailableError` where there is no room."""
        self._take(more, self._most if size + more <= SMALL_BYTES else self._most * 3 // 4)

    def reserve(self, size: int) -> None:
        """Room for a message of which nobody knows yet how large it is: most are small. Raises `UnavailableError`."""
        self._take(size, self._most)

    def _take(self, more: int, most: int) -> None:
        if self.held_bytes + more > most:
            words = f"more than {most} bytes of requests are being worked on"
            raise UnavailableError(words, retry_after_s=RETRY_AFTER_S)
        self.held_bytes += more

    def free(self, size: int) -> None:
        self.held_bytes -= size


class UnsentAnswers:
    """Bytes of answers for whoever does not read them. Where that is too much, who has not for the longest is cut."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._sizes: dict[Callable[[], None], int] = {}  # by what cuts the connection; the oldest first
        self._bytes = 0

    def enter(self, cut: Callable[[], None], size: int) -> None:
        """So many bytes wait. Raises `UnavailableError`, to be logged, where others were cut for them."""
        self._sizes[cut] = size
        self._bytes += size
        number = 0
        while self._bytes > self._most and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.leave(oldest)
            oldest()
            number += 1
        if number:
            words = f"more than {self._most} bytes of answers wait for somebody to read them"
            raise UnavailableError(words, retry_after_s=RETRY_AFTER_S)

    def leave(self, cut: Callable[[], None]) -> None:
        self._bytes -= self._sizes.pop(cut, 0)


class Turns:
    """Requests start a few in each turn of the event loop, so that between them others are read, or refused at once.

    Who would wait longer than half a second is better told so: it comes back later, or asks elsewhere.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._started = 0  # in this turn of the loop
        self._turn_began = self._steps_began = 0.0
        self._each_s = 0.0  # from one start to the next, with all that is done in between, as a moving average
        self._step_s = 0.0  # what the first step of one takes by itself, likewise
        self._at_once = MOST_AT_ONCE

    def is_crowded(self) -> bool:
        return len(self._waiting) > max(FEW_WAITING, LONGEST_WAIT_S / max(self._each_s, 1e-6))

    def wait(self, start: Callable[[], None]) -> None:
        """`start` is called now, or when those before have had their turn."""
        if self._waiting or self._started >= self._at_once:
            self._waiting.append(start)
            return
        if not self._started:
            self._turn_began = time.perf_counter()
            asyncio.get_running_loop().call_soon(self._turn)
        self._started += 1
        start()

    async def come(self) -> None:
        """The same for who can wait: it goes on when its turn has come."""
        if self._waiting or self._started >= self._at_once:
            turn = asyncio.get_running_loop().create_future()
            self.wait(lambda: None if turn.done() else turn.set_result(None))
            await turn
        else:
            self.wait(lambda: None)

    def _turn(self) -> None:
        """Start the next ones. Nothing but their first steps runs between the two calls around them."""
        now = time.perf_counter()
        self._each_s += AVERAGED * ((now - self._turn_began) / self._started - self._each_s)
        self._turn_began = now
        self._started = min(self._at_once, len(self._waiting))
        if self._started:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._begin_steps)
            for _ in range(self._started):
                self._waiting.popleft()()
            loop.call_soon(self._end_steps)

    def _begin_steps(self) -> None:
        self._steps_began = time.perf_counter()

    def _end_steps(self) -> None:
        """Refusals take none of the time there is for starting: in a flood nobody would be served."""
        took_s = (time.perf_counter() - self._steps_began) / self._started
        self._step_s += AVERAGED * (took_s - self._step_s)
        self._at_once = max(1, min(MOST_AT_ONCE, int(TURN_S / max(self._step_s, 1e-6))))
        self._turn()
