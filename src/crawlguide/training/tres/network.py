"""The same network in PyTorch, and how it becomes an ONNX file. Needs the extra `train`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from crawlguide.predictors.tres.records import HIDDEN, X

if TYPE_CHECKING:
    from pathlib import Path

SLOPE = 0.1


class Network(nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        sizes = ((X, HIDDEN[0]), HIDDEN, (HIDDEN[1], 1))
        self.layers = nn.ModuleList(nn.Linear(inputs, outputs) for inputs, outputs in sizes)
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, last = self.layers
        x = nn.functional.leaky_relu(first(x), SLOPE)
        x = nn.functional.leaky_relu(second(x), SLOPE)
        value: torch.Tensor = last(x).squeeze(-1)
        return value


def export(network: Network, path: Path) -> None:
    """Any number of rows of eleven features in, a value for each out; the weights keep their names."""
    rows = torch.export.Dim("rows", min=1)
    program = torch.onnx.export(
        network.eval(), (torch.zeros(2, X),), input_names=["x"], output_names=["value"],
        dynamic_shapes={"x": {0: rows}}, dynamo=True, optimize=False, verbose=False,
    )  # fmt: skip
    if program is None:
        raise RuntimeError("the network was not exported")
    path.write_bytes(program.model_proto.SerializeToString())
