"""Double DQN with prioritised replay on transitions that lie before it all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from crawlguide.training.tres.network import Network

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records

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
