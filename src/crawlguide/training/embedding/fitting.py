"""From the teacher's vectors to a table: principal axes, weights by rarity, then gradient steps on texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

RARITY = 1e-4  # SIF: a piece with a share p of all text weighs RARITY / (RARITY + p)


@dataclass(frozen=True)
class Options:
    dims: int = 256
    steps: int = 2_000
    batch: int = 4_096
    rate: float = 2e-3
    seed: int = 0


@dataclass(frozen=True)
class Bags:
    """Texts as the rows of their pieces, one after the other."""

    rows: torch.Tensor
    starts: torch.Tensor  # one more than there are texts

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, which: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The same for some of them."""
        sizes = self.starts[which + 1] - self.starts[which]
        ends = sizes.cumsum(0)
        shift = torch.repeat_interleave(self.starts[which] - (ends - sizes), sizes)
        return self.rows[torch.arange(int(ends[-1]), device=shift.device) + shift], ends - sizes


@dataclass(frozen=True)
class Lessons:
    """What is learned from: texts, with the teacher's vector of each. They begin with the rows by themselves."""

    bags: Bags
    vectors: torch.Tensor


def made(lessons: Lessons, pieces: int, rows: int, options: Options) -> torch.Tensor:
    """A row for each of the encoder's pieces, which come first, and for each whole word."""
    mean, directions = axes(lessons.vectors, options.dims)
    reduced = Lessons(lessons.bags, (lessons.vectors - mean) @ directions)
    start = reduced.vectors[:rows].clone()
    start[:pieces] *= by_rarity(pieces, start.device)[:, None]
    return fitted(start, reduced, options)


def axes(vectors: torch.Tensor, dims: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean and the principal axes."""
    mean = vectors.mean(0)
    _, _, found = torch.linalg.svd(vectors - mean, full_matrices=False)
    return mean, found[:dims].T


def by_rarity(count: int, device: torch.device) -> torch.Tensor:
    """A weight for each piece, from the most frequent to the rarest, by Zipf's law."""
    share = 1.0 / torch.arange(1, count + 1, device=device)
    return RARITY / (RARITY + share / share.sum())


def fitted(start: torch.Tensor, lessons: Lessons, options: Options) -> torch.Tensor:
    """The table after as many steps as the options say."""
    torch.manual_seed(options.seed)
    table = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([table], options.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, options.steps)
    device = start.device
    for _ in range(options.steps):
        some = torch.randint(len(lessons.bags), (options.batch,), device=device)
        ours, wanted = embedded(table, lessons.bags, some), functional.normalize(lessons.vectors[some])
        loss = 1.0 - (ours * wanted).sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return table.detach()


def embedded(table: torch.Tensor, bags: Bags, which: torch.Tensor) -> torch.Tensor:
    rows, starts = bags.take(which)
    return functional.normalize(functional.embedding_bag(rows, table, starts, mode="sum"), dim=1)


def rounded(table: torch.Tensor) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """A byte for each number, and a scale for each row."""
    scale = table.abs().amax(1).clamp_min(1e-12) / 127
    return (table / scale[:, None]).round().to(torch.int8).cpu().numpy(), scale.cpu().numpy()
