"""How long others wait while a server is busy with one request: /healthz asked again and again beside it.

The machine that runs the tests is busy itself, so a wait counts only as far as the server worked meanwhile.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

HEALTHZ = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
ALIVE = b"}"
EVERY_S = 0.002
MOST_S = 0.5  # the aim is a tenth of it; a noisy machine must not fail a test


class Served(Protocol):
    """A server that runs."""

    @property
    def process(self) -> subprocess.Popen[Any]: ...

    @property
    def port(self) -> int: ...


@dataclass
class Wait:
    """The longest that anybody waited."""

    longest_s: float = 0.0

    def __str__(self) -> str:
        return f"others waited {self.longest_s * 1_000:.0f} ms"


@contextmanager
def others_wait(served: Served) -> Iterator[Wait]:
    """Ask for /healthz from another thread until the block ends."""
    wait, done, asked = Wait(), threading.Event(), threading.Event()
    asking = threading.Thread(target=_ask, args=(served, wait, done, asked), daemon=True)
    asking.start()
    asked.wait()
    try:
        yield wait
    finally:
        done.set()
        asking.join()


def _ask(served: Served, wait: Wait, done: threading.Event, asked: threading.Event) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as line:
        while not done.is_set():
            began, worked = time.perf_counter(), worked_s(served.process.pid)
            line.sendall(HEALTHZ)
            answer = b""
            while not answer.endswith(ALIVE):
                answer += line.recv(4_096) or ALIVE  # an end is not for this thread to judge
            passed, work = time.perf_counter() - began, worked_s(served.process.pid) - worked
            wait.longest_s = max(wait.longest_s, min(passed, work))
            asked.set()
            time.sleep(EVERY_S)


def worked_s(process: int) -> float:
    """Time that a process has spent on a processor, in all its threads."""
    spent = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            spent += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            continue
    return spent / 1e9
