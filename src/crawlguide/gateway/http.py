"""The HTTP door: Starlette routes over the table of endpoints, one error shape, all limits enforced."""

from __future__ import annotations

import time
from functools import partial
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
from crawlguide.gateway import openapi, wire, yaml
from crawlguide.gateway.access.check import AccessCheck
from crawlguide.gateway.access.credential import ADMIN, METRICS, READ
from crawlguide.gateway.dashboard.pages import Dashboard
from crawlguide.gateway.responses import JSON, LINES, STATUS, fault_of_ours, problem_response, success_response
from crawlguide.gateway.routes import ROUTES, Lines, Route
from crawlguide.gateway.service import Service, Wanted
from crawlguide.guide.crawl.transfer import lines_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Caller

UNKNOWN, SOCKETS = "unknown page", "/ws"


class Door:
    """One guide behind HTTP. Whoever comes in has been admitted by the entrance."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def app(self, sockets: ASGIApp | None = None) -> ASGIApp:
        """The pages, and the door for WebSockets if there is one, both behind the entrance."""
        pages = self._pages()

        async def both(scope: Scope, receive: Receive, send: Send) -> None:
            await (sockets if sockets and scope["type"] == "websocket" else pages)(scope, receive, send)

        return AccessCheck(both, self.service.entrance, self.service.log_refusal)

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
        paths += Dashboard(self.service.guide, self.service.entrance, self.service.log_refusal).routes()
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
            self.service.running += 1
            wrong: CrawlGuideError | None = None
            try:
                answer = await self._answer(route, request)
            except CrawlGuideError as problem:
                answer, wrong = problem_response(problem, request), problem
            except Exception as fault:
                self.service.answered(path, 500, time.perf_counter() - began, fault_of_ours(fault), **_who(request))
                if route.scope == ADMIN:
                    self._write_audit(request, 500)
                raise
            finally:
                self.service.running -= 1
            self.service.answered(path, answer.status_code, time.perf_counter() - began, wrong, **_who(request))
            if route.scope == ADMIN:
                self._write_audit(request, answer.status_code)
            return answer

        return endpoint

    async def _answer(self, route: Route, request: Request) -> Response:
        service = self.service
        if service.running > service.options.max_requests:
            raise UnavailableError(f"more than {service.options.max_requests} requests at once", retry_after_s=1.0)
        credential: Credential = request.scope["state"]["credential"]
        service.check(route, credential, request.path_params)
        _check_query(route, request.query_params)
        body = await self._body(request)
        if body and yaml.sent(request.headers.get("content-type", "")):
            body = await yaml.read(body)
        read = partial(lines_of, body) if route.takes is Lines else partial(_message, body, route.takes)
        wanted = Wanted(route.path, route, request.path_params, request.query_params, read, len(body))
        result = await service.serve(wanted, credential)
        if route.gives is Lines:
            return StreamingResponse(result, media_type=LINES)
        reply, created = result if isinstance(result, tuple) else (result, False)
        return await success_response(request, wire.encode(reply), 201 if created else 200)

    def _write_audit(self, request: Request, status: int) -> None:
        credential: Credential = request.scope["state"]["credential"]
        caller: Caller = request.scope["state"]["caller"]
        what = f"{request.method} {request.url.path}" + (f"?{request.url.query}" if request.url.query else "")
        self.service.audit.write(credential.name, credential.tenant, caller.address, what, status)

    async def _body(self, request: Request) -> bytes:
        """The body, within the limits of `BodyLimits`."""
        try:
            return await request.body()
        except ClientDisconnect:
            raise MalformedRequest("body: the connection ended in the middle of it") from None

    async def _healthz(self, _: Request) -> Response:
        return Response(b'{"status":"alive"}', media_type=JSON)

    async def _readyz(self, _: Request) -> Response:
        if self.service.draining:
            return problem_response(Draining("not ready", retry_after_s=1.0))
        if self.service.trouble():  # no ask and no report can be kept: others may do better
            return problem_response(UnavailableError("the data folder cannot be written", retry_after_s=1.0))
        failed = [*self.service.not_running(), *self.service.buses_away()]  # all is answered: it stays in service
        status = {"status": "degraded", "not_running": failed} if failed else {"status": "ready"}
        return Response(msgspec.json.encode(status), media_type=JSON)

    async def _metrics(self, request: Request) -> Response:
        """Of the process and all tenants for whoever watches over the server; to others their own tenant's."""
        credential: Credential = request.scope["state"]["credential"]
        try:
            credential.check(METRICS if credential.may(METRICS) else READ)
        except CrawlGuideError as problem:
            return problem_response(problem)
        metrics, guide = self.service.metrics, self.service.guide
        if not credential.measures_all:
            page = metrics.page_of_tenant(credential.tenant, await guide.stats(credential.tenant))
            return Response(page, headers={"content-type": metrics.content_type})
        figures = {f"store_{name}": value for name, value in (await guide.store.figures()).items()}
        figures |= {"store_open_seconds": guide.store.opened_s, "requests_running": self.service.running}
        stats_of = {tenant: await guide.stats(tenant) for tenant in await guide.store.tenants()}
        figures |= {"sockets": self.service.sockets(), **self.service.bus_figures()}
        page = metrics.page(stats_of, figures)
        return Response(page, headers={"content-type": metrics.content_type})

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
            self.service.log_refusal(UNKNOWN, 405, wrong, **_who(request))
            answer = problem_response(wrong)
            answer.headers["allow"] = allowed
            return answer
        where = "it is for WebSockets: connect with ws://" if path == SOCKETS else "/docs lists all there are"
        unknown = NotFound(f"no such page: {path}; {where}")
        self.service.log_refusal(UNKNOWN, 404, unknown, **_who(request))
        return problem_response(unknown)

    async def _refused_by_a_page(self, request: Request, problem: CrawlGuideError) -> Response:
        self.service.log_refusal(UNKNOWN, STATUS[problem.code], problem, **_who(request))
        return problem_response(problem, request)

    async def _failed(self, _: Request, problem: Exception) -> Response:
        """A fault of ours: the caller gets the one error shape, the operator the traceback."""
        return problem_response(fault_of_ours(problem))


def _who(request: Request) -> dict[str, str]:
    """As the fields of a log event name somebody who came in; whoever reads a free page is an address and no more."""
    address = request.client.host if request.client else ""
    credential: Credential | None = request.scope.get("state", {}).get("credential")
    return {"address": address} | (credential.logged if credential else {})


def _message(body: bytes, kind: Any) -> Any:
    return kind and wire.decode(body, kind)


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
