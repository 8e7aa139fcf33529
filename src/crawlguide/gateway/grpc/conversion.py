"""Between messages of protobuf and plain values. Both sides have the same fields, so the .proto alone says how.

Nothing heavy is imported: clients use it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from crawlguide.core import messages
from crawlguide.core.errors import MalformedRequest
from crawlguide.gateway.grpc.guide_pb2 import Json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

Step = Callable[[Any], Any]
Texts = Callable[[bytes, int], Any]  # what reads a text of JSON that stands so many levels deep
JSON = Json.DESCRIPTOR
_PLACE = re.compile(r",? at byte \d+$")  # of the text with what stands around it


class _Wrong(Exception):
    """Caught here alone: on its way out it learns where it stands."""

    def __init__(self, words: str, path: str = "") -> None:
        super().__init__(words)
        self.words, self.path = words, path

    def within(self, name: str) -> _Wrong:
        dot = "." if self.path and not self.path.startswith("[") else ""
        return _Wrong(self.words, f"{name}{dot}{self.path}")


# out of protobuf


def read_request(message: Message, texts: Texts) -> dict[str, Any]:
    """The fields that were said, as JSON would have them. Raises `MalformedRequest`."""
    return _read(_reader(message.DESCRIPTOR, texts, False, 1), message)


def read_answer(message: Message) -> dict[str, Any]:
    """All fields, as JSON would have them: what is absent is null, unless JSON leaves it out as well."""
    return _read(_reader(message.DESCRIPTOR, _text, True, 1), message)


def _read(reader: Step, message: Message) -> dict[str, Any]:
    try:
        found: dict[str, Any] = reader(message)
    except _Wrong as wrong:
        raise MalformedRequest(f"{wrong.path}: {wrong.words}", field=wrong.path) from None
    return found


@cache
def _reader(kind: Descriptor, texts: Texts, complete: bool, level: int) -> Step:
    """What reads one kind of message."""
    steps = {field.name: step for field in kind.fields if (step := _reading(field, texts, complete, level))}
    absent = _absent(kind) if complete else {}
    lists = [(field.name, dict if _is_map(field) else list) for field in kind.fields if field.is_repeated and complete]

    def read(message: Message) -> dict[str, Any]:
        values, name = dict(absent), ""
        for name, make in lists:
            values[name] = make()
        try:
            for field, value in message.ListFields():
                name = field.name
                step = steps.get(name)
                values[name] = value if step is None else step(value)
        except _Wrong as wrong:
            raise wrong.within(name) from None
        return values

    return read


def _reading(field: FieldDescriptor, texts: Texts, complete: bool, level: int) -> Step | None:
    if _is_map(field):
        each = _one(_map_value(field), texts, complete, level + 1)
        return dict if each is None else partial(_each_value, each)
    each = _one(field, texts, complete, level + 2 if field.is_repeated else level + 1)
    if not field.is_repeated:
        return each
    return list if each is None else partial(_all_of, each)


def _one(field: FieldDescriptor, texts: Texts, complete: bool, level: int) -> Step | None:
    """How one value is read; None: as it is."""
    if field.message_type is JSON:
        return lambda value: texts(value.text.encode(), level - 1)
    if field.message_type is not None:
        return _reader(field.message_type, texts, complete, level)
    return _finite if field.type == FieldDescriptor.TYPE_DOUBLE else None


def _all_of(each: Step, values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    try:
        for value in values:
            found.append(each(value))  # noqa: PERF401 - how many there are says which one was wrong
    except _Wrong as wrong:
        raise wrong.within(f"[{len(found)}]") from None
    return found


def _finite(value: float) -> float:
    """JSON has no other numbers."""
    if value - value != 0.0:
        raise _Wrong(f"expected a number, got {value}")
    return value


def strictly(check: Callable[[bytes], None]) -> Texts:
    """Texts of a caller, as strictly as a body of JSON: `check` sees each as deep as it stands in its message."""

    def read(text: bytes, level: int) -> Any:
        try:
            check(b"[" * level + text + b"]" * level)
            return msgspec.json.decode(text)
        except MalformedRequest as wrong:
            raise _Wrong(_PLACE.sub("", wrong.message.removeprefix("body: "))) from None
        except (msgspec.DecodeError, RecursionError) as wrong:
            raise _Wrong(f"expected JSON as text: {wrong}") from None

    return read


def _text(text: bytes, level: int) -> Any:  # noqa: ARG001 - a server is believed
    return msgspec.json.decode(text)


def _absent(kind: Descriptor) -> dict[str, Any]:
    """What JSON says of fields that are absent here."""
    said = {field.name: None if field.has_presence else field.default_value for field in kind.fields}
    for name in _left_out(getattr(messages, kind.name, None)):
        del said[name]
    return said


def _left_out(ours: Any) -> list[str]:
    """The fields that JSON leaves out rather than saying null."""
    if ours is None:
        return []
    if ours.__struct_config__.omit_defaults:
        return list(ours.__struct_fields__[-len(ours.__struct_defaults__) :])
    return [name for name, hint in get_type_hints(ours).items() if UnsetType in get_args(hint)]


# into protobuf


def written(kind: Any, message: Any) -> dict[str, Any]:
    """What makes a message of protobuf out of one of ours: `Advice(**written(Advice.DESCRIPTOR, advice))`."""
    found: dict[str, Any] = _writer(kind)(message)
    return found


@cache
def _writer(kind: Descriptor) -> Step:
    steps = [(field.name, _writing(field)) for field in kind.fields if field.has_presence or field.message_type]

    if not steps:
        return asdict

    def write(message: Any) -> dict[str, Any]:
        values = asdict(message)
        for name, step in steps:
            value = values.get(name)
            if value is UNSET or value is None:
                values.pop(name, None)
            elif step is not None:
                values[name] = step(value)
        return values

    return write


def _writing(field: FieldDescriptor) -> Step | None:
    if _is_map(field):
        value = _map_value(field).message_type
        return None if value is None else partial(_each_value, _writer(value))
    if field.message_type is None:
        return None
    each = json_text if field.message_type is JSON else _writer(field.message_type)
    return (lambda values: [each(value) for value in values]) if field.is_repeated else each


def json_text(value: Any) -> Mapping[str, str]:
    """The fields of `Json`."""
    return {"text": msgspec.json.encode(value).decode()}


def _each_value(each: Step, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: each(one) for key, one in values.items()}


def _map_value(field: FieldDescriptor) -> FieldDescriptor:
    kind: Any = field.message_type
    found: FieldDescriptor = kind.fields_by_name["value"]
    return found


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
