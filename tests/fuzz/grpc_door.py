"""Calls of a gRPC service: messages by its descriptor with random fields, and bytes that are none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from tests.fuzz.doors import ANSWERS_WITHIN_S, spoilt
from tests.fuzz.values import TEXTS, URLS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from google.protobuf.descriptor import Descriptor, MethodDescriptor, ServiceDescriptor

DEEPEST, MOST_MEMBERS = 6, 3
STREAM_WITHIN_S = 0.5  # a stream may stay open for as long as its client wants
MOST_HEARD = 50
NUMBERS = (0, 1, -1, 2, 7, 200, 503, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1)
FLOATS = (0.0, 0.5, -1.0, 1e308, float("nan"), float("inf"), float("-inf"), 5e-324)
WIDTHS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31), FieldDescriptor.CPPTYPE_ENUM: (-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32), FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64),
}  # fmt: skip
FAULTS = (grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS)
METADATA = (("authorization", "Bearer x"), ("authorization", ""), ("x-bin", b"\x00\xff"), ("grpc-timeout", "1n"))


class GrpcDoor:
    """Every method of one service, over one channel."""

    def __init__(self, port: int, service: ServiceDescriptor, chance: Random) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._service, self._chance = service, chance

    def send(self) -> tuple[str, bytes]:
        """What came of one call, and what was sent."""
        method = self._chance.choice(self._service.methods)
        bodies = [self._body(method.input_type) for _ in range(self._chance.choice((0, 1, 1, 3, 20)))]
        if not method.client_streaming:
            bodies = (bodies or [b""])[:1]
        try:
            self._call(method, bodies)
            what = "OK"
        except grpc.RpcError as problem:
            what = _named(method, problem)
        return f"{self._service.name}: {what}", method.name.encode() + b" " + b" ".join(bodies)

    def _call(self, method: MethodDescriptor, bodies: list[bytes]) -> None:
        channel: Any = self._channel  # without a serializer bytes go as they are, of which its types know nothing
        path = f"/{self._service.full_name}/{method.name}"
        more: dict[str, Any] = {"metadata": [self._chance.choice(METADATA)]} if self._chance.random() < 0.03 else {}
        if not method.server_streaming:
            channel.unary_unary(path)(bodies[0], timeout=ANSWERS_WITHIN_S, **more)
        elif method.client_streaming:
            self._hear(channel.stream_stream(path)(iter(bodies), timeout=STREAM_WITHIN_S, **more))
        else:
            self._hear(channel.unary_stream(path)(bodies[0], timeout=STREAM_WITHIN_S, **more))

    def _hear(self, answers: Iterable[bytes]) -> None:
        """Some hang up in the middle."""
        most = MOST_HEARD if self._chance.random() < 0.9 else 1
        for number, _ in enumerate(answers):
            if number >= most:
                answers.cancel()  # type: ignore[attr-defined]  # it is a call, too
                return

    def _body(self, kind: Descriptor) -> bytes:
        if self._chance.random() < 0.05:
            return os.urandom(self._chance.choice((1, 10, 300, 70_000)))
        body: bytes = self._message(kind, 0).SerializeToString()
        return spoilt(body, self._chance) if self._chance.random() < 0.05 else body

    def _message(self, kind: Descriptor, depth: int) -> Any:
        made = GetMessageClass(kind)()
        for field in kind.fields:
            if depth < DEEPEST and self._chance.random() < 0.8:
                self._fill(made, field, depth)
        return made

    def _fill(self, made: Any, field: FieldDescriptor, depth: int) -> None:
        place, kind = getattr(made, field.name), field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            entry = self._message(kind, depth + 1)
            if kind.fields_by_name["value"].message_type is not None:
                place[entry.key].CopyFrom(entry.value)
            else:
                place[entry.key] = entry.value
        elif field.is_repeated:
            members = range(self._chance.randrange(MOST_MEMBERS + 1))
            place.extend([self._value(field, depth) for _ in members])
        elif kind is not None:
            place.CopyFrom(self._value(field, depth))
        else:
            setattr(made, field.name, self._value(field, depth))

    def _value(self, field: FieldDescriptor, depth: int) -> Any:
        chance, kind = self._chance, field.cpp_type
        if field.message_type is not None:
            return self._message(field.message_type, depth + 1)
        if kind == FieldDescriptor.CPPTYPE_STRING:
            if field.type == FieldDescriptor.TYPE_BYTES:
                return os.urandom(chance.randrange(30))
            return chance.choice(URLS) if "url" in field.name else chance.choice(TEXTS)
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        if kind in WIDTHS:
            least, end = WIDTHS[kind]
            return chance.choice([number for number in NUMBERS if least <= number < end])
        return chance.choice(FLOATS)


def _named(method: MethodDescriptor, problem: grpc.RpcError) -> str:
    code, details = problem.code(), problem.details() or ""
    if code in FAULTS or details.startswith("Unexpected "):  # as gRPC calls what our code has not caught
        return f"fault, {code.name} {details}"
    if code is not grpc.StatusCode.DEADLINE_EXCEEDED:
        return str(code.name)
    return "open" if method.server_streaming else "no answer"
