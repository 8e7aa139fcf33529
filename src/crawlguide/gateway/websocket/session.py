"""One socket's conversation: many questions at once, each answered when its answer is there."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import (
    Conflict,
    CrawlGuideError,
    Draining,
    NotFound,
    RateLimited,
    Unauthenticated,
    UnavailableError,
)
from crawlguide.core.messages import ReleaseMessage
from crawlguide.gateway import routes, wire
from crawlguide.gateway.access.credential import ASK, READ, without_hint
from crawlguide.gateway.conversation import LEAVING, InWork, Standing, ended
from crawlguide.gateway.responses import STATUS, fault_of_ours
from crawlguide.gateway.routes import BY_ENDPOINT, RouteCall
from crawlguide.gateway.service import Wanted
from crawlguide.gateway.websocket import messages
from crawlguide.gateway.websocket.frames import GOING_AWAY, REFUSED
from crawlguide.gateway.websocket.messages import Envelope, Release, StatsWanted, Subscribe
from crawlguide.gateway.websocket.subscriptions import StatsSubscription, Subscription

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from crawlguide.core.messages import Advice, AskMessage, StatsMessage
    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Caller
    from crawlguide.gateway.assigned import Holder
    from crawlguide.gateway.service import Service
    from crawlguide.gateway.websocket.codecs import Codec
    from crawlguide.gateway.websocket.connection import Connection
    from crawlguide.gateway.websocket.messages import Id
    from crawlguide.gateway.websocket.subscriptions import Stream

    Answer = tuple[str, Any]  # its type and fields

LABELS = {kind: f"/ws {kind}" for kind in (*messages.TYPES, "other")}  # what metrics and the log call them
ROUTE_OF = {  # of the types that an endpoint of HTTP serves
    "next": BY_ENDPOINT["POST", "/v1/next"],
    "report": BY_ENDPOINT["POST", "/v1/report"],
    "release": BY_ENDPOINT["POST", routes.CRAWL + "/release"],
}
RESTS_S = 0.25
log = logging.getLogger(__name__)


class Session:
    """Receives the messages of one connection and answers them. The door counts each answer.

    The caller is admitted anew for every message, as over HTTP for every request: limits count, and revoked keys end.
    """

    def __init__(self, connection: Connection, service: Service, caller: Caller, codec: Codec) -> None:
        self.connection, self._codec = connection, codec
        self._caller = caller
        self._service, self._assigned = service, service.assigned
        self._in_work = InWork(service.options.socket_in_flight)
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: dict[Id, Stream] = {}
        self._running: set[Stream] = set()  # and those that were unsubscribed and are at their last ask
        self._holders: list[Holder] = []
        self._leaving = False
        self._standing = Standing(service.entrance, caller)

    def receive(self, body: bytes) -> None:
        """One message. Over the limits the connection is held until one of those before is answered."""
        kind = "other"
        try:
            envelope = self._codec.envelope(body)
            kind = envelope.type
            credential = self._service.entrance.admit(self._caller)
            self._service.check_load()
            if kind in ROUTE_OF:
                self._service.check_room(ROUTE_OF[kind], credential)
            self._service.load.bodies.grow(0, len(body))
        except CrawlGuideError as problem:
            self._refuse(kind, self._codec.id_of(body), problem, 0.0, self._caller.logged)
            if isinstance(problem, UnavailableError):
                self._rest()
            return
        self._in_work.enter(len(body))
        self._service.running += 1
        if self._in_work.is_full:
            self.connection.pause_receiving()
        self._service.load.turns.wait(lambda: self._start(self._served(envelope, credential, body)))

    def _rest(self) -> None:
        """Nothing is heard for a moment: whoever sends again at once what was refused would cost more than others."""
        self.connection.pause_receiving()
        self.connection.loop.call_later(RESTS_S, self._resume)

    def _resume(self) -> None:
        if not (self._leaving or self._in_work.is_full):
            self.connection.resume_receiving()

    def check_credential(self) -> None:
        """A key that was revoked, or has expired, ends the socket: whoever subscribed would wait for ever."""
        try:
            self._standing.check()
        except Unauthenticated as problem:
            self.connection.close(REFUSED, f"{problem.code}: {problem.message}")

    def leave(self) -> None:
        """The server ends: no more is heard, what is being worked on is answered, then the socket closes."""
        self._leaving = True
        self.connection.pause_receiving()
        self._say_error(None, Draining(LEAVING, retry_after_s=1.0))
        for stream in self._streams.values():
            stream.stop()
        self._close_if_done()

    async def end(self) -> None:
        """The socket is gone: let what runs come to its end, then return what its subscriptions still hold."""
        self._leaving = True
        for stream in self._streams.values():
            stream.stop()
        await ended(self._tasks, self._holders, self._service.guide)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self.connection.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _served(self, envelope: Envelope, credential: Credential, body: bytes) -> None:
        began, who = time.perf_counter(), {"address": self._caller.address, **credential.logged}
        try:
            if not self.connection.writable.is_set():
                await self.connection.writable.wait()
                began = time.perf_counter()
            answer = await SERVES[envelope.type](self, credential, envelope.id, body)
            if answer:
                self.connection.say(answer[0], envelope.id, answer[1])
            self._service.answered(LABELS[envelope.type], 200, time.perf_counter() - began, None, **who)
        except NotFound as problem:
            known = without_hint(problem, credential)
            self._refuse(envelope.type, envelope.id, known, time.perf_counter() - began, who)
        except CrawlGuideError as problem:
            self._refuse(envelope.type, envelope.id, problem, time.perf_counter() - began, who)
        except Exception as fault:
            log.exception("a fault while answering %s", envelope.type)
            self._refuse(envelope.type, envelope.id, fault_of_ours(fault), time.perf_counter() - began, who)
        finally:
            self._answered(len(body))

    def _answered(self, size: int) -> None:
        was_full = self._in_work.is_full
        self._in_work.leave(size)
        self._service.running -= 1
        self._service.load.bodies.free(size)
        if self._leaving:
            self._close_if_done()
        elif was_full and not self._in_work.is_full:
            self.connection.resume_receiving()

    def _close_if_done(self) -> None:
        if not self._in_work:
            self.connection.close(GOING_AWAY, LEAVING)

    def _refuse(
        self, kind: str, name: Id | None, problem: CrawlGuideError, took_s: float, who: Mapping[str, str]
    ) -> None:
        self._service.answered(LABELS[kind], STATUS[problem.code], took_s, problem, **who)
        self._say_error(name, problem)

    def _say_error(self, name: Id | None, problem: CrawlGuideError) -> None:
        self.connection.say("error", name, wire.error_message(problem))

    # one step for each type

    async def _next(self, credential: Credential, _: Id, body: bytes) -> Answer:
        return "next", await self._routed("next", credential, body)

    async def _report(self, credential: Credential, _: Id, body: bytes) -> Answer:
        return "report", await self._routed("report", credential, body)

    async def _routed(self, kind: str, credential: Credential, body: bytes) -> Any:
        """As an endpoint of HTTP serves it."""
        route = ROUTE_OF[kind]
        wanted = Wanted(LABELS[kind], route, {}, {}, lambda: self._codec.decode(body, route.takes), len(body))
        return await self._service.serve(wanted, credential)

    async def _subscribe(self, credential: Credential, name: Id, body: bytes) -> None:
        wanted = self._codec.decode(body, Subscribe)
        crawl = self._call(credential, ASK, wanted).permitted(wanted.crawl_id)
        credential.check_crawler(wanted.crawler_id)
        subscription = Subscription(
            name, wanted, crawl, self._asks, self._service.guide, self.connection, self._assigned
        )
        self._begin(name, subscription)
        now, running = self._service.guide.clock.now(), {id(getattr(one, "holder", None)) for one in self._running}
        self._holders = [one for one in self._holders if id(one) in running or one.next_end(now) is not None]
        self._holders.append(subscription.holder)

    async def _asks(self, message: AskMessage, create: bool) -> Advice | float:
        """For a subscription: each ask counts and has its turn. Over a limit the answer is how many seconds to wait.

        Whoever may no longer ask is given nothing more.
        """
        await self._service.load.turns.come()
        try:
            credential = self._service.entrance.admit(self._caller)
        except RateLimited as problem:
            return problem.retry_after_s or 1.0
        return await routes.ask(replace(self._call(credential, ASK, message), create=create))

    async def _stats(self, credential: Credential, name: Id, body: bytes) -> None:
        wanted = self._codec.decode(body, StatsWanted)
        await self._shown(credential, wanted)  # refuses at once what may not be looked at
        self._begin(name, StatsSubscription(name, wanted, self._numbers, self.connection))

    async def _numbers(self, wanted: StatsWanted) -> StatsMessage | None:
        """For a subscription: each look counts and has its turn; over a limit, or where many wait, there is none."""
        if self._service.load.turns.is_crowded():
            return None
        await self._service.load.turns.come()
        try:
            credential = self._service.entrance.admit(self._caller)
        except RateLimited:
            return None
        return await self._shown(credential, wanted)

    async def _shown(self, credential: Credential, wanted: StatsWanted) -> StatsMessage:
        query = {} if wanted.crawl_id is None else {"crawl_id": wanted.crawl_id}
        credential.check_some(READ)
        return await routes.stats(RouteCall(self._service.guide, credential, READ, {}, query, None))

    async def _unsubscribe(self, _: Credential, name: Id, body: bytes) -> Answer:
        """What was assigned stays so: the crawler is on its way, and only its report or the lease's end frees it."""
        self._codec.decode(body, Envelope)
        stream = self._streams.pop(name, None)
        if stream is None:
            raise NotFound(f"id: nothing is subscribed under {name!r}", field="id")
        stream.stop()
        return "unsubscribe", None

    async def _release(self, credential: Credential, _: Id, body: bytes) -> Answer:
        """A socket has no paths, so the message names the crawl."""
        said = self._codec.decode(body, Release)
        path, message = {"crawl_id": said.crawl_id}, ReleaseMessage(said.crawler_id)
        wanted = Wanted(LABELS["release"], ROUTE_OF["release"], path, {}, lambda: message, len(body))
        return "release", await self._service.serve(wanted, credential)

    def _call(self, credential: Credential, scope: str, message: Any) -> RouteCall:
        return RouteCall(self._service.guide, credential, scope, {}, {}, message)

    async def _ping(self, _: Credential, __: Id, body: bytes) -> Answer:
        self._codec.decode(body, Envelope)
        return "pong", None

    def _begin(self, name: Id, stream: Stream) -> None:
        if self._leaving:
            raise Draining(LEAVING, retry_after_s=1.0)
        if name in self._streams:
            raise Conflict(f"id: {name!r} is subscribed already; unsubscribe it first, or use another id", field="id")
        if len(self._streams) >= self._service.options.socket_in_flight:
            most = self._service.options.socket_in_flight
            raise RateLimited(f"expected at most {most} subscriptions of one socket", retry_after_s=1.0)
        self._streams[name] = stream
        self._running.add(stream)
        self._start(self._streamed(name, stream))

    async def _streamed(self, name: Id, stream: Stream) -> None:
        try:
            await stream.run()
        except CrawlGuideError as problem:
            self._say_error(name, problem)
        except Exception as fault:
            log.exception("a fault in a subscription")
            self._say_error(name, fault_of_ours(fault))
        self._running.discard(stream)
        if self._streams.get(name) is stream:
            del self._streams[name]


SERVES: dict[str, Callable[[Session, Credential, Id, bytes], Awaitable[Answer | None]]] = {
    "next": Session._next,
    "report": Session._report,
    "subscribe": Session._subscribe,
    "unsubscribe": Session._unsubscribe,
    "release": Session._release,
    "stats": Session._stats,
    "ping": Session._ping,
}
