"""Doors beside HTTP and WebSockets: each is opened where the operator names its port or its server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from crawlguide.core.config import Config
    from crawlguide.gateway.service import Service


class Door(Protocol):
    """One way in. Whatever comes through it is answered by `Service.answer`."""

    async def open(self) -> dict[str, Any]:
        """Listen. Returns what the ready file says of it, such as its port; raises `ConfigError`."""

    async def close(self) -> None:
        """Take nothing new, answer what came in, return what was leased for those who are gone."""


class Kind(NamedTuple):
    """A door that may be opened: where it is, and the extra of the package that brings what it needs."""

    setting: str
    is_wanted: Callable[[Config], bool]
    module: str
    name: str
    extra: str


DOORS = (
    Kind("server.grpc", lambda config: config.server.grpc, "crawlguide.gateway.grpc.server", "GrpcDoor", "grpc"),
    Kind(
        "server.urlfrontier",
        lambda config: config.server.urlfrontier,
        "crawlguide.gateway.urlfrontier.server",
        "UrlFrontierDoor",
        "grpc",
    ),
    Kind(
        "bus", lambda config: bool(config.bus.nats or config.bus.kafka), "crawlguide.gateway.bus.door", "BusDoor", "bus"
    ),
)


@asynccontextmanager
async def opened(service: Service) -> AsyncIterator[dict[str, Any]]:
    """All doors that are wanted, as long as the block runs."""
    found, ready = list[Door](), dict[str, Any]()
    try:
        for kind in DOORS:
            if kind.is_wanted(service.config):
                found.append(_loaded(kind)(service))
                ready |= await found[-1].open()
        yield ready
    finally:
        for door in found:
            await door.close()


def _loaded(kind: Kind) -> Any:
    try:
        return getattr(import_module(kind.module), kind.name)
    except ModuleNotFoundError as missing:
        how = f"pip install 'crawlguide[{kind.extra}]'"
        raise ConfigError(f"{kind.setting}: this door needs {missing.name}, which is not installed: {how}") from None
