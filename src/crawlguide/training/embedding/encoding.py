"""The teacher: a sentence encoder as sentence-transformers loads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
