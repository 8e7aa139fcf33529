"""The network 11 → 30 → 15 → 1 with LeakyReLU, one step of Adam, and its weights read from an ONNX file.

It is so small that plain loops over one column of weights take no longer than a call of another library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.kernels import allocating_part, f32s, f64s, kernel, matrix_f32, nothing, one_i64, part
from crawlguide.strategies.shared.draws import uniform
from crawlguide.strategies.tres.records import HIDDEN, WEIGHTS, X

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crawlguide.core.tables import F32

FIRST, SECOND = HIDDEN
W1 = 0  # where the weights of each layer begin
B1 = W1 + X * FIRST
W2 = B1 + FIRST
B2 = W2 + FIRST * SECOND
W3 = B2 + SECOND
B3 = W3 + SECOND
SLOPE = np.float32(0.1)
BETA, BETA_SQUARED, SMALL = 0.9, 0.999, 1e-8
CLIP = np.float32(1.0)
ZERO = np.float32(0.0)


@kernel(nothing(f32s, one_i64))
def randomise(weights, seed):  # type: ignore[no-untyped-def]
    """He's normal weights; no bias."""
    weights[:] = ZERO
    for start, end, inputs in ((W1, B1, X), (W2, B2, FIRST), (W3, B3, SECOND)):
        for place in range(start, end):
            first, second = uniform(seed, 2 * place), uniform(seed, 2 * place + 1)
            normal = np.sqrt(-2.0 * np.log(1.0 - first)) * np.cos(2.0 * np.pi * second)
            weights[place] = normal * np.sqrt(2.0 / inputs)


@allocating_part
def layers_of(w):  # type: ignore[no-untyped-def]
    """Views of the column, layer by layer: loops over them need no sums of places, and run at once over many units."""
    first, second = w[W1:B1].reshape(X, FIRST), w[W2:B2].reshape(FIRST, SECOND)
    return first, w[B1:W2], second, w[B2:W3], w[W3:B3], w[B3:]


@part
def forward(layers, x, first, second):  # type: ignore[no-untyped-def]
    """The value of one row; leaves the outputs of both layers in `first` and `second`."""
    w1, b1, w2, b2, w3, b3 = layers
    for unit in range(FIRST):
        first[unit] = b1[unit]
    for column in range(X):
        signal = x[column]
        for unit in range(FIRST):
            first[unit] += signal * w1[column, unit]
    for unit in range(SECOND):
        second[unit] = b2[unit]
    for inner in range(FIRST):
        signal = first[inner] if first[inner] > ZERO else SLOPE * first[inner]
        first[inner] = signal
        for unit in range(SECOND):
            second[unit] += signal * w2[inner, unit]
    value = b3[0]
    for inner in range(SECOND):
        signal = second[inner] if second[inner] > ZERO else SLOPE * second[inner]
        second[inner] = signal
        value += signal * w3[inner]
    return value


@kernel(nothing(f32s, matrix_f32, f64s))
def values(w, x, out):  # type: ignore[no-untyped-def]
    first, second, layers = np.empty(FIRST, np.float32), np.empty(SECOND, np.float32), layers_of(w)
    for row in range(len(x)):
        out[row] = forward(layers, x[row], first, second)


@part
def backward(layers, slopes, x, first, second, flow, back):  # type: ignore[no-untyped-def]
    """Adds the gradient of one row to `slopes`; `flow` is how the loss changes with the row's value."""
    _, _, w2, _, w3, _ = layers
    s1, c1, s2, c2, s3, c3 = slopes
    c3[0] += flow
    for inner in range(FIRST):
        back[inner] = ZERO
    for unit in range(SECOND):
        s3[unit] += flow * second[unit]
        passed = flow * w3[unit] if second[unit] > ZERO else flow * w3[unit] * SLOPE
        c2[unit] += passed
        for inner in range(FIRST):
            s2[inner, unit] += passed * first[inner]
            back[inner] += passed * w2[inner, unit]
    for inner in range(FIRST):
        back[inner] = back[inner] if first[inner] > ZERO else SLOPE * back[inner]
        c1[inner] += back[inner]
    for column in range(X):
        signal = x[column]
        for inner in range(FIRST):
            s1[column, inner] += signal * back[inner]


@part
def adam(w, mean, square, slopes, rate, step):  # type: ignore[no-untyped-def]
    """Slopes are cut to ±1; `step` counts from 1."""
    mean_bias, square_bias = 1.0 - BETA**step, 1.0 - BETA_SQUARED**step
    for place in range(WEIGHTS):
        slope = min(max(slopes[place], -CLIP), CLIP)
        mean[place] = BETA * mean[place] + (1.0 - BETA) * slope
        square[place] = BETA_SQUARED * square[place] + (1.0 - BETA_SQUARED) * slope * slope
        w[place] -= rate * (mean[place] / mean_bias) / (np.sqrt(square[place] / square_bias) + SMALL)


# The weights are read from an ONNX file without an ONNX runtime: learning goes on from them, so they are needed as
# numbers. The file is a protocol buffer: fields of a number and a kind, one behind the other. Needed are Model.graph
# (7), Graph.initializer (5), Tensor.dims (1), data_type (2), float_data (4), name (8) and raw_data (9).

FIELD = "strategy.model"
MOST_BYTES = 1 << 20
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
FLOAT = 1
LAYERS = ((X, HIDDEN[0]), HIDDEN, (HIDDEN[1], 1))


def weights_of(path: Path) -> F32:
    """All weights of the network in one column. Errors do not say what is wrong: the server's files are private."""
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
