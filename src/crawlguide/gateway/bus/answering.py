"""From a message of a bus to its answer, through what every door passes. Which kind of bus it is nobody knows here.

A message that the bus keeps is acknowledged when the bus has its answer, and not before: one that comes again has the
same id, so the guide gives the same answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from crawlguide.core.bounded import Bounded
from crawlguide.core.errors import (
    CrawlGuideError,
    Forbidden,
    NotFound,
    RateLimited,
    StorageFull,
    TooLarge,
    UnavailableError,
)
from crawlguide.core.messages import AskMessage, ReportMessage
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway import routes, wire
from crawlguide.gateway.access.entrance import Caller
from crawlguide.gateway.bus.messages import VERBS, BusAway, Outgoing, TooLargeForBus, header
from crawlguide.gateway.responses import JSON, STATUS
from crawlguide.gateway.service import Wanted

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from crawlguide.gateway.bus.messages import Line, Names, Received
    from crawlguide.gateway.routes import Route, RouteCall
    from crawlguide.gateway.service import Service

LATER = (UnavailableError, RateLimited, StorageFull)
POISON = ("internal", "too_large")
MOST_FAULTS, FAULTS_REMEMBERED = 5, 10_000
LONGEST_LATER_S = 60.0
MOST_REQUESTS = 1_024  # that somebody waits for, in work at once
PATH_OF = {verb: f"/v1/{verb}" for verb in VERBS}
ROUTE_OF: dict[str, Route] = {
    verb: route for verb, path in PATH_OF.items() for route in routes.ROUTES if route.path == path
}
AUTHORIZATION, CORRELATION, REPLY_TO = "authorization", "correlation-id", "reply-to"
log = logging.getLogger(__name__)


class Named(msgspec.Struct, frozen=True):
    """Who sent it, of a message that may be wrong in every other way."""

    crawler_id: str
    request_id: str | None = None
    report_id: str | None = None


class Answer(NamedTuple):
    """Whose it is, under which id, and what is said."""

    tenant: str
    crawler_id: str
    name: str | None
    result: Any


class Answering:
    """Works on messages of one line, on so many at once."""

    def __init__(self, service: Service, line: Line, names: Names, most: int) -> None:
        self._service, self._line, self._names, self._most = service, line, names, most
        self._working: set[asyncio.Task[None]] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._faults = Bounded[str, int](FAULTS_REMEMBERED)
        self._room = asyncio.Event()
        self._routes = {verb: replace(route, serve=self._served) for verb, route in ROUTE_OF.items()}

    async def run(self) -> None:
        """Until the line ends. No more is taken than there is room for: the bus keeps the rest."""
        while True:
            while len(self._working) > self._most * 3 // 4:
                self._room.clear()
                await self._room.wait()
            for received in await self._line.receive(self._most - len(self._working)):
                self._start(self._kept(received), self._working)

    def requested(self, received: Received) -> None:
        """Somebody waits. What is too much is refused, as at every door."""
        if len(self._requests) >= MOST_REQUESTS:
            problem = UnavailableError(f"more than {MOST_REQUESTS} messages at once", retry_after_s=1.0)
            self._start(self._respond(received, wire.error(problem), STATUS[problem.code]), self._working)
            return
        self._start(self._request(received), self._requests)

    async def end(self, within_s: float) -> None:
        """What is in work comes to its end. It is never cancelled: an ask cut short would lose leases."""
        if left := self._working | self._requests:
            await asyncio.wait(left, timeout=within_s)

    def _start(self, work: Coroutine[None, None, None], among: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(self._guarded(work))
        among.add(task)
        task.add_done_callback(lambda ended: self._ended(ended, among))

    def _ended(self, task: asyncio.Task[None], among: set[asyncio.Task[None]]) -> None:
        among.discard(task)
        self._room.set()

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except BusAway:
            self._count("later")  # whoever waits asks again; what the bus keeps comes again
        except Exception:
            log.exception("a fault while answering a message of the bus")

    # somebody waits

    async def _request(self, received: Received) -> None:
        try:
            answer = await self._answer(received)
        except CrawlGuideError as problem:
            if received.reply:
                self._count("refused")
                await self._respond(received, wire.error(problem), STATUS[problem.code])
            else:
                await self._bury(received, problem)
            return
        self._count("answered")
        await self._respond(received, wire.encode(answer.result), 200)

    async def _respond(self, received: Received, body: bytes, status: int) -> None:
        """Headers only where they say something: to read them costs whoever waits a quarter of the way."""
        if not received.reply:
            return
        headers = self._headers(received, status)
        is_plain = status == 200 and CORRELATION not in headers
        try:
            await self._line.respond(received, body, {} if is_plain else headers)
        except TooLargeForBus as problem:
            words = f"the bus does not carry an answer of {len(body)} bytes ({problem}); ask for fewer URLs"
            await self._line.respond(received, wire.error(TooLarge(words)), headers | {"status": "413"})

    # the bus keeps it until it is acknowledged

    async def _kept(self, received: Received) -> None:
        try:
            answer = await self._answer(received)
        except CrawlGuideError as problem:
            await self._refused(received, problem)
            return
        headers = self._headers(received, 200, answer.name)
        to = received.headers.get(REPLY_TO, "")
        await self._send(received, self._outgoing(answer, wire.encode(answer.result), headers, to))
        self._count("answered")

    async def _refused(self, received: Received, problem: CrawlGuideError) -> None:
        """Later, where that helps; to the crawler, where it is known; else to the dead letters."""
        if isinstance(problem, LATER):
            await self._later(received, problem.retry_after_s or 1.0)
            return
        if problem.code == "internal":
            faults = self._faults[received.name] = self._faults.get(received.name, 0) + 1
            if faults < MOST_FAULTS:
                await self._later(received, 2.0 ** (faults - 1))
                return
        is_poison = received.verb not in ROUTE_OF or problem.code in POISON
        to = None if is_poison else self._sender(received, problem)
        if to is None:
            await self._bury(received, problem)
            return
        headers = self._headers(received, STATUS[problem.code], to.name)
        await self._send(received, self._outgoing(to, wire.error(problem), headers))
        self._count("refused")

    async def _later(self, received: Received, delay_s: float) -> None:
        self._count("later")
        await self._line.later(received, min(max(delay_s, 0.05), LONGEST_LATER_S))

    async def _send(self, received: Received, outgoing: Outgoing) -> None:
        try:
            await self._line.publish([outgoing])
        except TooLargeForBus as problem:
            words = f"the bus does not carry an answer of {len(outgoing.body)} bytes ({problem}); ask for fewer URLs"
            headers = outgoing.headers | {"status": "413"}
            smaller = msgspec.structs.replace(outgoing, body=wire.error(TooLarge(words)), headers=headers)
            await self._line.publish([smaller])
        except BusAway:
            await self._line.later(received, 1.0)
            raise
        await self._line.done(received)

    async def _bury(self, received: Received, problem: CrawlGuideError) -> None:
        """To the dead letters, with the reason and without its credential."""
        self._count("dead")
        words = "a message of {subject} is a dead letter: {problem}"
        about = {"subject": received.subject, "problem": problem.message, "code": problem.code}
        happened("bus_dead_letter", words, WARNING, **about)
        headers = {name: text for name, text in received.headers.items() if name not in (AUTHORIZATION, REPLY_TO)}
        headers = {header(name): header(text) for name, text in list(headers.items())[:20]}
        headers |= {"subject": header(received.subject), "code": problem.code, "error": header(problem.message[:1_000])}
        headers |= {"id": f"dead-{received.name}"} if received.name else {}
        letter = Outgoing("dead", "", "", "", received.body, headers)
        try:
            await self._line.publish([letter])
        except TooLargeForBus:
            await self._line.publish([msgspec.structs.replace(letter, body=b"")])
        except BusAway:
            await self._line.later(received, 1.0)
            raise
        await self._line.done(received)

    # the guide

    async def _answer(self, received: Received) -> Answer:
        route = self._routes.get(received.verb)
        if route is None:
            raise NotFound(f"subject: expected one that ends with {' or '.join(VERBS)}, got {received.subject[:200]!r}")
        query = {REPLY_TO: reply_to} if (reply_to := received.headers.get(REPLY_TO)) else {}
        label, size = f"{self._line.kind} {received.verb}", len(received.body)
        wanted = Wanted(label, route, {}, query, lambda: self._read(received), size)
        answer: Answer = await self._service.answer(self._caller(received), wanted)
        return answer

    async def _served(self, call: RouteCall) -> Answer:
        reply_to = call.query.get(REPLY_TO)
        if reply_to and not self._names.is_own(reply_to, call.tenant):
            expected = self._names.of("answers", call.tenant) + "."
            words = f"reply-to: expected a name that begins with {expected}, got {reply_to[:200]!r}"
            raise Forbidden(words, field="reply-to")
        message = call.message
        if isinstance(message, AskMessage):
            return Answer(call.tenant, message.crawler_id, message.request_id, await routes.ask(call))
        return Answer(call.tenant, message.crawler_id, message.report_id, await routes.tell(call))

    def _read(self, received: Received) -> AskMessage | ReportMessage:
        """What can come again gets an id, if it has none of its own."""
        most = self._service.options.max_message_bytes
        if len(received.body) > most:
            raise TooLarge(f"body: expected at most {most} bytes, got {len(received.body)}")
        message: AskMessage | ReportMessage = wire.decode(received.body, ROUTE_OF[received.verb].takes)
        if isinstance(message, AskMessage):
            return msgspec.structs.replace(message, request_id=message.request_id or received.name or None)
        return msgspec.structs.replace(message, report_id=message.report_id or received.name or None)

    def _caller(self, received: Received) -> Caller:
        return Caller(self._line.kind, received.headers.get(AUTHORIZATION, ""))

    def _sender(self, received: Received, problem: CrawlGuideError) -> Answer | None:
        """Who is told of an error: a crawler of a tenant that we know. None: nobody."""
        try:
            credential = self._service.entrance.identify(self._caller(received))
            named = msgspec.json.decode(received.body, type=Named)
        except (CrawlGuideError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        crawler = credential.crawler_id or named.crawler_id
        if not 1 <= len(crawler) <= 200:
            return None
        return Answer(credential.tenant, crawler, named.request_id or named.report_id, problem)

    # messages out

    def _headers(self, received: Received, status: int, name: str | None = None) -> dict[str, str]:
        headers = {"status": str(status), "content-type": JSON}
        if received.name:
            headers["id"] = f"answer-{received.name}"
        if name:
            headers["request-id"] = header(name[:200])
        if correlation := received.headers.get(CORRELATION):
            headers[CORRELATION] = header(correlation[:200])
        return headers

    def _outgoing(self, answer: Answer, body: bytes, headers: Mapping[str, str], to: str = "") -> Outgoing:
        crawler = answer.crawler_id
        return Outgoing("answers", answer.tenant, crawler, crawler, body, dict(headers), to)

    def _count(self, outcome: str) -> None:
        self._service.metrics.count("bus_messages", bus=self._line.kind, outcome=outcome)
