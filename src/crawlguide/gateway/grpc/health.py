"""grpc.health.v1: whether the guide can answer. As /readyz over HTTP it wants no credential and says nothing more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health_pb2

from crawlguide.core.errors import CrawlGuideError
from crawlguide.gateway.conversation import waited
from crawlguide.gateway.grpc import transport
from crawlguide.gateway.grpc.methods import SERVICE
from crawlguide.gateway.grpc.reading import StrangersReads
from crawlguide.gateway.load import whose

if TYPE_CHECKING:
    from crawlguide.gateway.grpc.transport import Behaviour, Context
    from crawlguide.gateway.service import Service

HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]
NAMES = ("", SERVICE.full_name)
Response = health_pb2.HealthCheckResponse
LOOKS_EVERY_S = 1.0


class Health:
    """Of the whole server: its services are ready together."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reads = StrangersReads(service.load, service.options)
        self._leaving = asyncio.Event()

    def behaviour(self) -> dict[str, Behaviour]:
        return {"Check": self._check, "List": self._list, "Watch": self._watch}

    def leave(self) -> None:
        """Whoever watches is told at once, and let go."""
        self._leaving.set()

    @property
    def _status(self) -> Any:
        ready = not (self._service.draining or self._leaving.is_set() or self._service.trouble())
        return Response.SERVING if ready else Response.NOT_SERVING

    def _knock(self, context: Context) -> None:
        self._service.entrance.knock(transport.address(context.peer()))

    async def _named(self, context: Context) -> str:
        """Which service is meant."""
        self._knock(context)
        request = await self._reads.read(context, whose(transport.address(context.peer())))
        return str(request.service)

    async def _check(self, context: Context) -> Any:
        try:
            name = await self._named(context)
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)
        if name not in NAMES:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no such service: {name[:80]!r}")
        return Response(status=self._status)

    async def _list(self, context: Context) -> Any:
        try:
            self._knock(context)
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)
        return health_pb2.HealthListResponse(statuses={name: Response(status=self._status) for name in NAMES})

    async def _watch(self, context: Context) -> None:
        """Says each change; of a service that is not there, that it is unknown."""
        try:
            known = await self._named(context) in NAMES
            with transport.counted(self._service, context):
                said = None
                while not (self._leaving.is_set() and said is not None):
                    status = self._status if known else Response.SERVICE_UNKNOWN
                    if status != said:
                        await self._say(context, status)
                        said = status
                    await waited(self._leaving, LOOKS_EVERY_S)
                if known and said != Response.NOT_SERVING:
                    await self._say(context, Response.NOT_SERVING)
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    async def _say(self, context: Context, status: Any) -> None:
        await transport.write(context, Response(status=status), self._service.options.socket_stall_s)
