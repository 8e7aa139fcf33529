"""What every door passes: who may come in, how much at once, who is told, what is counted and logged."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlguide.core.errors import CrawlGuideError, Draining, NotFound, UnavailableError
from crawlguide.core.messages import DEFAULT_TENANT
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.turns import make_way
from crawlguide.gateway.access import audit
from crawlguide.gateway.access.audit import AuditLog
from crawlguide.gateway.access.credential import ADMIN, without_hint
from crawlguide.gateway.access.entrance import FOLDER, Entrance
from crawlguide.gateway.assigned import AssignedUrls
from crawlguide.gateway.load import Load
from crawlguide.gateway.metrics import Metrics
from crawlguide.gateway.responses import STATUS, fault_of_ours
from crawlguide.gateway.routes import RouteCall, check_before_body
from crawlguide.guide.local import always

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from crawlguide.core.config import Config
    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Caller
    from crawlguide.gateway.routes import Route
    from crawlguide.guide.local import LocalGuide

SLOW_S = 1.0  # an answer that takes longer is worth a line in the log
log = logging.getLogger(__name__)


def ignored(_call: RouteCall, _result: Any) -> None:
    pass


class Wanted(NamedTuple):
    """What a request wants, whatever door it came through. `label` is what metrics and the log call it."""

    label: str
    route: Route
    path: Mapping[str, str]
    query: Mapping[str, str]
    read: Callable[[], Any]  # the message; raises `CrawlGuideError` for what is none
    size: int = 0  # of the message, in bytes
    is_awaited: Callable[[], bool] = always  # whether anybody still waits for the answer
    on_served: Callable[[RouteCall, Any], None] = ignored  # told whose it was, and what the route gave


@dataclass
class Service:
    """One guide and what holds for every door to it."""

    guide: LocalGuide
    config: Config
    metrics: Metrics = field(default_factory=Metrics)
    draining: bool = False
    running: int = 0  # requests that are being answered
    sockets: Callable[[], int] = lambda: 0  # how many are open
    not_running: Callable[[], list[str]] = list  # names of background tasks that have failed
    buses_away: Callable[[], list[str]] = list  # that cannot be reached for now
    bus_figures: Callable[[], Mapping[str, float]] = lambda: {"buses_away": 0, "bus_spool_bytes": 0}
    trouble: Callable[[], str] = str  # with the data folder; empty: there is none

    def __post_init__(self) -> None:
        self.options, self.entrance = self.config.server, Entrance(self.config)
        self.load = Load(self.options)
        self.load.on_refusal = lambda problem: self.metrics.count("errors", code=problem.code)
        self.load.are_tells_crowded = self._are_tells_crowded
        folder = self.guide.store.folder
        self.audit = AuditLog(None if folder is None else folder / FOLDER / audit.FILE)
        self.assigned = AssignedUrls()
        self.guide.on_deleted.append(self.assigned.deleted)

    async def received(
        self, label: str, route: Route, caller: Caller, read: Callable[[Credential], Awaitable[Any]]
    ) -> tuple[Credential, Any]:
        """Who somebody is, and what they say. Raises what refuses them: then nothing is read."""
        credential: Credential | None = None
        began = time.perf_counter()
        try:
            credential = self.entrance.admit(caller)
            self.check_room(route, credential)
            return credential, await read(credential)
        except CrawlGuideError as problem:
            took_s = time.perf_counter() - began
            self.answered(label, STATUS[problem.code], took_s, problem, **_who(caller, credential))
            raise

    async def answer(self, caller: Caller, wanted: Wanted, admitted: Credential | None = None) -> Any:
        """Admit, check, serve and count one request of a door without layers of its own.

        `admitted` was admitted before. Raises `CrawlGuideError` alone: what else goes wrong is logged here.
        """
        began, credential = time.perf_counter(), admitted
        try:
            credential = admitted or self.entrance.admit(caller)
            with self._working(wanted.size):
                self.check(wanted.route, credential, wanted.path)
                await self.load.turns.come()
                result = await self.serve(wanted, credential)
        except CrawlGuideError as problem:
            took_s, who = time.perf_counter() - began, _who(caller, credential)
            self.answered(wanted.label, STATUS[problem.code], took_s, problem, **who)
            self._write_audit(wanted, credential, caller, STATUS[problem.code])
            raise
        except Exception as fault:
            log.exception("a fault while answering %s", wanted.label)
            ours = fault_of_ours(fault)
            self.answered(wanted.label, 500, time.perf_counter() - began, ours, **_who(caller, credential))
            self._write_audit(wanted, credential, caller, 500)
            raise ours from None
        self.answered(wanted.label, 200, time.perf_counter() - began, None, **_who(caller, credential))
        self._write_audit(wanted, credential, caller, 200)
        return result

    @contextmanager
    def _working(self, size: int) -> Iterator[None]:
        """A message counts among those in work until it is answered."""
        self.check_load()
        self.load.bodies.grow(0, size)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self.load.bodies.free(size)

    def check_load(self) -> None:
        """Raise `UnavailableError` where one more would wait too long."""
        if self.running >= self.options.max_requests:
            raise UnavailableError(f"more than {self.options.max_requests} requests at once", retry_after_s=1.0)
        if self.load.turns.is_crowded():
            raise UnavailableError("more requests than can be answered within a second", retry_after_s=1.0)

    def check(self, route: Route, credential: Credential, path: Mapping[str, str]) -> None:
        """What can be refused before a message is read is."""
        if self.draining:
            raise Draining("the server is shutting down; ask again, another may answer", retry_after_s=1.0)
        self.check_room(route, credential)
        check_before_body(route, credential, path)

    def check_room(self, route: Route, credential: Credential) -> None:
        """Raise `UnavailableError` where a report would wait too long behind what its tenant told before."""
        if route.tells:
            self.guide.tells.check_room(credential.tenant)

    def _are_tells_crowded(self) -> bool:
        """Whoever it is that tells: only where all are of one tenant anything can be said before that is known."""
        return not self.entrance.required and self.guide.tells.is_crowded(DEFAULT_TENANT)

    async def serve(self, wanted: Wanted, credential: Credential) -> Any:
        """What a route gives. The caller has been admitted and checked."""
        await make_way(wanted.size)
        message = wanted.read()
        scope, is_awaited = wanted.route.scope, wanted.is_awaited
        call = RouteCall(self.guide, credential, scope, wanted.path, wanted.query, message, is_awaited=is_awaited)
        await make_way(wanted.size)
        try:
            result = await wanted.route.serve(call)
        except NotFound as problem:
            raise without_hint(problem, credential) from None
        self.assigned.served(call)
        wanted.on_served(call, result)
        await make_way(wanted.size)
        return result

    def answered(
        self, route: str, status: int, took_s: float, problem: CrawlGuideError | None = None, **who: str
    ) -> None:
        """Count it; and tell the log of what failed, was refused or took long, and who it was."""
        self.metrics.count("requests", route=route, status=str(status))
        self.metrics.observe("request_seconds", took_s, route=route)
        if problem is not None:
            self.log_refusal(route, status, problem, **who)
        elif took_s > SLOW_S:
            happened("request_slow", "{route} took {seconds} s", WARNING, route=route, seconds=round(took_s, 3), **who)

    def log_refusal(self, route: str, status: int, problem: CrawlGuideError, **who: str) -> None:
        """Count it, and tell the log."""
        self.metrics.count("errors", code=problem.code)
        log_refusal(route, status, problem, **who)

    def _write_audit(self, wanted: Wanted, credential: Credential | None, caller: Caller, status: int) -> None:
        """What somebody who was let in did, or tried to do, as an admin."""
        if wanted.route.scope == ADMIN and credential is not None:
            named = " ".join(f"{name}={text}" for name, text in {**wanted.path, **wanted.query}.items())
            what = f"{wanted.label} {named}".rstrip()
            self.audit.write(credential.name, credential.tenant, caller.address, what, status)


def _who(caller: Caller, credential: Credential | None) -> dict[str, str]:
    """As the fields of a log event name somebody, who was let in if there is a credential."""
    return caller.logged if credential is None else {"address": caller.address, **credential.logged}


def log_refusal(route: str, status: int, problem: CrawlGuideError, **who: str) -> None:
    """A caller's own mistake is logged as information, a failure of the server as a warning."""
    words = "{route} was answered {status} {code}: {problem}" + _said_to(who)
    about: dict[str, Any] = {"route": route, "status": status, "code": problem.code, "field": problem.field, **who}
    if status < 500:
        happened("request_refused", words, **about, problem=problem.message)
    else:
        happened("request_failed", words, WARNING, **about, problem=problem.message)


def _said_to(who: Mapping[str, str]) -> str:
    """The end of a sentence that names the fields there are; a tenant is added to whatever line has one."""
    if "credential" in who:
        return " ({credential} at {address})"
    if "claims" in who:
        return " (somebody with {claims} at {address})"
    return " ({address})" if who.get("address") else ""
