"""The model of risk as an ONNX file, for runtimes other than ours. Needs the extra `train`.

    risk = 1 / (1 + exp(−(slope · (bias + scale · Σ weight[feature] · amount) + offset)))

`feature` and `amount` are matrices with a row for each URL, as `inputs` makes them; what is over in a row has the
amount 0. The weights stay bytes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.errors import ConfigError
from crawlguide.policy.risk import kernels
from crawlguide.policy.risk.forms import formed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crawlguide.core.tables import F32, I64
    from crawlguide.policy.risk.model import Model

OPSET, FORMAT = 17, 8


def inputs(urls: Sequence[str]) -> tuple[I64, F32]:
    """The features of canonical URLs and how much each counts."""
    text, seams = formed(urls)
    room = len(urls) * kernels.MOST
    index, value, ends = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(len(urls), np.int64)
    kernels.extract(text, seams, index, value, ends)  # type: ignore[no-untyped-call]
    starts = np.concatenate([[0], ends[:-1]])
    width = int((ends - starts).max(initial=1))
    feature, amount = np.zeros((len(urls), width), np.int64), np.zeros((len(urls), width), np.float32)
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        feature[row, : end - start], amount[row, : end - start] = index[start:end], value[start:end]
    return feature, amount


def export(model: Model, path: Path) -> None:
    """Any number of URLs with any number of features in, the risk of each out."""
    try:
        onnx: Any = import_module("onnx")
    except ImportError:
        raise ConfigError("writing ONNX needs onnx: pip install 'crawlguide[train]'") from None
    made, numbers, kind = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    factor = np.array(model.slope * model.scale, np.float32)
    offset = np.array(model.slope * model.bias + model.offset, np.float32)
    constants = {"weights": model.weights, "factor": factor, "offset": offset, "along": np.array([1], np.int64)}
    steps: tuple[tuple[str, list[str], str, dict[str, int]], ...] = (
        ("Gather", ["weights", "feature"], "bytes", {}),
        ("Cast", ["bytes"], "weight", {"to": kind.FLOAT}),
        ("Mul", ["weight", "amount"], "share", {}),
        ("ReduceSum", ["share", "along"], "sum", {"keepdims": 0}),
        ("Mul", ["sum", "factor"], "slope", {}),
        ("Add", ["slope", "offset"], "odds", {}),
        ("Sigmoid", ["odds"], "risk", {}),
    )
    graph = made.make_graph(
        [made.make_node(name, given, [result], **options) for name, given, result, options in steps],
        "risk",
        [
            made.make_tensor_value_info("feature", kind.INT64, ["urls", "features"]),
            made.make_tensor_value_info("amount", kind.FLOAT, ["urls", "features"]),
        ],
        [made.make_tensor_value_info("risk", kind.FLOAT, ["urls"])],
        [numbers.from_array(values, name) for name, values in constants.items()],
    )
    known = made.make_model(graph, opset_imports=[made.make_opsetid("", OPSET)], ir_version=FORMAT)
    onnx.checker.check_model(known)
    path.write_bytes(known.SerializeToString())
