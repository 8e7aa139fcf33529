"""Is a guide well here? The data folder, its disk and the address of the server, each with how to mend it.

Nothing is changed by looking, and nothing is left behind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

from crawlguide.core.errors import ConfigError, CrawlGuideError, UnavailableError
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.config import ServerOptions

MIB, GIB = 1 << 20, 1 << 30
TOO_LITTLE_ROOM, LITTLE_ROOM = 64 * MIB, GIB
FSYNCS = 20
SLOW_FSYNC_MS, NO_FSYNC_MS = 20.0, 0.01
ANSWER_S = 5.0
ELSEWHERE = "name another folder with --data or store.data"
FORMAT_KEY = b"\0\0\0\0Fformat"
_LOCK = "hhqqi4x"  # struct flock on 64-bit Linux: type, whence, start, length, pid


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `mend` says what to do unless it is ok."""

    name: str
    state: Literal["ok", "warn", "wrong"]
    found: str
    mend: str = ""


def folder(path: Path) -> Finding:
    """Could `crawlguide serve --data` use it?"""
    try:
        return _folder(path)
    except OSError as problem:
        return Finding("data folder", "wrong", f"{path} cannot be looked at: {problem.strerror}", ELSEWHERE)


def content(path: Path) -> Finding:
    """Can this version read it?"""
    restore = "restore your last backup with `crawlguide restore`"
    try:
        from crawlguide.store.embedded import format as formats  # noqa: PLC0415

        version = formats.reader(_written(path), path).version
    except ConfigError as newer:
        return Finding("data folder", "wrong", newer.message, "pip install --upgrade crawlguide")
    except CrawlGuideError as damaged:
        return Finding("data folder", "wrong", damaged.message, restore)
    except ImportError as missing:
        return Finding("data folder", "wrong", f"the store cannot be loaded: {missing}", "pip install crawlguide")
    return Finding("data folder", "ok", f"{path} is of format {version}, which this version reads")


def room(path: Path) -> Finding:
    free = shutil.disk_usage(nearest(path)).free
    found = f"{free / GIB:.1f} GiB free on its disk" if free >= GIB else f"{free / MIB:.0f} MiB free on its disk"
    if free >= LITTLE_ROOM:
        return Finding("room", "ok", found)
    return Finding("room", "warn" if free >= TOO_LITTLE_ROOM else "wrong", found, "make room on that disk")


def disk(path: Path) -> Finding:
    """How long a tell waits for the disk."""
    try:
        return waits(fsyncs_ms(nearest(path)))
    except OSError as problem:
        return Finding("disk", "wrong", f"nothing can be written: {problem.strerror}", "make room on that disk")


def waits(took_ms: Sequence[float]) -> Finding:
    found = f"fsync takes {median(took_ms):.2f} ms, the slowest of {len(took_ms)} took {max(took_ms):.2f} ms"
    if median(took_ms) > SLOW_FSYNC_MS:
        return Finding(
            "disk", "warn", found, "every report waits for one: put the folder on a faster disk of this machine"
        )
    if median(took_ms) < NO_FSYNC_MS:
        return Finding("disk", "warn", found, "only memory is that fast: put the folder on a disk")
    return Finding("disk", "ok", found)


def server(options: ServerOptions) -> Finding:
    """Is the configured address free, or does a guide answer there?"""
    from crawlguide.gateway.serve import bound  # noqa: PLC0415

    host, port = options.host, options.port
    try:
        bound(host, port).close()
    except ConfigError as taken:
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        there = answers(url)
        mend = "take another one with --port or server.port, or stop what is there"
        return there if there.state == "ok" else Finding("server", "wrong", f"{taken.message}; {there.found}", mend)
    return Finding("server", "ok", f"{host}:{port} is free" if port else "a free port is picked at the start")


def answers(url: str) -> Finding:
    """Who answers there?"""
    from crawlguide.gateway.client import Client  # noqa: PLC0415

    try:
        with Client(url, timeout_s=ANSWER_S, retries=0) as client:
            numbers = client.stats()
    except UnavailableError as problem:
        return Finding("server", "wrong", problem.message, "start one with `crawlguide serve`, or correct --url")
    except CrawlGuideError as problem:
        return Finding("server", "wrong", problem.message, "correct --url")
    version, crawls = numbers.get("version"), len(numbers.get("crawls", ()))
    found = f"crawlguide {version} answers at {url}, up {numbers.get('uptime_s', 0):.0f} s, crawls {crawls}"
    if version != __version__:
        return Finding("server", "warn", found, f"this is crawlguide {__version__}: use the same version on both sides")
    return Finding("server", "ok", found)


def in_use_by(path: Path) -> str | None:
    """The process that has the folder open. Only for a process that has not: closing the file would end its lock."""
    try:
        with (path / "LOCK").open("rb") as lock:
            wanted = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, process = struct.unpack(_LOCK, fcntl.fcntl(lock, fcntl.F_GETLK, wanted))
    except OSError:
        return None
    return None if kind == fcntl.F_UNLCK else _process(process)


def nearest(path: Path) -> Path:
    """The folder itself or, if it is not there, the one it would be made in."""
    return next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())


def unwritable(path: Path) -> str | None:
    """Why nothing can be written there; None if something can."""
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
    except OSError as problem:
        return problem.strerror
    return None


def fsyncs_ms(path: Path) -> list[float]:
    took = []
    with tempfile.TemporaryFile(dir=path, buffering=0) as file:
        for _ in range(FSYNCS):
            file.write(b"x" * 512)
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append((time.perf_counter() - began) * 1_000)
    return took


def _folder(path: Path) -> Finding:
    if path.exists() and not path.is_dir():
        return Finding("data folder", "wrong", f"{path} is a file", ELSEWHERE)
    if path.exists() and {file.name for file in path.iterdir()} - {"access"} and not (path / "CURRENT").exists():
        return Finding("data folder", "wrong", f"{path} holds other things and no crawlguide data", ELSEWHERE)
    if problem := unwritable(nearest(path)):
        mend = f"let this user write into {nearest(path)}, or {ELSEWHERE}"
        return Finding("data folder", "wrong", f"{path} cannot be written: {problem}", mend)
    if not path.exists():
        return Finding("data folder", "ok", f"{path} is not there yet; the first start makes it")
    if (user := in_use_by(path)) is not None:
        return Finding("data folder", "ok", f"{path} is in use by {user}")
    return content(path) if (path / "CURRENT").exists() else Finding("data folder", "ok", f"{path} is empty")


def _written(path: Path) -> bytes:
    """What a folder says about its format, read beside whoever may use it."""
    from rocksdict import AccessType, Rdict  # noqa: PLC0415

    from crawlguide.store.embedded import disk as options  # noqa: PLC0415
    from crawlguide.store.embedded.disk import translated_errors  # noqa: PLC0415

    with translated_errors(path):
        database = Rdict(str(path), options.database(), options.families(), AccessType.read_only())
        found: bytes | None = database.get(FORMAT_KEY)
        database.close()
    return found or b""


def _process(number: int) -> str:
    try:
        words = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        words = ""
    return f"process {number}" + (f" ({words[:80]})" if words else "")
