"""Standard input and output as the SDK wants them, but with an end: a line has at most so many bytes, and nobody who
does not write or read keeps this process from ending when it is told to.

Both are moved aside first. Whatever else in this process prints goes to the standard error: what is printed beside the
messages would break them.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PIECE = 65_536
TOO_LONG = "expected a message of at most {most} bytes\n"  # is no JSON, and answered as such


@asynccontextmanager
async def streams(most_bytes: int) -> AsyncIterator[tuple[Any, Any]]:
    """What a server reads from and writes to, until the block ends."""
    taken, given = _aside(0, os.open(os.devnull, os.O_RDONLY)), _aside(1, os.dup(2))
    lines, answers = Incoming(taken, most_bytes), Outgoing(given)
    # The SDK reads lines, writes and flushes: no more of a file than these have.
    stdin, stdout = cast("anyio.AsyncFile[str]", lines), cast("anyio.AsyncFile[str]", answers)
    try:
        async with stdio_server(stdin, stdout) as both:
            try:
                yield both
            finally:
                lines.end()
    except* anyio.BrokenResourceError:  # a line that came last, and that nobody reads any more
        pass


def _aside(number: int, instead: int) -> int:
    """A standard stream under another number; from now on there is something else in its place."""
    moved = os.dup(number)
    os.dup2(instead, number)
    os.close(instead)
    return moved


class Incoming:
    """Lines, read by a thread that nobody waits for."""

    def __init__(self, file: int, most_bytes: int) -> None:
        self._file, self._most = file, most_bytes
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(16)
        self._ended = False
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="crawlguide-stdin", daemon=True).start()

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> str:
        line = None if self._ended else await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def end(self) -> None:
        """Nobody reads on."""
        self._ended = True
        with suppress(asyncio.QueueFull):  # then there is something to wake up by
            self._lines.put_nowait(None)

    def _read(self) -> None:
        with suppress(RuntimeError, OSError):  # the loop has ended
            rest, too_long = b"", False
            while piece := os.read(self._file, PIECE):
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    self._put(TOO_LONG.format(most=self._most) if too_long or len(line) > self._most else line)
                    too_long = False
                if len(rest) > self._most:
                    rest, too_long = b"", True
            self._put(None)

    def _put(self, line: bytes | str | None) -> None:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        asyncio.run_coroutine_threadsafe(self._lines.put(text), self._loop).result()


class Outgoing:
    """Writes one message after the other; who writes waits until it is taken."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._texts: queue.Queue[tuple[bytes, Callable[[], None]]] = queue.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._write, name="crawlguide-stdout", daemon=True).start()

    async def write(self, text: str) -> None:
        taken = asyncio.Event()
        self._texts.put((text.encode(), taken.set))
        await taken.wait()

    async def flush(self) -> None:
        """Nothing is held."""

    def _write(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            while True:
                text, taken = self._texts.get()
                with suppress(OSError):  # nobody reads any more; the end of the input says so, too
                    while text:
                        text = text[os.write(self._file, text) :]
                self._loop.call_soon_threadsafe(taken)
