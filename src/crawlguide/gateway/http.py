"""The HTTP door: Starlette routes over the table of endpoints, one error shape, all limits enforced."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as Path

from crawlguide.core.errors import (
    CrawlGuideError,
    Draining,
    MalformedRequest,
    MethodNotAllowed,
    NotFound,
    UnavailableError,
)
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.turns import make_way
from crawlguide.gateway import openapi, wire, yaml
from crawlguide.gateway.access import audit
from crawlguide.gateway.access.audit import AuditLog
from crawlguide.gateway.access.check import AccessCheck
from crawlguide.gateway.access.credential import ADMIN, METRICS, READ, without_hint
from crawlguide.gateway.access.entrance import FOLDER, Entrance
from crawlguide.gateway.dashboard.pages import Dashboard
from crawlguide.gateway.load import Load
from crawlguide.gateway.metrics import Metrics
from crawlguide.gateway.responses import JSON, LINES, STATUS, fault_of_ours, problem_response, success_response
from crawlguide.gateway.routes import ROUTES, Lines, Route, RouteCall, check_before_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from crawlguide.core.config import Config
    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Caller
    from crawlguide.guide.local import LocalGuide

UNKNOWN, SOCKETS = "unknown page", "/ws"
SLOW_S = 1.0  # an answer that takes longer is worth a line in the log


@dataclass
class Door:
    """One guide behind HTTP. Whoever comes in has been admitted by the entrance."""

    guide: LocalGuide
    config: Config
    metrics: Metrics = field(default_factory=Metrics)
    draining: bool = False
    running: int = 0  # requests that are being answered
    on_served: Callable[[RouteCall], None] = lambda _: None  # is told of every call that was served
    sockets: Callable[[], int] = lambda: 0  # how many are open
    not_running: Callable[[], list[str]] = list  # names of background tasks that have failed
    trouble: Callable[[], str] = str  # with the data folder; empty: there is none

    def __post_init__(self) -> None:
        self.options, self.entrance = self.config.server, Entrance(self.config)
        self.load = Load(self.options)
        self.load.on_refusal = lambda problem: self.metrics.count("errors", code=problem.code)
        folder = self.guide.store.folder
        self.audit = AuditLog(None if folder is None else folder / FOLDER / audit.FILE)

    def app(self, sockets: ASGIApp | None = None) -> ASGIApp:
        """The pages, and the door for WebSockets if there is one, both behind the entrance."""
        pages = self._pages()

        async def both(scope: Scope, receive: Receive, send: Send) -> None:
            await (sockets if sockets and scope["type"] == "websocket" else pages)(scope, receive, send)

        return AccessCheck(both, self.entrance, self.log_refusal)

    def _pages(self) -> Starlette:
        paths = [
            Path(path, self._dispatch(path, {r.method: r for r in ROUTES if r.path == path}), methods=methods)
            for path, methods in _methods().items()
        ]
        plain = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/openapi.json": self._openapi,
        }
        paths += [Path(path, endpoint, methods=["GET"]) for path, endpoint in plain.items()]
        paths += Dashboard(self.guide, self.entrance, self.log_refusal).routes()
        handlers: dict[Any, Any] = {
            HTTPException: self._refused_by_router,
            CrawlGuideError: self._refused_by_a_page,
            Exception: self._failed,
        }
        return Starlette(routes=paths, exception_handlers=handlers)

    def _dispatch(self, path: str, routes: dict[str, Route]) -> Callable[[Request], Awaitable[Response]]:
        """One endpoint for all methods of a path."""

        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            route = routes["GET" if request.method == "HEAD" else request.method]
            self.running += 1
            wrong: CrawlGuideError | None = None
            try:
                answer = await self._answer(route, request)
            except CrawlGuideError as problem:
                answer, wrong = problem_response(problem, request), problem
            except Exception as fault:
                self.answered(path, 500, time.perf_counter() - began, fault_of_ours(fault), **_who(request))
                if route.scope == ADMIN:
                    self._write_audit(request, 500)
                raise
            finally:
                self.running -= 1
            self.answered(path, answer.status_code, time.perf_counter() - began, wrong, **_who(request))
            if route.scope == ADMIN:
                self._write_audit(request, answer.status_code)
            return answer

        return endpoint

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
        """A caller's own mistake is logged as information, a failure of the server as a warning."""
        self.metrics.count("errors", code=problem.code)
        words = "{route} was answered {status} {code}: {problem}" + _said_to(who)
        about: dict[str, Any] = {"route": route, "status": status, "code": problem.code, "field": problem.field, **who}
        if status < 500:
            happened("request_refused", words, **about, problem=problem.message)
        else:
            happened("request_failed", words, WARNING, **about, problem=problem.message)

    async def _answer(self, route: Route, request: Request) -> Response:
        if self.draining:
            raise Draining("the server is shutting down; ask again, another may answer", retry_after_s=1.0)
        if self.running > self.options.max_requests:
            raise UnavailableError(f"more than {self.options.max_requests} requests at once", retry_after_s=1.0)
        credential: Credential = request.scope["state"]["credential"]
        check_before_body(route, credential, request.path_params)
        _check_query(route, request.query_params)
        body = await self._body(request)
        if body and yaml.sent(request.headers.get("content-type", "")):
            body = await yaml.read(body)
        message = body.splitlines() if route.takes is Lines else route.takes and wire.decode(body, route.takes)
        call = RouteCall(self.guide, credential, route.scope, request.path_params, request.query_params, message)
        await make_way(len(body))
        try:
            result = await route.serve(call)
        except NotFound as problem:
            raise without_hint(problem, credential) from None
        self.on_served(call)
        if route.gives is Lines:
            return StreamingResponse(result, media_type=LINES)
        reply, created = result if isinstance(result, tuple) else (result, False)
        await make_way(len(body))
        return await success_response(request, wire.encode(reply), 201 if created else 200)

    def _write_audit(self, request: Request, status: int) -> None:
        credential: Credential = request.scope["state"]["credential"]
        caller: Caller = request.scope["state"]["caller"]
        what = f"{request.method} {request.url.path}" + (f"?{request.url.query}" if request.url.query else "")
        self.audit.write(credential.name, credential.tenant, caller.address, what, status)

    async def _body(self, request: Request) -> bytes:
        """The body, within the limits of `BodyLimits`."""
        try:
            return await request.body()
        except ClientDisconnect:
            raise MalformedRequest("body: the connection ended in the middle of it") from None

    async def _healthz(self, _: Request) -> Response:
        return Response(b'{"status":"alive"}', media_type=JSON)

    async def _readyz(self, _: Request) -> Response:
        if self.draining:
            return problem_response(Draining("not ready", retry_after_s=1.0))
        if self.trouble():  # no ask and no report can be kept: others may do better
            return problem_response(UnavailableError("the data folder cannot be written", retry_after_s=1.0))
        failed = self.not_running()  # all is answered, so that it stays in service
        status = {"status": "degraded", "not_running": failed} if failed else {"status": "ready"}
        return Response(msgspec.json.encode(status), media_type=JSON)

    async def _metrics(self, request: Request) -> Response:
        """Of the process and all tenants for whoever watches over the server; to others their own tenant's."""
        credential: Credential = request.scope["state"]["credential"]
        try:
            credential.check(METRICS if credential.may(METRICS) else READ)
        except CrawlGuideError as problem:
            return problem_response(problem)
        if not credential.measures_all:
            stats = await self.guide.stats(credential.tenant)
            page = self.metrics.page_of_tenant(credential.tenant, stats)
            return Response(page, headers={"content-type": self.metrics.content_type})
        figures = {f"store_{name}": value for name, value in (await self.guide.store.figures()).items()}
        figures |= {"store_open_seconds": self.guide.store.opened_s, "requests_running": self.running}
        stats_of = {tenant: await self.guide.stats(tenant) for tenant in await self.guide.store.tenants()}
        page = self.metrics.page(stats_of, {**figures, "sockets": self.sockets()})
        return Response(page, headers={"content-type": self.metrics.content_type})

    async def _openapi(self, _: Request) -> Response:
        return Response(openapi.encoded(), media_type=JSON)

    async def _refused_by_router(self, request: Request, problem: Exception) -> Response:
        """What the router refuses: unknown paths and methods."""
        status = getattr(problem, "status_code", 500)
        headers = dict(getattr(problem, "headers", None) or {})
        path = request.url.path[:200]
        if status == 405:
            allowed = ", ".join(sorted((headers.get("Allow") or headers.get("allow") or "").split(", ")))
            wrong = MethodNotAllowed(f"{request.method[:20]} is not a method of {path}; expected {allowed}")
            self.log_refusal(UNKNOWN, 405, wrong, **_who(request))
            answer = problem_response(wrong)
            answer.headers["allow"] = allowed
            return answer
        where = "it is for WebSockets: connect with ws://" if path == SOCKETS else "/docs lists all there are"
        unknown = NotFound(f"no such page: {path}; {where}")
        self.log_refusal(UNKNOWN, 404, unknown, **_who(request))
        return problem_response(unknown)

    async def _refused_by_a_page(self, request: Request, problem: CrawlGuideError) -> Response:
        self.log_refusal(UNKNOWN, STATUS[problem.code], problem, **_who(request))
        return problem_response(problem, request)

    async def _failed(self, _: Request, problem: Exception) -> Response:
        """A fault of ours: the caller gets the one error shape, the operator the traceback."""
        return problem_response(fault_of_ours(problem))


def _who(request: Request) -> dict[str, str]:
    """As the fields of a log event name somebody who came in; whoever reads a free page is an address and no more."""
    address = request.client.host if request.client else ""
    credential: Credential | None = request.scope.get("state", {}).get("credential")
    return {"address": address} | (credential.logged if credential else {})


def _said_to(who: Mapping[str, str]) -> str:
    """The end of a sentence that names the fields there are; a tenant is added to whatever line has one."""
    if "credential" in who:
        return " ({credential} at {address})"
    if "claims" in who:
        return " (somebody with {claims} at {address})"
    return " ({address})" if who.get("address") else ""


def _check_query(route: Route, given: Mapping[str, str]) -> None:
    """A mistyped parameter must not turn one crawl's URLs into another's."""
    for name in given if route.query else ():
        if name not in route.query:
            known = ", ".join(route.query)
            raise MalformedRequest(f"{name[:80]}: unknown parameter; expected one of {known}", field=name[:80])


def _methods() -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, []).append(route.method)
    return paths
