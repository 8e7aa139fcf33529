"""Processes beside this one, which end without a word when somebody interrupts the program: whoever began them says it.

They are started afresh, as one that was forked from a program with threads may hang.
"""

from __future__ import annotations

import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def pool_of(workers: int) -> ProcessPoolExecutor:
    """Its processes begin when work is given to it: do that within `uninterrupted`."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_end_when_interrupted)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A process that begins with interrupts held back is not interrupted before it is ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_at_once(pool: ProcessPoolExecutor) -> None:
    """Nobody needs what is under way."""
    pool.shutdown(wait=False, cancel_futures=True)
    for child in multiprocessing.active_children():
        child.terminate()


def _end_when_interrupted() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
