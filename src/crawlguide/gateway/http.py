"""The HTTP door: Starlette routes over the table of endpoints, one error shape, all limits enforced."""

from __future__ import annotations

import asyncio
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
    TooLarge,
    UnavailableError,
)
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway import openapi, wire, yaml
from crawlguide.gateway.dashboard.pages import Dashboard
from crawlguide.gateway.metrics import Metrics
from crawlguide.gateway.routes import ROUTES, Lines, Route, RouteCall
from crawlguide.guide.local import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from crawlguide.core.config import ServerOptions
    from crawlguide.guide.local import LocalGuide

STATUS = {
    "malformed_request": 400, "unsupported_version": 400, "unauthenticated": 401, "forbidden": 403,
    "not_found": 404, "method_not_allowed": 405, "conflict": 409, "too_large": 413, "rate_limited": 429,
    "internal": 500, "unavailable": 503, "storage_full": 507,
}  # fmt: skip
JSON, LINES = "application/json", "application/x-ndjson"
BODY_TIMEOUT_S = 30.0
UNKNOWN, SOCKETS = "unknown page", "/ws"
SLOW_S = 1.0  # an answer that takes longer is worth a line in the log


@dataclass
class Door:
    """One guide behind HTTP."""

    guide: LocalGuide
    options: ServerOptions
    metrics: Metrics = field(default_factory=Metrics)
    draining: bool = False
    running: int = 0  # requests that are being answered
    on_served: Callable[[RouteCall], None] = lambda _: None  # is told of every call that was served
    sockets: Callable[[], int] = lambda: 0  # how many are open

    def app(self) -> Starlette:
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
        paths += Dashboard(self.guide).routes()
        handlers: dict[Any, Any] = {HTTPException: self._refused_by_router, Exception: self._failed}
        return Starlette(routes=paths, exception_handlers=handlers)

    def _dispatch(self, path: str, routes: dict[str, Route]) -> Callable[[Request], Awaitable[Response]]:
        """One endpoint for all methods of a path."""

        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            route = routes["GET" if request.method == "HEAD" else request.method]
            self.running += 1
            wrong: CrawlGuideError | None = None
            try:
                response = await self._answer(route, request)
            except CrawlGuideError as problem:
                response, wrong = problem_response(problem, request), problem
            except Exception as fault:
                self.answered(path, 500, time.perf_counter() - began, fault_of_ours(fault))
                raise
            finally:
                self.running -= 1
            self.answered(path, response.status_code, time.perf_counter() - began, wrong)
            return response

        return endpoint

    def answered(self, route: str, status: int, took_s: float, problem: CrawlGuideError | None = None) -> None:
        """Count it; and tell the log of what failed, was refused or took long."""
        self.metrics.count("requests", route=route, status=str(status))
        self.metrics.observe("request_seconds", took_s, route=route)
        if problem is not None:
            self.log_refusal(route, status, problem)
        elif took_s > SLOW_S:
            happened("request_slow", "{route} took {seconds} s", WARNING, route=route, seconds=round(took_s, 3))

    def log_refusal(self, route: str, status: int, problem: CrawlGuideError) -> None:
        """A caller's own mistake is logged as information, a failure of the server as a warning."""
        self.metrics.count("errors", code=problem.code)
        words = "{route} was answered {status} {code}: {problem}"
        about: dict[str, Any] = {"route": route, "status": status, "code": problem.code, "field": problem.field}
        if status < 500:
            happened("request_refused", words, **about, problem=problem.message)
        else:
            happened("request_failed", words, WARNING, **about, problem=problem.message)

    async def _answer(self, route: Route, request: Request) -> Response:
        if self.draining:
            raise Draining("the server is shutting down; ask again, another may answer", retry_after_s=1.0)
        if self.running > self.options.max_requests:
            raise UnavailableError(f"more than {self.options.max_requests} requests at once", retry_after_s=1.0)
        _check_query(route, request.query_params)
        body = await self._body(request)
        if body and yaml.is_yaml(request.headers.get("content-type", "")):
            body = yaml.to_json(body)
        message = body.splitlines() if route.takes is Lines else route.takes and wire.decode(body, route.takes)
        call = RouteCall(self.guide, DEFAULT_TENANT, request.path_params, request.query_params, message)
        result = await route.serve(call)
        self.on_served(call)
        if route.gives is Lines:
            return StreamingResponse(result, media_type=LINES)
        reply, created = result if isinstance(result, tuple) else (result, False)
        return _response(request, wire.encode(reply), 201 if created else 200)

    async def _body(self, request: Request) -> bytes:
        """The body, but never more of it than the limit, and not for ever."""
        most, pieces, size = self.options.max_message_bytes, [], 0
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > most:
            raise TooLarge(f"body: expected at most {most} bytes, got {declared}")
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                async for piece in request.stream():
                    size += len(piece)
                    if size > most:
                        raise TooLarge(f"body: expected at most {most} bytes, got more")
                    pieces.append(piece)
        except ClientDisconnect:
            raise MalformedRequest("body: the connection ended in the middle of it") from None
        except TimeoutError:
            raise MalformedRequest(f"body: expected it within {BODY_TIMEOUT_S:.0f} s") from None
        return b"".join(pieces)

    async def _healthz(self, _: Request) -> Response:
        return Response(b'{"status":"alive"}', media_type=JSON)

    async def _readyz(self, _: Request) -> Response:
        if self.draining:
            return problem_response(Draining("not ready", retry_after_s=1.0))
        return Response(b'{"status":"ready"}', media_type=JSON)

    async def _metrics(self, _: Request) -> Response:
        figures = {f"store_{name}": value for name, value in (await self.guide.store.figures()).items()}
        figures |= {"store_open_seconds": self.guide.store.opened_s, "requests_running": self.running}
        page = self.metrics.page(await self.guide.stats(), {**figures, "sockets": self.sockets()})
        return Response(page, headers={"content-type": self.metrics.content_type})

    async def _openapi(self, _: Request) -> Response:
        return Response(msgspec.json.encode(openapi.document()), media_type=JSON)

    async def _refused_by_router(self, request: Request, problem: Exception) -> Response:
        """What the router refuses: unknown paths and methods."""
        status = getattr(problem, "status_code", 500)
        headers = dict(getattr(problem, "headers", None) or {})
        path = request.url.path[:200]
        if status == 405:
            allowed = ", ".join(sorted((headers.get("Allow") or headers.get("allow") or "").split(", ")))
            wrong = MethodNotAllowed(f"{request.method[:20]} is not a method of {path}; expected {allowed}")
            self.log_refusal(UNKNOWN, 405, wrong)
            response = problem_response(wrong)
            response.headers["allow"] = allowed
            return response
        where = "it is for WebSockets: connect with ws://" if path == SOCKETS else "/docs lists all there are"
        unknown = NotFound(f"no such page: {path}; {where}")
        self.log_refusal(UNKNOWN, 404, unknown)
        return problem_response(unknown)

    async def _failed(self, _: Request, problem: Exception) -> Response:
        """A fault of ours: the caller gets the one error shape, the operator the traceback."""
        return problem_response(fault_of_ours(problem))


def _check_query(route: Route, given: Mapping[str, str]) -> None:
    """A mistyped parameter must not turn one crawl's URLs into another's."""
    for name in given if route.query else ():
        if name not in route.query:
            known = ", ".join(route.query)
            raise MalformedRequest(f"{name[:80]}: unknown parameter; expected one of {known}", field=name[:80])


def fault_of_ours(problem: Exception) -> CrawlGuideError:
    return CrawlGuideError(f"a fault of the guide: {type(problem).__name__}")


def problem_response(problem: CrawlGuideError, request: Request | None = None) -> Response:
    headers = {} if problem.retry_after_s is None else {"retry-after": str(max(1, round(problem.retry_after_s)))}
    response = _response(request, wire.error(problem), STATUS[problem.code])
    response.headers.update(headers)
    return response


def _response(request: Request | None, body: bytes, status: int) -> Response:
    """In the language the caller asks for: JSON, unless it is YAML."""
    if request is not None and yaml.is_yaml(request.headers.get("accept", "")):
        return Response(yaml.from_json(body), status, media_type=yaml.MEDIA_TYPES[0])
    return Response(body, status, media_type=JSON)


def _methods() -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, []).append(route.method)
    return paths
