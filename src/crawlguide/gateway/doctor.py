"""Is a guide well here? The data folder, its disk, the ports of the server and its buses, each with how to mend it.

Nothing is changed by looking, and nothing is left behind.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

from crawlguide.core.errors import ConfigError, CrawlGuideError, Forbidden, Unauthenticated, UnavailableError
from crawlguide.core.extras import ANEW
from crawlguide.gateway.arguments import bracketed
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.config import BusOptions, ServerOptions

MIB, GIB = 1 << 20, 1 << 30
TOO_LITTLE_ROOM, LITTLE_ROOM = 64 * MIB, GIB
FSYNCS = 20
SLOW_FSYNC_MS, NO_FSYNC_MS = 20.0, 0.01
ANSWER_S = 5.0
NAME_OF = {"server.port": "server", "server.grpc_port": "gRPC", "server.frontier_port": "URLFrontier"}
NOT_LET_IN = (Unauthenticated, Forbidden)
SHOW_A_KEY = "to look further, show a key with the scope read in CRAWLGUIDE_TOKEN"
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
        return Finding("data folder", "wrong", newer.message, f"take that version; {ANEW}")
    except CrawlGuideError as damaged:
        return Finding("data folder", "wrong", damaged.message, restore)
    except ImportError as missing:
        return Finding("data folder", "wrong", f"the store cannot be loaded: {missing}", ANEW)
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


def ports(options: ServerOptions) -> list[Finding]:
    """Of each door that listens: is its port free, or does a guide answer there?"""
    return [_port(options, setting, port) for setting, port in options.ports.items()]


def _port(options: ServerOptions, setting: str, port: int) -> Finding:
    from crawlguide.gateway.listener import bound  # noqa: PLC0415

    host = options.host
    try:
        bound(host, port, setting).close()
    except ConfigError as taken:
        return _taken(options, setting, port, taken.message)
    found = f"{host}:{port} is free" if port else "a free port is picked at the start"
    return Finding(NAME_OF[setting], "ok", found)


def _taken(options: ServerOptions, setting: str, port: int, problem: str) -> Finding:
    """By a guide, which is well, or by somebody else."""
    address = f"{bracketed(options.host)}:{port}"
    name, tls = NAME_OF[setting], bool(options.tls_certificate)
    if name == "URLFrontier":
        there = frontier_answers(address, tls)
    else:
        scheme = "http" if name == "server" else "grpc"
        there = answers(f"{scheme}{'s' * tls}://{address}", name)
    if there.state != "wrong":
        return there
    option = "--" + setting.removeprefix("server.").replace("_", "-")
    mend = f"take another one with {option} or {setting}, or stop what is there"
    return Finding(name, "wrong", f"{problem}; {there.found}", mend)


def answers(url: str, name: str = "server") -> Finding:
    """Who answers there?"""
    from crawlguide.gateway.client import Client  # noqa: PLC0415

    try:
        with Client(url, timeout_s=ANSWER_S, retries=0) as client:
            numbers = client.stats()
    except NOT_LET_IN as problem:
        return _closed(name, url, problem)
    except UnavailableError as problem:
        return Finding(name, "wrong", problem.message, "start one with `crawlguide serve`, or correct --url")
    except CrawlGuideError as problem:
        return Finding(name, "wrong", problem.message, "correct --url")
    version, crawls = numbers.get("version"), len(numbers.get("crawls", ()))
    found = f"crawlguide {version} answers at {url}, up {numbers.get('uptime_s', 0):.0f} s, crawls {crawls}"
    if version != __version__:
        return Finding(name, "warn", found, f"this is crawlguide {__version__}: use the same version on both sides")
    return Finding(name, "ok", found)


def _closed(name: str, where: str, problem: CrawlGuideError) -> Finding:
    """It is a guide that says who may look."""
    return Finding(name, "warn", f"a guide answers at {where} and does not let us look: {problem.message}", SHOW_A_KEY)


def frontier_answers(address: str, tls: bool) -> Finding:
    """Does somebody who knows the calls of URLFrontier answer there?"""
    name = "URLFrontier"
    try:
        from crawlguide.gateway.client.urlfrontier import UrlFrontierClient  # noqa: PLC0415

        with UrlFrontierClient(address, tls=tls, timeout_s=ANSWER_S) as client:
            given = "URLs are given out" if client.active else "nothing is given out: it is set inactive"
    except NOT_LET_IN as problem:
        return _closed(name, address, problem)
    except CrawlGuideError as problem:
        return Finding(name, "wrong", problem.message, "start a server with `crawlguide serve --frontier-port`")
    return Finding(name, "ok", f"clients of URLFrontier are answered at {address}; {given}")


def buses(options: BusOptions) -> list[Finding]:
    """Can the servers of each bus be reached? Nothing is said to them."""
    from crawlguide.gateway.bus import messages  # noqa: PLC0415

    try:
        messages.check(options)
    except ConfigError as wrong:
        return [Finding("bus", "wrong", wrong.message, "correct it")]
    kinds = (("NATS", "bus.nats", options.nats, 4222), ("Kafka", "bus.kafka", options.kafka, 9092))
    return [_bus(name, setting, text, port) for name, setting, text, port in kinds if text]


def _bus(name: str, setting: str, text: str, usual_port: int) -> Finding:
    """One of several servers is enough: it names the others."""
    from crawlguide.gateway.bus import messages  # noqa: PLC0415

    reached, problems = [], []
    for server in filter(None, map(messages.server_at, messages.addresses(text))):
        host, port = server.host, server.port or usual_port
        try:
            socket.create_connection((host, port), ANSWER_S).close()
            reached.append(f"{host}:{port}")
        except OSError as problem:
            problems.append(f"{host}:{port} cannot be reached ({problem.strerror or problem})")
    if not reached:
        mend = f"start it, or correct {setting}; the guide starts without it, and tries again and again"
        return Finding(name, "wrong", "; ".join(problems), mend)
    found = f"{', '.join(reached)} can be reached; users and passwords were not tried"
    return Finding(name, "warn" if problems else "ok", "; ".join([found, *problems]), "start it" if problems else "")


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
