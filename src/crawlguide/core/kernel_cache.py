"""When machine code that was kept is of no use any more: when what it was made of has changed, wherever that stands.

numba by itself looks at the time of the file in which a kernel stands: it does not see that a part of the kernel, or a
number it uses, has changed in another file, and compiles anew what has not changed at all. Old code is written over; of
a function that moved to another line the file of its old line stays in `__pycache__`.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_KNOWN: dict[FunctionType, str] = {}


def stamp(function: Any, options: Mapping[str, Any]) -> str:
    """The same as long as a function, all parts and numbers it uses, and how it is compiled are the same."""
    made_of = blake2b(repr(sorted(options.items())).encode(), digest_size=16)
    for piece in _pieces(function.__code__, function.__globals__):
        made_of.update(piece.encode())
    _KNOWN[function] = found = made_of.hexdigest()
    return found


def _pieces(code: CodeType, names: Mapping[str, Any]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_varnames, code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _pieces(constant, names)
        else:
            yield repr(constant)
    for name in code.co_names:
        yield _used(names.get(name))


def _used(value: Any) -> str:
    """What a kernel makes of something that is known by its name: parts and numbers are built into it."""
    part = getattr(value, "py_func", None)
    if part is not None:
        return _KNOWN.get(part, "")
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    return repr(value) if isinstance(value, int | float | str | tuple | np.generic) else ""


# Machine code on disk that several processes keep and take at once, as when servers start side by side.
#
# numba writes down that there is code before the code itself: who reads in between takes the old code for the new. And
# two that write at once give one name to two codes. So readers share the folder, and a writer has it for itself.


def guard(file: Any) -> None:
    """Let numba's file of kept code be taken from and added to by many processes."""
    file._load_index = _or_nothing(file._load_index, dict)
    file._load_data = _or_nothing(file._load_data, lambda: None)
    file.load = _held(file.load, file._cache_path, fcntl.LOCK_SH)
    file.save = _held(file.save, file._cache_path, fcntl.LOCK_EX)


def _or_nothing(action: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[..., Any]:
    """Code that names a module or a class which has moved since is compiled anew."""

    @wraps(action)
    def loaded(*arguments: Any) -> Any:
        try:
            return action(*arguments)
        except (ImportError, AttributeError):
            return nothing()

    return loaded


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
