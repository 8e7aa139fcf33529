"""The distillation itself, in PyTorch: a sentence encoder's vectors become rows of a table. Needs the extra `train`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

# The teacher: a sentence encoder as sentence-transformers loads it.
BATCH = 1_024


@dataclass(frozen=True)
class Encoder:
    model: Any
    device: str

    @property
    def vocabulary(self) -> list[str]:
        """In the order of its ids, which is about that of frequency."""
        ids: dict[str, int] = self.model.tokenizer.get_vocab()
        return sorted(ids, key=lambda piece: ids[piece])

    def of_texts(self, texts: Sequence[str]) -> torch.Tensor:
        found: torch.Tensor = self.model.encode(
            list(texts), batch_size=BATCH, convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=False
        )
        return found.float()

    def of_pieces(self, pieces: Sequence[str]) -> torch.Tensor:
        """Every piece by itself, between the marks for the beginning and the end of a text."""
        tokens = self.model.tokenizer
        ids = torch.tensor(tokens.convert_tokens_to_ids(list(pieces)), device=self.device)
        found = []
        for some in ids.split(BATCH):
            first, last = torch.full_like(some, tokens.cls_token_id), torch.full_like(some, tokens.sep_token_id)
            rows = torch.stack([first, some, last], 1)
            with torch.no_grad():
                answer = self.model({"input_ids": rows, "attention_mask": torch.ones_like(rows)})
            found.append(answer["sentence_embedding"])
        return torch.cat(found).float()


def encoder(folder: Path) -> Encoder:
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - nothing else needs it
    except ImportError:
        raise ConfigError("this needs sentence-transformers: pip install sentence-transformers") from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return Encoder(SentenceTransformer(str(folder), device=device), device)


# From the teacher's vectors to a table: principal axes, weights by rarity, then gradient steps on texts.
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


# Everything the table is made from, in the form in which it is learned.


class Splitter:
    """Texts into rows of the table: the encoder's own pieces, but whole words where the table has them."""

    def __init__(self, encoder: Encoder, rows: Sequence[str]) -> None:
        self._encoder = encoder
        self._row = {piece: row for row, piece in enumerate(rows)}
        self._split: dict[str, list[int]] = {}

    def bags(self, texts: Sequence[str]) -> Bags:
        found = [list(chain.from_iterable(map(self._of_word, self._words(text)))) or [0] for text in texts]
        sizes = torch.tensor([0, *map(len, found)])
        rows = torch.tensor(list(chain.from_iterable(found)))
        return Bags(rows.to(self._encoder.device), sizes.cumsum(0).to(self._encoder.device))

    def _words(self, text: str) -> list[str]:
        tokens = self._encoder.model.tokenizer.backend_tokenizer
        return [word for word, _ in tokens.pre_tokenizer.pre_tokenize_str(tokens.normalizer.normalize_str(text))]

    def _of_word(self, word: str) -> list[int]:
        if word not in self._split:
            known = word in self._row
            pieces = [word] if known else self._encoder.model.tokenizer.tokenize(word)
            self._split[word] = [self._row[piece] for piece in pieces if piece in self._row]
        return self._split[word]


def gathered(encoder: Encoder, rows: Sequence[str], texts: Sequence[str]) -> Lessons:
    """The teacher's vector of every row by itself, and then of every text."""
    bags = Splitter(encoder, rows).bags(texts)
    alone = torch.arange(len(rows), device=encoder.device)
    both = Bags(torch.cat([alone, bags.rows]), torch.cat([alone, bags.starts + len(rows)]))
    return Lessons(both, functional.normalize(torch.cat([of_rows(encoder, rows), encoder.of_texts(texts)])))


def of_rows(encoder: Encoder, rows: Sequence[str]) -> torch.Tensor:
    """Pieces of the vocabulary go in as they are, whole words as texts."""
    vocabulary = set(encoder.vocabulary)
    own = [row for row in rows if row in vocabulary]
    words = [row for row in rows if row not in vocabulary]
    found = dict(zip(own, encoder.of_pieces(own), strict=True))
    if words:
        found |= dict(zip(words, encoder.of_texts(words), strict=True))
    return torch.stack([found[row] for row in rows])
