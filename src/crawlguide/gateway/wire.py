"""Bytes to messages and back, with errors that name the field, what was expected and what came."""

from __future__ import annotations

import difflib
import gc
import re
from itertools import islice
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import orjson

from crawlguide.core.errors import CrawlGuideError, MalformedRequest
from crawlguide.core.messages import ErrorBody, ErrorMessage
from crawlguide.core.type_words import in_words
from crawlguide.gateway import packed, strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Message = TypeVar("Message")
encode = msgspec.json.Encoder().encode
UNDISTURBED_BYTES = 65_536  # of a message that the garbage collector may look at meanwhile
EXPLAINED_BYTES = 1024 * 1024  # of a message that is read again to say what came: it keeps others waiting
LONGEST_NAME = 80
MOST_LOOKED_AT = 10_000
MOST_UNPACKED = 200_000
UNSEEN: Any = object()  # stands for a value that was not looked for any further
_STEP = re.compile(r"\[\.\.\.\]|\[[0-9]{1,9}\]|\w+")
_PLACE = re.compile(rf" - at (?P<key>`?key`? in )?`\$?(?P<path>(?:\.?(?:{_STEP.pattern}))*)`\Z")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)


class Format(NamedTuple):
    """A way to write messages as bytes: what parsers let pass and we do not, a message of a type, a value of any."""

    name: str
    object_words: str  # what a message is in it
    check: Callable[[bytes], object]
    decode: Callable[..., Any]
    decode_any: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


def _unpacked(body: bytes) -> Any:
    """Four MiB can hold four million lists, which take a hundred times the room: so many are not looked at."""
    return UNSEEN if packed.check(body) > MOST_UNPACKED else msgspec.msgpack.decode(body)


JSON = Format("JSON", "a JSON object", strict.check, msgspec.json.decode, orjson.loads, encode)
MESSAGE_PACK = Format(
    "MessagePack",
    "a MessagePack map",
    packed.check,
    msgspec.msgpack.decode,
    _unpacked,
    msgspec.msgpack.Encoder().encode,
)
UNREADABLE = (msgspec.DecodeError, orjson.JSONDecodeError, UnicodeDecodeError, RecursionError)


def decode(body: bytes, kind: type[Message], form: Format = JSON) -> Message:
    """The message in a body, or `MalformedRequest`."""
    if not body:
        raise MalformedRequest(f"body: expected {form.object_words}, got nothing")
    form.check(body)
    try:
        with Undisturbed(len(body)):
            return form.decode(body, type=kind)  # type: ignore[no-any-return]  # of the type it is given
    except msgspec.ValidationError as wrong:
        raise _explained(str(wrong), _read(body, form), kind) from None
    except UNREADABLE as wrong:
        raise MalformedRequest(f"body: not {form.name}: {wrong}") from None


class Undisturbed:
    """The garbage collector would look at all parts of a long message again and again, and none of them is garbage."""

    def __init__(self, size: int = UNDISTURBED_BYTES + 1) -> None:
        self._rests = size > UNDISTURBED_BYTES and gc.isenabled()

    def __enter__(self) -> None:
        if self._rests:
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._rests:
            gc.enable()


def convert(given: Any, kind: type[Message]) -> Message:
    """The message in a plain dictionary, checked as strictly as one that came over the wire."""
    if isinstance(given, kind):
        return given
    try:
        body = orjson.dumps(given)
    except orjson.JSONEncodeError as wrong:
        raise MalformedRequest(f"expected what JSON can say, got something else: {wrong}") from None
    return decode(body, kind)


def checked(given: Any, kind: type[Message]) -> Message:
    """The message in plain values that came over the wire in another encoding."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as wrong:
        raise _explained(str(wrong), given, kind) from None


def error(problem: CrawlGuideError) -> bytes:
    return encode(error_message(problem))


def error_message(problem: CrawlGuideError) -> ErrorMessage:
    """The one shape of an error on every transport."""
    field = None if problem.field is None else _whole(problem.field)
    return ErrorMessage(ErrorBody(problem.code, _whole(problem.message), field, problem.retry_after_s))


def _whole(text: str) -> str:
    """What came from outside may hold halves of letters, and an error must never fail to be said."""
    return text.encode(errors="replace").decode()


def _read(body: bytes, form: Format) -> Any:
    if len(body) > EXPLAINED_BYTES:
        return UNSEEN
    try:
        with Undisturbed(len(body)):
            return form.decode_any(body)
    except UNREADABLE as wrong:
        raise MalformedRequest(f"body: not {form.name}: {wrong}") from None


def _explained(message: str, given: Any, kind: Any) -> MalformedRequest:
    """msgspec says what is wrong and where; we add what was expected in words, and what came."""
    place = None if _is_named_so(message, given) else _PLACE.search(message)
    path = place["path"].lstrip(".") if place else ""
    text = message[: place.start()] if place else message
    value, expected = _at(given, kind, path)
    if named := _MISSING.match(text):
        field = _joined(path, named["name"])
        near = difflib.get_close_matches(named["name"], list(value)[:100] if isinstance(value, dict) else (), 1)
        hint = f"; did you mean it by {near[0][:80]!r}?" if near else ""
        return MalformedRequest(f"{field}: required, but missing{hint}", field=field)
    if named := _UNKNOWN.match(text):
        field = _joined(path, named["name"][:LONGEST_NAME])
        known = ", ".join(sorted(_hints(plain_type(expected))))
        return MalformedRequest(f"{field}: unknown field; expected one of {known}", field=field)
    if place and place["key"]:
        expected = _arguments(plain_type(expected))[0]
        value = _misfit(value, expected) if isinstance(value, dict) else UNSEEN
    return MalformedRequest(f"{path or 'body'}: expected {in_words(expected)}, got {_shown(value)}", field=path or None)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_named_so(message: str, given: Any) -> bool:
    """Whether what looks like a place is the end of the name of a field that we do not know: it may hold anything."""
    named = _UNKNOWN.fullmatch(message)
    return named is not None and isinstance(given, dict) and named["name"] in given


def _at(value: Any, kind: Any, path: str) -> tuple[Any, Any]:
    """What came at a path, and the type that was expected there."""
    for step in _STEP.findall(path):
        value, kind = _below(value, plain_type(kind), step)
    return value, kind


def _below(value: Any, kind: Any, step: str) -> tuple[Any, Any]:
    if step == "[...]":
        kind = _arguments(kind)[-1]
        return (_misfit(value.values(), kind) if isinstance(value, dict) else UNSEEN), kind
    if step.startswith("["):
        number = int(step[1:-1])
        return (value[number] if isinstance(value, list) and number < len(value) else UNSEEN), _arguments(kind)[0]
    return (value.get(step) if isinstance(value, dict) else UNSEEN), _hints(kind).get(step, Any)


def _arguments(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) or (Any,)


def _misfit(values: Iterable[Any], kind: Any) -> Any:
    """The first value that is not of a type: of the entries of an object msgspec does not say which.

    Of very many only the first are looked at.
    """
    for value in islice(values, MOST_LOOKED_AT):
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return value
    return UNSEEN


def plain_type(kind: Any) -> Any:
    """A type without its annotations; of several the message, since only that has fields."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) not in (Union, UnionType):
        return kind
    options = [option for option in get_args(kind) if option is not type(None)]
    structs = [option for option in options if isinstance(option, type) and issubclass(option, msgspec.Struct)]
    return plain_type((structs or options)[0])


def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True) if isinstance(kind, type) else {}


def _shown(value: Any) -> str:
    text = "something else" if value is UNSEEN else orjson.dumps(value).decode()
    return text if len(text) <= 80 else text[:80] + "…"
