"""The endpoints for people, out of the OpenAPI document: for the page `/docs` and for docs/api.md."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from crawlguide.gateway import openapi

KINDS = {
    "string": "text", "integer": "an integer", "number": "a number", "boolean": "true or false", "null": "null",
    "object": "an object",
}  # fmt: skip


class Field(NamedTuple):
    """`kind` is in words; `message` names the one it holds, if any."""

    name: str
    kind: str
    message: str | None
    needed: bool
    default: str | None


class Message(NamedTuple):
    name: str
    about: str
    fields: list[Field]


class Endpoint(NamedTuple):
    method: str
    path: str
    summary: str
    query: list[str]
    takes: Field | None
    gives: Field | None


class Reference(NamedTuple):
    version: str
    endpoints: list[Endpoint]
    messages: list[Message]


@lru_cache(maxsize=1)
def reference() -> Reference:
    document = openapi.document()
    endpoints = [
        _endpoint(method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    messages = [_message(name, schema) for name, schema in document["components"]["schemas"].items()]
    return Reference(document["info"]["version"], endpoints, messages)


def _endpoint(method: str, path: str, operation: dict[str, Any]) -> Endpoint:
    query = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    body, answer = operation.get("requestBody", {}), operation["responses"]["200"]
    return Endpoint(method, path, operation["summary"], query, _content(body), _content(answer))


def _content(part: dict[str, Any]) -> Field | None:
    """What a body holds; lines and text have no fields."""
    for media, content in part.get("content", {}).items():
        if media == "application/json":
            return _field("", content["schema"], needed=True)
        kind = "lines of JSON" if media == "application/x-ndjson" else "text"
        return Field("", kind, None, needed=True, default=None)
    return None


def _message(name: str, schema: dict[str, Any]) -> Message:
    needed = schema.get("required", ())
    fields = [_field(key, part, key in needed) for key, part in schema.get("properties", {}).items()]
    return Message(name, schema.get("description", ""), fields)


def _field(name: str, schema: dict[str, Any], needed: bool) -> Field:
    default = schema.get("default")
    plain = None if default is None or isinstance(default, dict) else json.dumps(default, ensure_ascii=False)
    return Field(name, _words(schema), _named(schema), needed, plain)


def _words(schema: dict[str, Any]) -> str:
    """A type as one would say it."""
    if "const" in schema:
        return f'"{schema["const"]}"'
    if "description" in schema:
        return str(schema["description"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_words(one) for one in schema["anyOf"] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"a list of {_words(schema.get('items', {}))}"
    return KINDS.get(str(schema.get("type")), "anything")


def _named(schema: dict[str, Any]) -> str | None:
    """The message that a schema holds, by itself, as one of several, in a list or under any name."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    inner = [*schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties")]
    return next((name for one in inner if isinstance(one, dict) and (name := _named(one))), None)
