"""Run all doors until a signal: ready file, graceful drain, clean end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import resource
import signal
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from crawlguide.core.config import ServerOptions
from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway import doors
from crawlguide.gateway.access.entrance import LOOPBACK, Entrance
from crawlguide.gateway.arguments import bracketed
from crawlguide.gateway.bodies import BodyLimits
from crawlguide.gateway.browsers import BrowserCheck
from crawlguide.gateway.http import Door
from crawlguide.gateway.http_connection import HttpConnection
from crawlguide.gateway.listener import Listener, bound
from crawlguide.gateway.load import Load
from crawlguide.gateway.service import Service
from crawlguide.gateway.sitemaps import Sitemaps
from crawlguide.gateway.supervisor import Supervisor
from crawlguide.gateway.tls import Certificates
from crawlguide.gateway.upkeep import Upkeep
from crawlguide.gateway.websocket.connection import Connection
from crawlguide.gateway.websocket.sockets import Sockets
from crawlguide.guide.robots.outgoing import Outgoing
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from starlette.types import ASGIApp

    from crawlguide.core.config import Config
    from crawlguide.guide.local import LocalGuide

USUAL = ServerOptions()
SWITCHED_S = 0.001  # how long a thread beside the loop may keep it from the interpreter; 5 ms add up for a request


async def serve(guide: LocalGuide, config: Config, ready_file: Path | None) -> None:
    """Answer until SIGTERM or SIGINT, then let running requests end."""
    _allow_files()
    listener = bound(config.server.host, config.server.port)
    service = Service(guide, config)
    service.entrance.check_host(config.server.host)
    sockets = Sockets(service)
    service.sockets = sockets.count
    guide.listen(service.metrics)
    _keep_what_is_loaded()
    sys.setswitchinterval(SWITCHED_S)
    stop = asyncio.Event()
    on_signals(stop.set)
    async with doors.opened(service) as other_doors:
        announce = partial(_announce, service, listener, ready_file, other_doors.ready)
        server = serving(checked(service, sockets), config, announce, service.load)
        answering = asyncio.create_task(server.serve([listener]))
        background = _background(service, sockets)
        await asyncio.wait({answering, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        happened("stopping", "stopping: requests that came in are answered, new ones are sent elsewhere")
        service.draining = server.should_exit = True
        sockets.leave()
        await asyncio.wait({answering, asyncio.create_task(other_doors.leave())})
        answering.result()
        await background.stop()
        await guide.close()
    service.audit.close()
    happened("stop", "all is written; the end")


def _background(service: Service, sockets: Sockets) -> Supervisor:
    """What runs beside the answers."""
    background = Supervisor(service.metrics)
    upkeep = tend(background, service.guide, service.config)
    service.not_running, service.trouble = background.not_running, lambda: upkeep.trouble
    background.start("sockets", sockets.watch)
    return background


def tend(background: Supervisor, guide: LocalGuide, config: Config) -> Upkeep:
    """Start what a guide needs that lives for long: leases end, robots.txt and sitemaps are read."""
    outgoing, upkeep = Outgoing(config.outgoing), Upkeep(guide, config.guide.upkeep_every_s)
    background.start("upkeep", upkeep.run)
    background.start("robots", lambda: guide.robots.run(outgoing))
    background.start("sitemaps", Sitemaps(guide, outgoing).run)
    return upkeep


def _keep_what_is_loaded() -> None:
    """The collector need not look at it again and again, nor at thousands of requests that wait for a moment."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def on_signals(stop: Callable[[], None]) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop)


def check_listening(config: Config) -> None:
    """Refuse, before anything is opened, to listen for others without a credential, or twice on one port."""
    Entrance(config).check_host(config.server.host)
    taken: dict[int, str] = {}
    for setting, port in config.server.ports.items():
        if port and port in taken:
            raise ConfigError(f"{setting}: expected another port than {taken[port]}, got {port}")
        taken[port] = setting


def check_free(options: ServerOptions) -> None:
    """Say that a port is taken before anything is opened."""
    for setting, port in options.ports.items():
        bound(options.host, port, setting).close()


def checked(service: Service, sockets: Sockets) -> ASGIApp:
    """Both doors, behind what holds for each: limits of bodies, pages of other sites, credentials."""
    entrance, options, app = service.entrance, service.options, Door(service).app(sockets)
    behind = BrowserCheck(app, options.allowed_hosts, service.log_refusal, lambda: entrance.required)
    return BodyLimits(behind, service.load, options.max_message_bytes)


def serving(app: ASGIApp, config: Config, announce: Callable[[], None], load: Load) -> Server:
    """A server for an application, with all limits of connections; it answers once its `serve` is awaited."""
    return Server(_uvicorn(app, config), announce, config.server, load)


def _allow_files() -> None:
    """Every connection is a file, and the usual limit of 1,024 is meant for programs that serve nobody."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def other_doors(ready: Mapping[str, Any]) -> str:
    """The end of a sentence that says where the guide answers."""
    named = {"grpc_port": "gRPC", "frontier_port": "clients of URLFrontier"}
    return "".join(f"; {words} on port {ready[name]}" for name, words in named.items() if name in ready)


def _announce(service: Service, listener: socket.socket, ready_file: Path | None, ready: dict[str, Any]) -> None:
    """Tell whoever waits that the guide answers now, and where; `ready` is what other doors say."""
    options, guide, entrance = service.options, service.guide, service.entrance
    scheme = "https" if options.tls_certificate else "http"
    host, port = listener.getsockname()[:2]
    shown = bracketed(host)
    data, opened_s = str(guide.store.folder or ":memory:"), round(guide.store.opened_s, 3)
    words = "crawlguide {version} answers on {scheme}://{host}:{port}"
    about = {"version": __version__, "scheme": scheme, "host": shown, "port": port}
    happened("start", words + other_doors(ready), **about, data=data, opened_s=opened_s)
    warn_if_open(host, scheme, entrance)
    if ready_file is not None:
        where = {"scheme": scheme, "host": host, "port": port, "opened_s": guide.store.opened_s, **ready}
        write_ready(ready_file, where)


def warn_if_open(host: str, scheme: str, entrance: Entrance) -> None:
    """Say who else may come in, or read what is said."""
    shown = bracketed(host)
    if host not in LOOPBACK and not entrance.required:
        words = "anybody who reaches {host} may use this server, and do everything: it was started with --insecure"
        happened("insecure", words, WARNING, host=shown)
    elif host not in LOOPBACK and scheme == "http":
        words = "keys can be read on their way to {host}: name a certificate with --tls-certificate"
        happened("unencrypted", words, WARNING, host=shown)


def write_ready(ready_file: Path, where: dict[str, Any]) -> None:
    """Last of all: whoever waits for the file must never see half of it, and finds in the log what was said."""
    half = ready_file.with_name(ready_file.name + ".half")
    try:
        half.write_text(json.dumps(where))
        half.replace(ready_file)
    except OSError as problem:
        raise ConfigError(f"ready-file: cannot write {ready_file}: {problem.strerror}") from None


class Server(uvicorn.Server):
    """uvicorn that accepts as we like, says when it answers, and leaves signals to us: the guide drains first."""

    def __init__(
        self,
        config: uvicorn.Config,
        announce: Callable[[], None],
        options: ServerOptions = USUAL,
        load: Load | None = None,
    ) -> None:
        super().__init__(config)
        self._announce = announce
        self._certificates, self._load = Certificates(options), load or Load(options)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers: list[Any] = [
            Listener(listening, self._load, self._certificates, self._connection) for listening in sockets or ()
        ]
        self.started = True
        self._announce()

    def _connection(self, left: Callable[[], None]) -> HttpConnection:
        return HttpConnection(self.config, self.server_state, self._load, left)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _uvicorn(app: ASGIApp, config: Config) -> uvicorn.Config:
    options = config.server
    return uvicorn.Config(
        app,
        loop="none",
        http=HttpConnection,
        ws=Connection,
        ws_max_size=options.max_message_bytes,
        ws_ping_interval=None,  # TCP notices the dead, and a look at what waits those that do not read
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # whoever connects may say anything there
        server_header=False,
        date_header=False,
        timeout_keep_alive=options.keep_alive_s,
        timeout_graceful_shutdown=options.drain_s,
    )
