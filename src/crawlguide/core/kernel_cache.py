"""Which cached machine code is still valid, and how processes share the cache on disk.

numba only looks at the modification time of the file that a kernel is defined in. It does not see that a part of the
kernel, or a constant it uses, has changed in another file, and it compiles unchanged kernels again after any edit. So
`fingerprint` replaces the time: it covers everything a kernel is made of. The cache files of a function that moved to
another line stay behind in `__pycache__`.

numba also writes the index before the code it points to. A process that reads in between takes old code for new, and
two that write at once give one name to two codes. So readers share a lock on the folder and a writer has it alone.
"""

from __future__ import annotations

import fcntl
import os
import pickle
from contextlib import contextmanager, suppress
from functools import wraps
from hashlib import blake2b
from pathlib import Path
from pickle import UnpicklingError
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.caching import InTreeCacheLocator

from crawlguide.core import processor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_FINGERPRINTS: dict[FunctionType, str] = {}


def fingerprint(function: Any, options: Mapping[str, Any]) -> str:
    """A digest of a function, of all parts and constants it uses, and of the compiler's options."""
    digest = blake2b(repr(sorted(options.items())).encode(), digest_size=16)
    for piece in _pieces(function.__code__, function.__globals__):
        digest.update(piece.encode())
    _FINGERPRINTS[function] = found = digest.hexdigest()
    return found


def share_between_processes(cache_file: Any) -> None:
    """Let many processes read from and write to one of numba's cache files."""
    cache_file._load_index = _or_nothing(cache_file._load_index, dict)
    cache_file._load_data = lambda name: Path(cache_file._data_path(name)).read_bytes()
    cache_file.load = _or_nothing(
        _unpickled(_locked(cache_file.load, cache_file._cache_path, fcntl.LOCK_SH)), lambda: None
    )
    cache_file.save = _locked(_unless_full(cache_file.save), cache_file._cache_path, fcntl.LOCK_EX)


def read_beside_source(cache_file: Any, function: Any) -> None:
    """Take machine code that came with the package, in whatever folder new code is kept: numba looks there alone, and
    passes by folders that it cannot write to.
    """
    came = Path(function.__code__.co_filename).parent / "__pycache__"
    if not processor.made_for() or not came.is_dir() or came.samefile(cache_file._cache_path):
        return
    name = cache_file._index_name.removesuffix(".nbi")
    beside = type(cache_file)(str(came), name, cache_file._source_stamp)
    share_between_processes(beside)
    kept = cache_file.load
    cache_file.load = lambda key: found if (found := kept(key)) is not None else beside.load(key)


class ReadOnly(InTreeCacheLocator):
    """What numba takes for its cache where it can write nowhere: the folder in which machine code came."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        return cls(py_func, py_file) if processor.made_for() and py_func.__module__.startswith("crawlguide.") else None


def _pieces(code: CodeType, names: Mapping[str, Any]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_varnames, code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _pieces(constant, names)
        else:
            yield repr(constant)
    for name in code.co_names:
        yield _compiled_in(names.get(name))


def _compiled_in(value: Any) -> str:
    """What a global name contributes to the machine code: parts and constants are compiled into a kernel."""
    part = getattr(value, "py_func", None)
    if part is not None:
        return _FINGERPRINTS.get(part, "")
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    return repr(value) if isinstance(value, int | float | str | tuple | np.generic) else ""


def key_by_fields(cache: Any) -> None:
    """Know machine code by the names in named tuples too: numba looks at their types alone, so code that was made
    before two fields of one type changed places would read one for the other.
    """
    index_key = cache._index_key

    def keyed(signature: Any, codegen: Any) -> Any:
        arguments = getattr(signature, "args", signature)
        kinds = [getattr(one, "instance_class", None) for one in arguments]
        return *index_key(signature, codegen), tuple(getattr(kind, "_fields", ()) for kind in kinds)

    cache._index_key = keyed


def _or_nothing(action: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[..., Any]:
    """Code that names a module or a class which has moved since, or a file that was cut short, is compiled anew."""

    @wraps(action)
    def loaded(*arguments: Any) -> Any:
        try:
            return action(*arguments)
        except (ImportError, AttributeError, UnpicklingError, EOFError, IndexError, TypeError, ValueError):
            return nothing()

    return loaded


def _unpickled(read: Callable[[Any], bytes | None]) -> Callable[[Any], Any]:
    """What was read, made once the lock has ended: the code may name a module that is imported only now, and whose own
    kernels are compiled and written into the same folder. That would wait for this lock for ever.
    """

    def load(key: Any) -> Any:
        data = read(key)
        return None if data is None else pickle.loads(data)  # noqa: S301 - numba itself does so, from the same folder

    return load


def _unless_full(action: Callable[..., None]) -> Callable[..., None]:
    """What cannot be written is compiled again at the next start."""

    @wraps(action)
    def saved(*arguments: Any) -> None:
        with suppress(OSError):
            action(*arguments)

    return saved


def _locked(action: Callable[..., Any], folder: str, mode: int) -> Callable[..., Any]:
    @wraps(action)
    def with_lock(*arguments: Any) -> Any:
        with _lock(folder, mode):
            return action(*arguments)

    return with_lock


@contextmanager
def _lock(folder: str, mode: int) -> Iterator[None]:
    """The lock ends with the process, however that ends. On a file system without locks there is none."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # nothing was cached there yet
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, mode)
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile would hold on to it
        os.close(descriptor)
