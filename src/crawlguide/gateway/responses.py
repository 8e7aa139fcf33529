"""Answers over HTTP: which status an error has, and the one shape of it, in JSON or YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from crawlguide.core.errors import CrawlGuideError
from crawlguide.gateway import wire, yaml
from crawlguide.gateway.headers import headers_of

if TYPE_CHECKING:
    from starlette.requests import Request

STATUS = {
    "malformed_request": 400, "unsupported_version": 400, "unauthenticated": 401, "forbidden": 403,
    "not_found": 404, "method_not_allowed": 405, "conflict": 409, "too_large": 413, "rate_limited": 429,
    "internal": 500, "unavailable": 503, "storage_full": 507,
}  # fmt: skip
JSON, LINES = "application/json", "application/x-ndjson"


async def success_response(request: Request, body: bytes, status: int) -> Response:
    """In the language the caller asks for: JSON, unless it is YAML."""
    if yaml.wanted(headers_of(request.scope).get("accept", "")):
        return Response(await yaml.written(body), status, media_type=yaml.MEDIA_TYPES[0])
    return Response(body, status, media_type=JSON)


def problem_response(problem: CrawlGuideError, request: Request | None = None) -> Response:
    """Also to whoever wants to open a WebSocket: an answer in HTTP instead of the handshake."""
    body, status, media_type = wire.error(problem), STATUS[problem.code], JSON
    if request is not None and yaml.wanted(headers_of(request.scope).get("accept", "")):
        body, media_type = yaml.from_json(body), yaml.MEDIA_TYPES[0]
    made = Response(body, status, media_type=media_type)
    if problem.retry_after_s is not None:
        made.headers["retry-after"] = str(max(1, round(problem.retry_after_s)))
    if problem.code == "unauthenticated":
        made.headers["www-authenticate"] = 'Bearer realm="crawlguide"'
    return made


def fault_of_ours(problem: Exception) -> CrawlGuideError:
    return CrawlGuideError(f"a fault of the guide: {type(problem).__name__}")
