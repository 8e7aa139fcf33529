"""Compile kernels ahead, on all cores: the first start on a machine need not do it one after the other.

Each process imports modules with kernels, which compiles them into the cache that all share. Whoever imports such a
module afterwards finds its machine code there, and compiles what is missing; so a process that fails costs time alone.
What only some crawls need is compiled when the first of them is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlguide.core import processor
from crawlguide.core.processes import end_at_once, pool_of, uninterrupted
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from crawlguide.core.config import Config

TAKES = "a minute or more"
LATER = tuple(  # strategies that a guide does without until a crawl names one
    f"crawlguide.strategies.{name}" for name in ("bandit", "groups", "opic", "pagerank", "scorer", "tres", "ucb")
)
NOT_AT_FIRST = (*LATER, "crawlguide.strategies.arms", "crawlguide.training")  # and what only they or training need
ELSEWHERE = """
import os, sys, threading
threading.Thread(target=lambda: sys.stdin.read() or os._exit(1), daemon=True).start()  # it ends with who started it
os.nice(5)
name, *sys.path = sys.argv[1:]
__import__(name)
"""
PACKAGE = Path(__file__).resolve().parents[1]
DECORATED = "\n@kernel("


def kernel_modules() -> list[str]:
    """The modules in which kernels stand."""
    found = [path for path in sorted(PACKAGE.rglob("*.py")) if DECORATED in path.read_text()]
    names = (".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in found)
    return [name.removesuffix(".__init__") for name in names]


def needed_by(config: Config) -> list[str]:
    """The modules with kernels that a guide loads when it is opened."""
    first = [name for name in kernel_modules() if not any(f"{name}.".startswith(f"{one}.") for one in NOT_AT_FIRST)]
    return [*first, *sorted(strategies_needed_by(config))]


def strategies_needed_by(config: Config) -> set[str]:
    """Of the later ones. The operator's own modules may need any."""
    if config.crawls.plugins or any("." in name for name in config.guide.filters):
        return set(LATER)
    return named_in({"predict": config.predict})


def strategies_at_start(config: Config) -> set[str]:
    """Of the later ones, those that are loaded at the start: what cannot be kept cannot be compiled elsewhere."""
    return strategies_needed_by(config) if can_be_kept() else set(LATER)


def named_in(table: Mapping[str, Any]) -> set[str]:
    """Of the strategies that a table names, alone or composed, the later ones."""
    found: set[str] = set()
    tables = [table]
    while tables:
        one = tables.pop()
        found.add("crawlguide.strategies." + str(one.get("kind")).replace("-", "_"))
        members = one.get("predict")
        tables += (
            [member for member in members if isinstance(member, dict)] if isinstance(members, list | tuple) else []
        )
    return found & set(LATER)


def all_modules() -> list[str]:
    """All that may be compiled ahead: the modules with kernels, and those by which later strategies are loaded."""
    return sorted({*kernel_modules(), *LATER})


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


def all_compiled(modules: Iterable[str]) -> bool:
    """Whether all kernels that these modules load were compiled for this processor, and their machine code kept."""
    return set(modules) <= compiled_in(_cache_folder())


def compiled_in(folder: Path | None) -> set[str]:
    """The modules whose kernels a folder keeps, or that came with the package and lie beside the source.

    Code of others, or half of ours, is not all that a start needs.
    """
    places = [*([folder] if folder else []), *([PACKAGE] if processor.made_for() else [])]
    found: set[str] = set()
    for place in places:
        with suppress(OSError):
            found.update(mark(place).read_text().split())
    return found


def mark(folder: Path) -> Path:
    """The file that names them."""
    import numba  # noqa: PLC0415 - it takes half a second to load, which `--help` is not to wait for
    from numba.core.registry import cpu_target  # noqa: PLC0415

    processor.choose()
    code = cpu_target.target_context.codegen().magic_tuple()
    made_for = __version__, numba.__version__, sys.implementation.cache_tag, code
    name = f"crawlguide-{blake2b(repr(made_for).encode(), digest_size=8).hexdigest()}.compiled"
    return (folder / "__pycache__" if folder == PACKAGE else folder) / name


def compile_kernels(modules: Sequence[str], processes: int | None = None) -> None:
    """Load these modules, and compile what of them is not compiled yet for this machine."""
    count = processes or len(os.sched_getaffinity(0))
    if count > 1 and can_be_kept():
        _compile_in_processes(modules, count)
    for name in modules:
        import_module(name)
    remember(modules)


def compiler_of(module: str) -> subprocess.Popen[bytes] | None:
    """A process of low priority that compiles what a module loads, and ends when its input does."""
    words = [sys.executable, "-c", ELSEWHERE, module, *sys.path]
    try:
        return subprocess.Popen(words, stdin=subprocess.PIPE)  # noqa: S603 - ourselves
    except OSError:
        return None


def remember(modules: Sequence[str]) -> None:
    """That all of these were compiled, and their machine code kept."""
    folder = _cache_folder()
    if folder is None:
        return
    with suppress(OSError):  # a full disk: the next start looks again
        mark(folder).parent.mkdir(exist_ok=True)
        with mark(folder).open("a") as marked:
            marked.write("".join(f"{name}\n" for name in modules))


def _cache_folder() -> Path | None:
    return next((folder for folder in cache_folders() if _can_write(folder)), None)


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _compile_in_processes(modules: Sequence[str], count: int) -> None:
    pool = pool_of(count)
    try:
        with suppress(BrokenExecutor):
            with uninterrupted():
                compiled = pool.map(_compile, groups(modules))
            for _ in compiled:
                pass
    except BaseException:  # somebody interrupts
        end_at_once(pool)
        raise
    pool.shutdown()


def _compile(names: Sequence[str]) -> None:
    for name in names:
        import_module(name)
