"""Reads the weights out of an ONNX file: the part of its format that is needed, which is a few tags.

Serving goes on learning from these weights, so they are needed as numbers; a runtime that only answers would not do.
An ONNX file is a protocol buffer: fields of a number and a kind, one behind the other. Here: Model.graph (7),
Graph.initializer (5), Tensor.dims (1), data_type (2), float_data (4), name (8) and raw_data (9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.predictors.tres.records import HIDDEN, WEIGHTS, X

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crawlguide.core.tables import F32

FIELD = "strategy.model"
MOST_BYTES = 1 << 20
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FLOAT = 1
LAYERS = ((X, HIDDEN[0]), HIDDEN, (HIDDEN[1], 1))


def weights_of(path: Path) -> F32:
    """All weights of the network in one column. One word for whatever is wrong: files of the server are its own."""
    try:
        return joined(tensors(read(path)))
    except (OSError, ValueError, IndexError, KeyError):
        shape = " → ".join(map(str, (X, *HIDDEN, 1)))
        raise MalformedRequest(f"{FIELD}: expected an ONNX file of a network {shape}", field=FIELD) from None


def read(path: Path) -> bytes:
    """A plain file that is not too large: no device, no pipe."""
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ValueError
    return path.read_bytes()


def joined(found: dict[str, F32]) -> F32:
    """`layers.0.weight` (outputs by inputs, as PyTorch names and writes it), `layers.0.bias`, and so on."""
    parts = []
    for number, (inputs, outputs) in enumerate(LAYERS):
        weight, bias = found[f"layers.{number}.weight"], found[f"layers.{number}.bias"]
        if weight.shape != (outputs, inputs) or bias.shape != (outputs,):
            raise ValueError
        parts += [weight.T.reshape(-1), bias]
    column = np.concatenate(parts)
    if len(column) != WEIGHTS or not np.isfinite(column).all():
        raise ValueError
    return column


def tensors(data: bytes) -> dict[str, F32]:
    """The constants of a model, by name."""
    graphs = [content for number, content in fields(data) if number == 7 and isinstance(content, bytes)]
    constants = [content for number, content in fields(graphs[0]) if number == 5 and isinstance(content, bytes)]
    return dict(map(tensor, constants))


def tensor(data: bytes) -> tuple[str, F32]:
    name, dims, kind, floats = "", list[int](), 0, b""
    for number, content in fields(data):
        if isinstance(content, int):
            dims += [content] if number == 1 else []
            kind = content if number == 2 else kind
        elif number == 1:
            dims += unpacked(content)
        elif number == 8:
            name = content.decode()
        elif number in (4, 9):
            floats += content
    if kind != FLOAT:
        return name, np.zeros(0, np.float32)
    return name, np.frombuffer(floats, "<f4").astype(np.float32).reshape(dims)


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        length, at = varint(data, at) if kind == BYTES else ({FIXED64: 8, FIXED32: 4}[kind], at)
        if at + length > len(data):
            raise ValueError
        yield tag >> 3, data[at : at + length]
        at += length


def unpacked(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        if data[at] < 128:
            return value, at + 1
        at, shift = at + 1, shift + 7
        if shift > 63:
            raise ValueError
