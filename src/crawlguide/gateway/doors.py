"""Doors beside HTTP and WebSockets: each is opened where the operator names its port or its server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import installing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from crawlguide.core.config import Config
    from crawlguide.gateway.service import Service

log = logging.getLogger(__name__)


class Door(Protocol):
    """One way in. Whatever comes through it is answered by `Service.answer`."""

    async def open(self) -> dict[str, Any]:
        """Listen. Returns what the ready file says of it, such as its port; raises `ConfigError`."""

    async def close(self) -> None:
        """Take nothing new, answer what came in, return what was leased for those who are gone."""


@runtime_checkable
class TellingDoor(Door, Protocol):
    """One that tells others what happens, through whatever door: it closes when nothing can happen any more."""

    async def leave(self) -> None:
        """Take nothing new, answer what came in. Then all other doors are closed, and the guide; then this one."""


class DoorKind(NamedTuple):
    """A door that may be opened: where it is, and the extra of the package that brings what it needs."""

    setting: str
    is_wanted: Callable[[Config], bool]
    module: str
    name: str
    extra: str


DOORS = (
    DoorKind("server.grpc", lambda config: config.server.grpc, "crawlguide.gateway.grpc.server", "GrpcDoor", "grpc"),
    DoorKind(
        "server.frontier",
        lambda config: config.server.frontier,
        "crawlguide.gateway.urlfrontier.server",
        "UrlFrontierDoor",
        "grpc",
    ),
    DoorKind("bus", lambda config: config.bus.is_wanted, "crawlguide.gateway.bus.door", "BusDoor", "bus"),
)


class Doors:
    """All doors that are wanted, from `open` until `close`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: list[Door] = []
        self.ready: dict[str, Any] = {}  # what the ready file says of them

    async def open(self) -> None:
        for kind in DOORS:
            if kind.is_wanted(self._service.config):
                self._open.append(_made(kind, self._service))
                self.ready |= await self._open[-1].open()

    async def leave(self) -> None:
        """Nothing new is taken, what came in is answered: by all at once, so that `server.drain_s` passes once."""
        telling = [door for door in self._open if isinstance(door, TellingDoor)]
        others = [door for door in self._open if not isinstance(door, TellingDoor)]
        self._open = [*telling]
        await _together([*(door.leave() for door in telling), *(door.close() for door in others)])

    async def close(self) -> None:
        await self.leave()
        await _together([door.close() for door in self._open])
        self._open = []


@asynccontextmanager
async def opened(service: Service) -> AsyncIterator[Doors]:
    """As long as the block runs. A block that lets them `leave` first, and closes the guide, loses no event."""
    doors = Doors(service)
    try:
        await doors.open()
        yield doors
    finally:
        await doors.close()


async def _together(closing: list[Coroutine[None, None, None]]) -> None:
    """One that fails keeps no other from its end."""
    for problem in await asyncio.gather(*closing, return_exceptions=True):
        if isinstance(problem, BaseException):
            log.error("a door did not close as it should", exc_info=problem)


def _made(kind: DoorKind, service: Service) -> Door:
    """What a door needs is looked for when it is imported, or when it is made."""
    try:
        door: Door = getattr(import_module(kind.module), kind.name)(service)
    except ModuleNotFoundError as missing:
        how = installing(kind.extra)
        raise ConfigError(f"{kind.setting}: this door needs {missing.name}, which is not installed: {how}") from None
    return door
