"""Run the server for agents until it is told to end: over stdio, or over HTTP."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.agents import stdio
from crawlguide.agents.calls import GuardedGuide, OneGuide, ServedGuide, remote
from crawlguide.agents.finding import Searches
from crawlguide.agents.http import MOST_BYTES, PATH, Guard, HttpDoor
from crawlguide.agents.server import Desk
from crawlguide.core.telemetry import happened
from crawlguide.gateway import serve as door
from crawlguide.gateway.access.entrance import Entrance
from crawlguide.gateway.arguments import bracketed
from crawlguide.gateway.library import AsyncGuide
from crawlguide.gateway.listener import bound
from crawlguide.gateway.load import Load
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service, log_refusal
from crawlguide.gateway.supervisor import Supervisor
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from crawlguide.agents.calls import Guides
    from crawlguide.agents.finding import SearchOptions
    from crawlguide.core.config import Config
    from crawlguide.guide.local import LocalGuide


@dataclass(frozen=True)
class AgentsOptions:
    """All that `crawlguide agents` is told beside the configuration."""

    searching: SearchOptions
    guide: str | None = None  # the address of a served one
    ready_file: Path | None = None


async def over_stdio(config: Config, options: AgentsOptions) -> None:
    """Answer whoever started this process, until its input ends or a signal comes."""
    searches = Searches(options.searching)
    async with AsyncExitStack() as stack:
        guides = await stack.enter_async_context(_one_guide(config, options))
        server = Desk(guides, searches).server()
        reading, writing = await stack.enter_async_context(stdio.streams(MOST_BYTES))
        work = asyncio.create_task(server.run(reading, writing, server.create_initialization_options()))
        happened("start", "crawlguide {version} answers an agent on its standard input", version=__version__)
        await _until_told(work)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    happened("stop", "the end")


async def _until_told(work: asyncio.Task[None]) -> None:
    """Returns at a signal, or when the work has ended by itself."""
    stop = asyncio.Event()
    door.on_signals(stop.set)
    told = asyncio.create_task(stop.wait())
    await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()


@asynccontextmanager
async def _one_guide(config: Config, options: AgentsOptions) -> AsyncIterator[Guides]:
    if options.guide is not None:
        async with remote(options.guide) as client:
            yield OneGuide(client)
        return
    async with _own_guide(config) as local:
        yield OneGuide(AsyncGuide(local))


@asynccontextmanager
async def _own_guide(config: Config) -> AsyncIterator[LocalGuide]:
    """A guide in this process, with all that one needs that lives for long."""
    local, background = open_guide(config.store.data, config), Supervisor()
    door.tend(background, local, config)
    try:
        yield local
    finally:
        await background.stop()
        await local.close()


async def over_http(config: Config, options: AgentsOptions) -> None:
    """Answer everybody who is let in, until a signal comes."""
    async with answering(config, options) as (work, _):
        await _until_told(work)
        happened("stopping", "stopping: searches end with what they have found")
    happened("stop", "the end")


@asynccontextmanager
async def answering(config: Config, options: AgentsOptions) -> AsyncIterator[tuple[asyncio.Task[None], int]]:
    """Answer over HTTP as long as the block runs: the work and its port. Then searches end with what they have."""
    searches, listener = Searches(options.searching), bound(config.server.host, config.server.port)
    where = listener.getsockname()[:2]
    async with AsyncExitStack() as stack:
        guides, guard = await stack.enter_async_context(_guarded(config, options))
        page = HttpDoor(Desk(guides, searches).server(), guard)
        await stack.enter_async_context(page.sessions.run())
        ready = asyncio.Event()
        server = door.serving(page.app(), config, ready.set, guard.load)
        work = asyncio.create_task(server.serve([listener]))
        await ready.wait()
        _announce(config, options, guard, where)
        try:
            yield work, where[1]
        finally:
            page.draining = server.should_exit = True
            searches.stop()
            await work


@asynccontextmanager
async def _guarded(config: Config, options: AgentsOptions) -> AsyncIterator[tuple[Guides, Guard]]:
    if options.guide is not None:
        served = ServedGuide(options.guide)
        try:
            yield served, Guard(Entrance(config), Load(config.server), config.server, log_refusal)
        finally:
            await served.close()
        return
    async with _own_guide(config) as local:
        service = Service(local, config)
        try:
            yield GuardedGuide(service), Guard(service.entrance, service.load, config.server, service.log_refusal)
        finally:
            service.audit.close()


def _announce(config: Config, options: AgentsOptions, guard: Guard, where: tuple[str, int]) -> None:
    scheme = "https" if config.server.tls_certificate else "http"
    host, port = where
    shown = bracketed(host)
    words = "crawlguide {version} answers agents on {scheme}://{host}:{port}{path}"
    happened("start", words, version=__version__, scheme=scheme, host=shown, port=port, path=PATH)
    door.warn_if_open(host, scheme, guard.entrance)
    if options.ready_file is not None:
        door.write_ready(options.ready_file, {"scheme": scheme, "host": host, "port": port, "path": PATH})
