"""grpc.reflection: the schema, for tools that have none. It wants no credential; a question counts for its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grpc_reflection.v1alpha import reflection, reflection_pb2

from crawlguide.core.errors import CrawlGuideError, TooLarge
from crawlguide.gateway.grpc import transport
from crawlguide.gateway.grpc.reading import StrangersReads, next_one
from crawlguide.gateway.load import whose

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from crawlguide.gateway.grpc.transport import Behaviour, Context
    from crawlguide.gateway.service import Service

REFLECTION = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"]
MOST_BYTES = 1_024  # of a question, which holds a name and is sent back in the answer


class Reflection:
    """Stock answers, of which nobody has more than others of the server's time."""

    def __init__(self, service: Service, names: Sequence[str]) -> None:
        self._service = service
        self._reads = StrangersReads(service.load, service.options)
        self._stock = reflection.aio.ReflectionServicer((*names, REFLECTION.full_name))

    def behaviour(self) -> dict[str, Behaviour]:
        return {"ServerReflectionInfo": self._inform}

    async def _inform(self, context: Context) -> None:
        try:
            with transport.counted(self._service, context):
                async for answer in self._stock.ServerReflectionInfo(self._questions(context), context):
                    await transport.write(context, answer, self._service.options.socket_stall_s)
        except CrawlGuideError as problem:
            await transport.refuse(context, problem)

    async def _questions(self, context: Context) -> AsyncIterator[Any]:
        address = transport.address(context.peer())
        while (question := await self._reads.read(context, whose(address), next_one)) is not None:
            self._service.entrance.knock(address)
            if question.ByteSize() > MOST_BYTES:
                raise TooLarge(f"expected a question of at most {MOST_BYTES} bytes, got {question.ByteSize()}")
            yield question
