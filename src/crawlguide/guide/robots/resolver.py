"""Names to addresses, by the resolver of this machine, so that names whose servers say nothing hold up no others.

The system's call cannot be cut short: it blocks its thread until the system gives up, half a minute later. The threads
of the event loop are few and shared; so each look-up has a thread of its own, which nobody waits for longer than they
wish. Names of one registrable domain mostly have the same servers: few of them are looked up at once.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from crawlguide.core import urls
from crawlguide.guide.robots import unfinished

if TYPE_CHECKING:
    from collections.abc import Callable

    LookUp = Callable[[str, int], list[str]]

MOST_AT_ONCE, MOST_OF_DOMAIN = 512, 4


def looked_up(host: str, port: int) -> list[str]:
    """The addresses of a name; blocks. As the system does it: /etc/hosts counts, and what it is configured to ask."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class Resolver:
    """Looks names up, each once for all who want it at the same time."""

    def __init__(self, look_up: LookUp = looked_up, most_of_domain: int = MOST_OF_DOMAIN) -> None:
        self._look_up, self._most_of_domain = look_up, most_of_domain
        self._running: dict[tuple[str, int], asyncio.Future[list[str]]] = {}
        self._of_domain: Counter[str] = Counter()

    async def __call__(self, host: str, port: int) -> list[str]:
        """Raises `OSError` where there is no address, or too many names are still being looked up."""
        answer = self._running.get((host, port)) or self._start(host, port)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:  # whoever gives up leaves it to the others
            unfinished.leave(answer)
            raise

    def _start(self, host: str, port: int) -> asyncio.Future[list[str]]:
        domain = urls.domain_of(host)
        if len(self._running) >= MOST_AT_ONCE:
            raise OSError("too many names are being looked up")
        if self._of_domain[domain] >= self._most_of_domain:
            raise OSError(f"the name servers of {domain[:100]} do not answer")
        loop = asyncio.get_running_loop()
        answer = self._running[host, port] = loop.create_future()
        self._of_domain[domain] += 1
        answer.add_done_callback(partial(self._ended, host, port, domain))
        # No executor: it would wait for all of its threads before the process may end.
        worker = threading.Thread(target=self._work, args=(loop, answer, host, port), daemon=True, name="resolver")
        try:
            worker.start()
        except RuntimeError:  # the system has no room for one more
            answer.set_exception(OSError("no thread could be started to look up a name"))
        return answer

    def _work(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[list[str]], host: str, port: int) -> None:
        try:
            found, problem = self._look_up(host, port), None
        except Exception as wrong:  # noqa: BLE001 - whatever it is goes to those who wait
            found, problem = [], wrong
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(_settle, answer, found, problem)

    def _ended(self, host: str, port: int, domain: str, answer: asyncio.Future[list[str]]) -> None:
        del self._running[host, port]
        self._of_domain[domain] -= 1
        if not self._of_domain[domain]:
            del self._of_domain[domain]
        if not answer.cancelled():
            answer.exception()  # it is nobody's fault if everybody has given up


def _settle(answer: asyncio.Future[list[str]], found: list[str], problem: Exception | None) -> None:
    if answer.done():
        return
    if problem is not None:
        answer.set_exception(problem)
    else:
        answer.set_result(found)
