"""Documents read by a process of its own, which may take so long and so much memory and no more.

The process ends itself when its processor time is over, also in the middle of a parser: a timer whose signal nobody
handles does that. So it outlives neither a bad document nor us. The next document gets a new one.
"""

from __future__ import annotations

import atexit
import resource
import signal
import subprocess
import sys
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock

import msgspec

from crawlguide.crawler.page import Page
from crawlguide.crawler.readers import Document, read

LIMIT_S = 4.0  # of a processor
START_S = 60.0  # for the imports, on a busy machine
MEMORY_BYTES = 1024**3


def aside(document: Document) -> Page:
    """What the document says. Blocks for at most some seconds; never raises."""
    return _reader().read(document)


@cache
def _reader() -> Reader:
    reader = Reader()
    atexit.register(reader.close)
    return reader


class Reader:
    """The process, started when it is needed."""

    def __init__(self, limit_s: float = LIMIT_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._limit_s, self._memory_bytes = limit_s, memory_bytes
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def read(self, document: Document) -> Page:
        """One document at a time."""
        with self._lock:
            try:
                return self._asked(document)
            except (EOFError, OSError, msgspec.MsgspecError):
                self.close()
                return Page(problem=f"cannot be read as {document.kind} within {self._limit_s:g} s")

    def close(self) -> None:
        """End the process; a later document starts another."""
        if self._process is not None and self._pipe is not None:
            self._pipe.close()
            self._process.kill()
            self._process.wait()
        self._process = self._pipe = None

    def _asked(self, document: Document) -> Page:
        pipe = self._pipe or self._start()
        pipe.send_bytes(msgspec.msgpack.encode(document))
        if not pipe.poll(4 * self._limit_s):  # on a machine that is not overloaded it ends itself before that
            raise EOFError
        return msgspec.msgpack.decode(pipe.recv_bytes(), type=Page)

    def _start(self) -> Connection:
        ours, its = Pipe()
        command = [sys.executable, "-m", __name__, str(its.fileno()), str(self._limit_s), str(self._memory_bytes)]
        # A session of its own: Ctrl-C is for us, and the end of the pipe is its sign to go.
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            command, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        self._pipe = ours
        its.close()
        if not ours.poll(START_S) or ours.recv_bytes() != b"ready":
            raise EOFError
        return ours


def serve(pipe: Connection, limit_s: float, memory_bytes: int) -> None:
    """In the process: read documents until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send_bytes(b"ready")
    while True:
        try:
            document = msgspec.msgpack.decode(pipe.recv_bytes(), type=Document)
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        page = read(document)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send_bytes(msgspec.msgpack.encode(page))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), float(sys.argv[2]), int(sys.argv[3]))
