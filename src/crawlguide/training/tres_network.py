"""The network of `tres` in PyTorch: fitted with Double DQN and prioritised replay, written as ONNX. Extra `train`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from crawlguide.strategies.tres.records import HIDDEN, X

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.notebook import Records

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


BETA, CLIP = 0.4, 1.0


@dataclass(frozen=True)
class Fitting:
    """forager's names and defaults; the target network follows every so many steps."""

    steps: int = 5_000
    batch_size: int = 64
    learning_rate: float = 0.001
    gamma: float = 0.99
    target_update_freq: int = 100
    per_alpha: float = 0.6
    per_epsilon: float = 1e-4


def fitted(transitions: Records, fitting: Fitting, seed: int) -> Network:
    """One seed gives one network."""
    torch.manual_seed(seed)
    chance, online, target = np.random.default_rng(seed), Network(), Network()
    target.load_state_dict(online.state_dict())
    adam = torch.optim.Adam(online.parameters(), fitting.learning_rate)
    columns = {
        name: torch.from_numpy(np.ascontiguousarray(transitions[name])) for name in transitions.dtype.names or ()
    }
    priority = np.ones(len(transitions))
    for step in range(fitting.steps):
        if step % fitting.target_update_freq == 0:
            target.load_state_dict(online.state_dict())
        share = priority**fitting.per_alpha
        share /= share.sum()
        rows = chance.choice(len(priority), fitting.batch_size, p=share)
        weight = (len(priority) * share[rows]) ** -BETA
        looked = {name: column[rows] for name, column in columns.items()}
        error = online(looked["x"]) - targets(looked, online, target, fitting.gamma)
        loss = (torch.from_numpy((weight / weight.max()).astype(np.float32)) * error**2).mean()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(online.parameters(), CLIP)
        adam.step()
        priority[rows] = error.detach().abs().numpy() + fitting.per_epsilon
    return online


@torch.no_grad()  # type: ignore[untyped-decorator, unused-ignore]
def targets(looked: dict[str, torch.Tensor], online: Network, target: Network, gamma: float) -> torch.Tensor:
    """reward + γ · the target network's value of where the online network would go; nowhere is worth 0."""
    ways, following = looked["ways"].long(), looked["next"]
    there = torch.arange(following.shape[1])[None, :] < ways[:, None]
    value = online(following.flatten(0, 1)).view(there.shape).masked_fill(~there, -torch.inf)
    chosen = following[torch.arange(len(ways)), value.argmax(1)]
    best: torch.Tensor = looked["reward"] + gamma * torch.where(ways > 0, target(chosen), torch.zeros(len(ways)))
    return best
