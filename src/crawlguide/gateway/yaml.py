"""Messages in YAML, for people who write them by hand: read into JSON, and checked from there as all others.

Only events are read and written, one at a time: a tree of them, as the library would make, costs a crash where it is
deep and seconds where it is wide.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import orjson
import yaml
from yaml import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from crawlguide.core.aside import aside
from crawlguide.core.errors import MalformedRequest, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

MEDIA_TYPES = ("application/yaml", "application/x-yaml", "text/yaml")
JSON_TYPES = ("application/json", "application/*", "*/*")  # the first that an Accept names says what JSON is worth
LONGEST_ACCEPT = 1_000
LEAST_QUALITY = 0.001
QUALITY = re.compile(r"(0(\.\d{0,3})?|1(\.0{0,3})?)")
MOST_BYTES = 1 << 20  # it is read by hand-made rules, so it takes longer than JSON
MOST_EVENTS = 100_000  # of which there are two for each key
MOST_DIRECTIVES = 100  # the parser compares each with all before, and lets nobody else work meanwhile
DEEPEST = 32
LONGEST_NUMBER = 400  # characters; what is longer is a text
SHORT_BYTES = 4_096  # takes some 10 ms at most; what is longer is read and written in a thread
TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
KINDS = {
    first: [(tag.rpartition(":")[2], pattern.match) for tag, pattern in resolvers]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


async def read(body: bytes) -> bytes:
    """A message in YAML as JSON. Raises `MalformedRequest` or `TooLarge`."""
    return to_json(body) if len(body) <= SHORT_BYTES else await aside(to_json, body)


async def written(body: bytes) -> bytes:
    """A message of ours in YAML."""
    return from_json(body) if len(body) <= SHORT_BYTES else await aside(from_json, body)


# in


def to_json(body: bytes) -> bytes:
    if len(body) > MOST_BYTES:
        raise TooLarge(f"body: expected at most {MOST_BYTES} bytes of YAML, got {len(body)}; send JSON")
    if body.replace(b"\0", b"").count(b"%TAG") > MOST_DIRECTIVES:  # without the zeros UTF-16 is as UTF-8 here
        raise MalformedRequest(f"body: expected plain YAML, got more than {MOST_DIRECTIVES} times %TAG")
    try:
        return orjson.dumps(_document(_counted(yaml.parse(body, yaml.CSafeLoader))))
    except (yaml.YAMLError, UnicodeError, ValueError) as wrong:
        raise MalformedRequest(f"body: not YAML: {' '.join(str(wrong).split())[:200]}") from None
    except orjson.JSONEncodeError as wrong:
        raise MalformedRequest(f"body: expected what JSON can say, got something else: {wrong}") from None


def _counted(events: Iterator[Any]) -> Iterator[Any]:
    for count, event in enumerate(events):
        if count == MOST_EVENTS:
            raise TooLarge(f"body: expected at most {MOST_EVENTS} events of YAML, got more; send JSON")
        yield event


def _document(events: Iterator[Any]) -> Any:
    """The value of the one document that there is."""
    found = None
    for number, event in enumerate(event for event in events if isinstance(event, DocumentStartEvent)):
        if number:
            raise MalformedRequest(f"body: expected one document, got another {_place(event)}")
        found = _value(next(events), events, 0)
    return found


def _value(event: Any, events: Iterator[Any], depth: int) -> Any:
    """What begins with this event; of a list or a mapping all is taken from `events`."""
    if isinstance(event, AliasEvent) or event.anchor is not None:
        raise MalformedRequest(f"body: expected plain YAML, got an anchor or an alias {_place(event)}")
    if event.tag is not None and not (isinstance(event, ScalarEvent) and event.tag in TEXT_TAGS):
        raise MalformedRequest(f"body: expected plain YAML, got the tag {event.tag[:80]!r} {_place(event)}")
    if isinstance(event, ScalarEvent):
        return _scalar(event)
    if depth == DEEPEST:
        raise MalformedRequest(f"body: expected at most {DEEPEST} levels, got more {_place(event)}")
    if isinstance(event, SequenceStartEvent):
        return [_value(one, events, depth + 1) for one in _until(SequenceEndEvent, events)]
    return _mapping(events, depth)


def _mapping(events: Iterator[Any], depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in _until(MappingEndEvent, events):
        key = _value(event, events, depth + 1)
        if not isinstance(key, str):
            raise MalformedRequest(f"body: expected keys that are words, got {str(key)[:40]!r} {_place(event)}")
        if key in found:
            raise MalformedRequest(f"body: the key {key[:40]!r} comes twice, again {_place(event)}")
        found[key] = _value(next(events), events, depth + 1)
    return found


def _until(end: type[Any], events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _scalar(event: Any) -> Any:
    """By the rules of YAML 1.1 as far as JSON has the same: no dates, and no numbers to the base of 60."""
    text: str = event.value
    kind = _kind(text) if event.implicit[0] and event.tag is None else "str"
    if kind == "merge":
        raise MalformedRequest(f"body: expected plain YAML, got a merge key {_place(event)}")
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("yes", "true", "on")
    if kind in ("int", "float") and ":" not in text:
        return _integer(text) if kind == "int" else _number(text, event)
    return text


def _kind(text: str) -> str:
    """What a text without quotes is taken for."""
    resolvers = KINDS.get(text[:1], ()) if len(text) <= LONGEST_NUMBER else ()
    return next((kind for kind, matches in resolvers if matches(text)), "str")


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    bare = digits.lstrip("+-")
    return int(digits, 8 if bare.isdigit() and bare.startswith("0") else 0)


def _number(text: str, event: Any) -> float:
    """Infinity and NaN begin with a dot, which Python does not know."""
    number = float(text.replace("_", "")) if text[-1].isdigit() or text[-1] in "._" else math.inf
    if not math.isfinite(number):
        raise MalformedRequest(f"body: expected finite numbers, got {text[:40]!r} {_place(event)}")
    return number


def _place(event: Any) -> str:
    return f"in line {event.start_mark.line + 1}"


# out


def from_json(body: bytes) -> bytes:
    text: str = yaml.emit(_document_of(orjson.loads(body)), Dumper=yaml.CSafeDumper, allow_unicode=True)
    return text.encode()


def _document_of(value: Any) -> Iterator[Any]:
    yield StreamStartEvent()
    yield DocumentStartEvent(explicit=False)
    yield from _events(value)
    yield DocumentEndEvent(explicit=False)
    yield StreamEndEvent()


def _events(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield MappingStartEvent(None, None, implicit=True, flow_style=False)
        for key, inner in value.items():
            yield _text(key)
            yield from _events(inner)
        yield MappingEndEvent()
    elif isinstance(value, list):
        yield SequenceStartEvent(None, None, implicit=True, flow_style=False)
        for inner in value:
            yield from _events(inner)
        yield SequenceEndEvent()
    else:
        yield _text(value) if isinstance(value, str) else ScalarEvent(None, None, (True, False), _shown(value))


def _text(text: str) -> Any:
    """Between quotes where it would be taken for something else."""
    return ScalarEvent(None, None, (_kind(text) == "str", True), text)


def _shown(value: float | None) -> str:
    """As JSON shows it, but for 1e17, which is 1.0e17 in YAML."""
    text = orjson.dumps(value).decode()
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


# which language


def sent(content_type: str) -> bool:
    """Does a Content-Type say that the body is YAML?"""
    return _media_type(content_type) in MEDIA_TYPES


def wanted(accept: str) -> bool:
    """Does an Accept prefer YAML to JSON? Where it says nothing of both, JSON it is."""
    if "yaml" not in accept.lower():
        return False
    qualities: dict[str, float] = {}
    for one in _split(",", accept[:LONGEST_ACCEPT]):
        qualities[_media_type(one)] = max(_quality(one), qualities.get(_media_type(one), 0.0))
    json = next((qualities[kind] for kind in JSON_TYPES if kind in qualities), 0.0)
    return max((qualities.get(kind, 0.0) for kind in MEDIA_TYPES), default=0.0) >= max(json, LEAST_QUALITY)


def _media_type(header: str) -> str:
    """Without its parameters, of which it need not be known what they say."""
    return header.partition(";")[0].strip().lower()


def _quality(media_range: str) -> float:
    """1, unless a parameter says less; 0 where it says what nobody understands."""
    for parameter in _split(";", media_range)[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            return float(value) if QUALITY.fullmatch(value.strip()) else 0.0
    return 1.0


def _split(separator: str, text: str) -> list[str]:
    """The parts between separators that do not stand between quotes, of which the last need not be closed."""
    return re.findall(rf'(?:[^{separator}"]|"(?:\\.|[^"\\])*"?)+', text)
