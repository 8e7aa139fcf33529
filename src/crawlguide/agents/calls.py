"""One call of an agent: which guide answers it, whose it is, and who is told how it goes."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from crawlguide.gateway.access.credential import ANYONE
from crawlguide.gateway.access.entrance import Caller
from crawlguide.gateway.client import AsyncClient, calls
from crawlguide.gateway.client.verbs import AsyncVerbs
from crawlguide.gateway.library import LocalVerbs, message_of
from crawlguide.gateway.routes import BY_ENDPOINT
from crawlguide.gateway.service import Service, Wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.client.calls import Call as GuideCall

TRIES, DEADLINE_S = 2, 20.0  # of a call to a served guide: a model waits
MOST_CLIENTS = 64  # of callers that came lately


async def _nobody(_done: float, _of: float, _words: str) -> None:
    """Nobody wants to know how it goes."""


@dataclass(frozen=True)
class Call:
    """`whose` tells callers apart, as `tenant/credential`: what was found for one is not shown to another."""

    guide: AsyncVerbs
    whose: str = ""
    progress: Callable[[float, float, str], Awaitable[None]] = _nobody
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # nobody waits for the answer any more


class Guides(Protocol):
    """The guide for whoever calls. `state` is what the layers of a server have left there; without one it is empty."""

    def of(self, state: Mapping[str, Any]) -> AbstractAsyncContextManager[tuple[AsyncVerbs, str]]: ...


@dataclass(frozen=True)
class OneGuide:
    """Over stdio there is one caller, who has started this process and may do what it may."""

    guide: AsyncVerbs

    @asynccontextmanager
    async def of(self, state: Mapping[str, Any]) -> AsyncIterator[tuple[AsyncVerbs, str]]:  # noqa: ARG002 - as all guides
        yield self.guide, ""


@dataclass(frozen=True)
class GuardedGuide:
    """A guide in this process behind the same guard as that of every other door."""

    service: Service

    @asynccontextmanager
    async def of(self, state: Mapping[str, Any]) -> AsyncIterator[tuple[AsyncVerbs, str]]:
        credential: Credential = state.get("credential", ANYONE)
        caller: Caller = state.get("caller", Caller(""))
        yield AdmittedGuide(self.service, caller), f"{credential.tenant}/{credential.name}"


class AdmittedGuide(LocalVerbs):
    """The guide of a service for one caller, whose credential, rate, scopes and tenant count in each call."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self._service, self._caller = service, caller

    async def close(self) -> None:
        """It is the service's."""

    async def _served(self, call: GuideCall[Any]) -> Any:
        route = BY_ENDPOINT[call.method, call.path]
        path = {"crawl_id": call.crawl_id} if "{crawl_id}" in route.path else {}
        read, size = partial(message_of, call, route), len(calls.body(call))
        return await self._service.answer(self._caller, Wanted(route.path, route, path, call.query, read, size))


class ServedGuide:
    """A guide elsewhere. Each caller shows it a credential of its own, which is passed on as it came; this server
    shows none, so that nobody can do through it what they may not do themselves."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[str, AsyncClient] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def of(self, state: Mapping[str, Any]) -> AsyncIterator[tuple[AsyncVerbs, str]]:
        shown = state.get("caller", Caller("")).authorization
        client = self._clients.pop(shown, None) or remote(self._url, {"authorization": shown})
        self._clients[shown] = client  # the last one is the latest
        self._users[shown] = self._users.get(shown, 0) + 1
        try:
            yield client, sha256(shown.encode()).hexdigest()
        finally:
            self._users[shown] -= 1
            await self._forget()

    async def _forget(self) -> None:
        """Those who came the longest ago, unless they are being answered."""
        idle = [shown for shown in self._clients if not self._users.get(shown)]
        for shown in idle[: max(0, len(self._clients) - MOST_CLIENTS)]:
            self._users.pop(shown, None)
            await self._clients.pop(shown).close()

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
        self._clients.clear()


def remote(url: str, headers: Mapping[str, str] | None = None) -> AsyncClient:
    return AsyncClient(url, retries=TRIES, deadline_s=DEADLINE_S, headers=headers)
