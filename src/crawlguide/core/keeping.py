"""Machine code on disk that several processes keep and take at once, as when servers start side by side.

numba writes down that there is code before the code itself: who reads in between takes the old code for the new. And
two that write at once give one name to two codes. So readers share the folder, and a writer has it for itself.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def guard(file: Any) -> None:
    """Let numba's file of kept code be taken from and added to by many processes."""
    file.load = _held(file.load, file._cache_path, fcntl.LOCK_SH)
    file.save = _held(file.save, file._cache_path, fcntl.LOCK_EX)


def _held(action: Callable[..., Any], folder: str, how: int) -> Callable[..., Any]:
    @wraps(action)
    def alone(*arguments: Any) -> Any:
        with _lock(folder, how):
            return action(*arguments)

    return alone


@contextmanager
def _lock(folder: str, how: int) -> Iterator[None]:
    """It ends with the process, however that ends. Where a file system knows no locks we do without."""
    try:
        place = os.open(folder, os.O_RDONLY)
    except OSError:  # nothing was kept there yet
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(place, how)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_UN)  # a child that was forked meanwhile would hold on to it
        os.close(place)
