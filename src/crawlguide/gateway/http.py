"""The HTTP door: the table of endpoints and the pages, one error shape, all limits enforced."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
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
from crawlguide.gateway.headers import headers_of
from crawlguide.gateway.paths import Paths
from crawlguide.gateway.responses import JSON, LINES, STATUS, fault_of_ours, problem_response, success_response
from crawlguide.gateway.routes import ROUTES, Lines, Route
from crawlguide.gateway.service import Service, Wanted
from crawlguide.guide.crawl.transfer import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.gateway.access.entrance import Caller
    from crawlguide.gateway.paths import Endpoint

UNKNOWN, SOCKETS = "unknown page", "/ws"


class Door:
    """One guide behind HTTP. Whoever comes in has been admitted by the entrance."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def app(self, sockets: ASGIApp | None = None) -> ASGIApp:
        """The pages, and the door for WebSockets if there is one, both behind the entrance."""
        paths = Paths(self._routes())

        async def door(scope: Scope, receive: Receive, send: Send) -> None:
            if sockets is not None and scope["type"] == "websocket":
                await sockets(scope, receive, send)
            else:
                await self._page(paths, scope, receive, send)

        return AccessCheck(door, self.service.entrance, self.service.log_refusal)

    def _routes(self) -> list[Path]:
        plain = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
            "/openapi.json": self._openapi,
        }
        return [
            *(Path(route.path, self._endpoint(route), methods=[route.method]) for route in ROUTES),
            *(Path(path, endpoint, methods=["GET"]) for path, endpoint in plain.items()),
            *Dashboard(self.service.guide, self.service.entrance, self.service.log_refusal).routes(),
        ]

    async def _page(self, paths: Paths, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. A fault of ours is said in the one error shape, and raised again for who logs its traceback."""
        request = Request(scope, receive)
        try:
            answer = await self._endpoint_of(paths, request)(request)
        except CrawlGuideError as problem:
            self.service.log_refusal(UNKNOWN, STATUS[problem.code], problem, **_who(request))
            answer = problem_response(problem, request)
        except Exception as fault:
            await problem_response(fault_of_ours(fault))(scope, receive, send)
            raise
        await answer(scope, receive, send)

    def _endpoint_of(self, paths: Paths, request: Request) -> Endpoint:
        found = paths.found(request.scope["path"])
        if found is None:
            return partial(_unknown, paths)
        methods, request.scope["path_params"] = found
        return methods.get(request.method) or partial(self._wrong_method, methods)

    def _endpoint(self, route: Route) -> Endpoint:
        """What answers one of the table."""

        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            self.service.running += 1
            wrong: CrawlGuideError | None = None
            try:
                answer = await self._answer(route, request)
            except CrawlGuideError as problem:
                answer, wrong = problem_response(problem, request), problem
            except Exception as fault:
                took_s = time.perf_counter() - began
                self.service.answered(route.path, 500, took_s, fault_of_ours(fault), **_who(request))
                if route.scope == ADMIN:
                    self._write_audit(request, 500)
                raise
            finally:
                self.service.running -= 1
            self.service.answered(route.path, answer.status_code, time.perf_counter() - began, wrong, **_who(request))
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
        query = request.query_params if request.scope["query_string"] else {}
        _check_query(route, query)
        body = await _body(request.receive)
        if body and yaml.sent(headers_of(request.scope).get("content-type", "")):
            body = await yaml.read(body)
        read = partial(lines_of, body) if route.takes is Lines else partial(_message, body, route.takes)
        wanted = Wanted(route.path, route, request.path_params, query, read, len(body))
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

    async def _wrong_method(self, methods: Iterable[str], request: Request) -> Response:
        allowed, path = ", ".join(sorted(methods)), request.url.path[:200]
        wrong = MethodNotAllowed(f"{request.method[:20]} is not a method of {path}; expected {allowed}")
        self.service.log_refusal(UNKNOWN, 405, wrong, **_who(request))
        answer = problem_response(wrong)
        answer.headers["allow"] = allowed
        return answer


async def _unknown(paths: Paths, request: Request) -> Response:
    """A path with a slash too much leads to the one without; any other nowhere."""
    path = request.scope["path"]
    if path.endswith("/") and paths.found(path.rstrip("/")):
        return RedirectResponse(str(request.url.replace(path=path.rstrip("/"))))
    where = "it is for WebSockets: connect with ws://" if path == SOCKETS else "/docs lists all there are"
    raise NotFound(f"no such page: {path[:200]}; {where}")


async def _body(receive: Receive) -> bytes:
    """The body, within the limits of `BodyLimits`."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise MalformedRequest("body: the connection ended in the middle of it")
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


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
