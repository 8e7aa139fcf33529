"""Compile all kernels ahead, on all cores: the first start on a machine need not do it one after the other.

Each process imports modules with kernels, which compiles them into the cache that all share. Whoever imports such a
module afterwards finds its machine code there, and compiles what is missing; so a process that fails costs time alone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

TAKES = "a minute or two"
PACKAGE = Path(__file__).resolve().parents[1]
DECORATED = "\n@kernel("


def kernel_modules() -> list[str]:
    """The modules in which kernels stand."""
    found = [path for path in sorted(PACKAGE.rglob("*.py")) if DECORATED in path.read_text()]
    names = (".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in found)
    return [name.removesuffix(".__init__") for name in names]


def groups(modules: Sequence[str]) -> list[list[str]]:
    """Modules of one folder, which share parts, belong together: two processes would compile the same parts twice.

    The largest come first, so that no process is left alone with one at the end.
    """
    found: dict[str, list[str]] = {}
    for name in modules:
        found.setdefault(".".join(name.split(".")[1:3]), []).append(name)
    return sorted(found.values(), key=len, reverse=True)


def cache_folders() -> list[Path]:
    """Where numba may keep machine code between starts: where it is told, beside the source, in the user's cache.

    It takes the first of them that it can write to.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [*([Path(named)] if named else []), PACKAGE, home / "numba"]


def can_be_kept() -> bool:
    """Whether numba can write to one of its folders."""
    return _cache_folder() is not None


def all_compiled() -> bool:
    """Whether every kernel of this version was compiled for this processor, and its machine code kept."""
    folder = _cache_folder()
    return folder is not None and mark(folder).exists()


def mark(folder: Path) -> Path:
    """The file that says so of a folder. Code of others, or half of ours, is not all that this start needs."""
    import numba  # noqa: PLC0415 - it takes half a second to load, which `--help` is not to wait for
    from numba.core.registry import cpu_target  # noqa: PLC0415

    processor = cpu_target.target_context.codegen().magic_tuple()
    made_for = __version__, numba.__version__, sys.implementation.cache_tag, processor
    name = f"crawlguide-{blake2b(repr(made_for).encode(), digest_size=8).hexdigest()}.compiled"
    return (folder / "__pycache__" if folder == PACKAGE else folder) / name


def compile_kernels(processes: int | None = None) -> None:
    """Compile what is not compiled yet for this machine."""
    modules, count = kernel_modules(), processes or len(os.sched_getaffinity(0))
    if count > 1 and can_be_kept():
        _compile_in_processes(modules, count)
    for name in modules:
        import_module(name)
    folder = _cache_folder()
    if folder is not None:
        with suppress(OSError):  # a full disk: the next start looks again
            mark(folder).parent.mkdir(exist_ok=True)
            mark(folder).touch()


def _cache_folder() -> Path | None:
    return next((folder for folder in cache_folders() if _can_write(folder)), None)


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _compile_in_processes(modules: list[str], count: int) -> None:
    """Started afresh, since one that was forked from a program with threads may hang."""
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, fresh, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL))
    try:
        with suppress(BrokenExecutor):
            for _ in pool.map(_compile, groups(modules)):
                pass
    except BaseException:  # somebody interrupts: nobody needs what is under way
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    pool.shutdown()


def _compile(names: Sequence[str]) -> None:
    for name in names:
        import_module(name)
