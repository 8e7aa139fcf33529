"""Run the doors for HTTP and WebSockets until a signal: ready file, graceful drain, clean end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import resource
import signal
import socket
from typing import TYPE_CHECKING

import uvicorn

from crawlguide.core.errors import ConfigError, CrawlGuideError, StorageFull
from crawlguide.core.telemetry import ERROR, happened
from crawlguide.gateway.host_header import HostHeaderCheck
from crawlguide.gateway.http import Door
from crawlguide.gateway.sitemaps import Sitemaps
from crawlguide.gateway.websocket.connection import Connection
from crawlguide.gateway.websocket.sockets import Sockets
from crawlguide.guide.robots.outgoing import Outgoing
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from crawlguide.core.config import Config
    from crawlguide.core.telemetry import Event
    from crawlguide.guide.local import LocalGuide

LOOPBACK = ("127.0.0.1", "::1", "localhost")
KEEP_ALIVE = {socket.TCP_KEEPIDLE: 60, socket.TCP_KEEPINTVL: 15, socket.TCP_KEEPCNT: 4}


async def serve(guide: LocalGuide, config: Config, ready_file: Path | None) -> None:
    """Answer until SIGTERM or SIGINT, then let running requests end."""
    listener = bound(config.server.host, config.server.port)
    door = Door(guide, config.server)
    sockets = Sockets(door)
    door.on_served, door.sockets = sockets.served, sockets.count
    guide.listen(door.metrics)
    _allow_files()
    gc.collect()
    gc.freeze()  # what was loaded stays: the collector need not look at it again and again
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    named = HostHeaderCheck(_both(door, sockets), config.server.allowed_hosts)
    server = Server(_uvicorn(named, config), lambda: _announce(listener, guide, ready_file))
    answering = asyncio.create_task(server.serve([listener]))
    upkeep = asyncio.create_task(_upkeep(guide, config.guide.upkeep_every_s))
    outgoing = Outgoing(config.outgoing)
    fetching = asyncio.create_task(guide.robots.run(outgoing))
    reading = asyncio.create_task(Sitemaps(guide, outgoing).run())
    watch = asyncio.create_task(sockets.watch())
    ends = {answering, upkeep, fetching, reading, watch, asyncio.create_task(stop.wait())}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    happened("stopping", "stopping: requests that came in are answered, new ones are sent elsewhere")
    door.draining = server.should_exit = True
    sockets.leave()
    await answering
    for task in (watch, reading, fetching, upkeep):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await guide.close()
    happened("stop", "all is written; the end")


def _both(door: Door, sockets: Sockets) -> ASGIApp:
    """One application for both doors."""
    pages = door.app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (sockets if scope["type"] == "websocket" else pages)(scope, receive, send)

    return app


def _allow_files() -> None:
    """Every connection is a file, and the usual limit of 1,024 is meant for programs that serve nobody."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _announce(listener: socket.socket, guide: LocalGuide, ready_file: Path | None) -> None:
    """Tell whoever waits that the guide answers now, and where."""
    host, port = listener.getsockname()[:2]
    if ready_file is not None:  # whoever waits for the file must never see half of it
        half = ready_file.with_name(ready_file.name + ".half")
        try:
            half.write_text(json.dumps({"host": host, "port": port, "opened_s": guide.store.opened_s}))
            half.replace(ready_file)
        except OSError as problem:
            raise ConfigError(f"ready-file: cannot write {ready_file}: {problem.strerror}") from None
    shown = f"[{host}]" if ":" in host else host
    data, opened_s = str(guide.store.folder or ":memory:"), round(guide.store.opened_s, 3)
    words = "crawlguide {version} answers on http://{host}:{port}"
    happened("start", words, version=__version__, host=shown, port=port, data=data, opened_s=opened_s)


def bound(host: str, port: int) -> socket.socket:
    """A listening socket, so that port 0 is known before anything starts."""
    if host not in LOOPBACK:
        raise ConfigError(
            f"server.host: expected a loopback address ({', '.join(LOOPBACK)}), got {host!r}:"
            " there is no authentication yet, so it listens on this machine only"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit it: dead ones are noticed
    for option, value in KEEP_ALIVE.items():
        listener.setsockopt(socket.IPPROTO_TCP, option, value)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        hint = "; another server may run there: name another with --port, 0 picks a free one"
        words = f"server.port: cannot listen on {host}:{port}: {problem.strerror}"
        raise ConfigError(words + (hint if problem.errno == errno.EADDRINUSE else "")) from None
    listener.listen(2_048)
    listener.setblocking(False)
    return listener


class Server(uvicorn.Server):
    """uvicorn that says when it answers, and leaves signals to us: the guide drains first."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _uvicorn(app: ASGIApp, config: Config) -> uvicorn.Config:
    options = config.server
    return uvicorn.Config(
        app,
        loop="none",
        http="httptools",
        ws=Connection,
        ws_max_size=options.max_message_bytes,
        ws_ping_interval=None,  # TCP notices the dead, and a look at what waits those that do not read
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=options.keep_alive_s,
        timeout_graceful_shutdown=options.drain_s,
    )


async def _upkeep(guide: LocalGuide, every_s: float) -> None:
    """What ends by itself: leases, answers, waits. Trouble with the disk is said when it begins and when it ends."""
    trouble = ""
    while True:
        await asyncio.sleep(every_s)
        try:
            await guide.upkeep()
        except CrawlGuideError as problem:
            if problem.message != trouble:
                event: Event = "storage_full" if isinstance(problem, StorageFull) else "storage_failed"
                happened(event, "{problem}", ERROR, code=problem.code, problem=problem.message)
            trouble = problem.message
        else:
            if trouble:
                happened("storage_recovered", "the data folder can be written again")
            trouble = ""
