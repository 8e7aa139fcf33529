"""Messages in YAML, for people who write them by hand: read into JSON, and checked from there as all others."""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from crawlguide.core.errors import MalformedRequest, TooLarge

MEDIA_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")
MOST_BYTES = 1 << 20  # it is read by hand-made rules, so it takes longer than JSON
DEEPEST = 32


class Loader(yaml.CSafeLoader):
    """YAML that means the same in JSON: no anchors, no tags of its own, no dates, no key twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if not isinstance(key, str):
                raise MalformedRequest(f"body: expected keys that are words, got {str(key)[:40]!r}")
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise MalformedRequest(f"body: the key {min(twice)[:40]!r} comes twice")
        return super().construct_mapping(node, deep)


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":merge"))]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def to_json(body: bytes) -> bytes:
    """The same message as JSON."""
    if len(body) > MOST_BYTES:
        raise TooLarge(f"body: expected at most {MOST_BYTES} bytes of YAML, got {len(body)}; send JSON")
    try:
        if any(getattr(event, "anchor", None) for event in yaml.parse(body, yaml.CSafeLoader)):
            raise MalformedRequest("body: expected plain YAML, got an anchor or an alias")
        read = yaml.load(body, Loader)  # noqa: S506 - a safe loader, made stricter
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as wrong:
        raise MalformedRequest(f"body: not YAML: {' '.join(str(wrong).split())[:200]}") from None
    _check(read, 0)
    try:
        return orjson.dumps(read)
    except orjson.JSONEncodeError as wrong:
        raise MalformedRequest(f"body: expected what JSON can say, got something else: {wrong}") from None


def _check(value: Any, depth: int) -> None:
    """Nothing deeper than JSON may be, and no number that JSON does not know."""
    if depth > DEEPEST:
        raise MalformedRequest(f"body: expected at most {DEEPEST} levels, got more")
    if isinstance(value, float) and value - value != 0.0:
        raise MalformedRequest("body: expected finite numbers, got NaN or infinity")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check(inner, depth + 1)


def from_json(body: bytes) -> bytes:
    """A message of ours in YAML."""
    text: str = yaml.dump(orjson.loads(body), Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text.encode()


def is_yaml(header: str) -> bool:
    """Does a Content-Type or an Accept ask for YAML?"""
    return any(part.split(";")[0].strip().lower() in MEDIA_TYPES for part in header.split(","))
