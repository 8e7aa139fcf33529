"""The OpenAPI document, made from the same types that decode requests and encode answers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from crawlguide.core.messages import ErrorMessage
from crawlguide.gateway.routes import ROUTES, Lines, Route
from crawlguide.version import __version__

REFERENCE = "#/components/schemas/{name}"
PROBLEMS = {
    400: "The request is malformed, or of a version we do not speak.",
    401: "A credential is wanted, and none was shown that is good.",
    403: "The credential does not permit it, or a web page of another site asks.",
    404: "No such crawl.",
    409: "The id came before with another body.",
    413: "The message is too large.",
    429: "Too many requests; try again.",
    503: "Not available now; try again.",
    507: "No room left on the disk; reads go on.",
}
PLAIN = {
    "/healthz": "Whether the process is alive.",
    "/readyz": "Whether it accepts requests.",
    "/openapi.json": "This document.",
}


@lru_cache(maxsize=1)
def encoded() -> bytes:
    return msgspec.json.encode(document())


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    kinds = [kind for route in ROUTES for kind in (route.takes, route.gives) if kind not in (None, Lines)]
    schemas, components = msgspec.json.schema_components([*kinds, ErrorMessage], ref_template=REFERENCE)
    named = dict(zip([*kinds, ErrorMessage], schemas, strict=True)) | {
        Lines: {"type": "string"},
        dict: {"type": "object"},
    }
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, named)
    for path, summary in PLAIN.items():
        paths[path] = {"get": {"summary": summary, "responses": _responses(dict, named, (503,))}}
    paths["/metrics"] = {
        "get": {
            "summary": "Prometheus metrics.",
            "responses": {"200": {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}}},
        }
    }
    about = {"title": "crawlguide", "version": __version__, "description": "Which URL should a crawler fetch next?"}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": {"schemas": components}}


def _operation(route: Route, named: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "responses": _responses(route.gives, named, tuple(PROBLEMS)),
    }
    if route.method == "PUT":
        operation["responses"]["201"] = operation["responses"]["200"] | {"description": "Created."}
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": _content(route.takes, named)}
    if parameters := _parameters(route):
        operation["parameters"] = parameters
    return operation


def _operation_id(route: Route) -> str:
    """The method and the words of the path: `post_crawls_rules`."""
    words = [word for word in route.path.removeprefix("/v1").split("/") if word and not word.startswith("{")]
    one = ["one"] if route.path.endswith("}") else []
    return "_".join([route.method.lower(), *words, *one])


def _parameters(route: Route) -> list[dict[str, Any]]:
    name = {"type": "string", "minLength": 1, "maxLength": 200}
    found = [{"name": "crawl_id", "in": "path", "required": True, "schema": name}] if "{crawl_id}" in route.path else []
    return found + [{"name": key, "in": "query", "required": False, "schema": name} for key in route.query]


def _responses(gives: Any, named: dict[Any, Any], problems: tuple[int, ...]) -> dict[str, Any]:
    found = {"200": {"description": "Done.", "content": _content(gives, named)}}
    for status in problems:
        found[str(status)] = {"description": PROBLEMS[status], "content": _content(ErrorMessage, named)}
    return found


def _content(kind: Any, named: dict[Any, Any]) -> dict[str, Any]:
    """A body: lines, a message, or any object."""
    return {"application/x-ndjson" if kind is Lines else "application/json": {"schema": named[kind]}}
