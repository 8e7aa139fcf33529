"""What a crawl is looking for, as words and as a direction of meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.features.embedding import Embedding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.crawls import Goal
    from crawlguide.core.tables import F32, I64, U8

WORD = re.compile(r"[^\W\d_]{2,}")
MOST_WORDS = 64


@dataclass(frozen=True)
class Aim:
    goal: Goal

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The goal's words in small letters, each once: its keywords, else its topic."""
        said = " ".join(self.goal.keywords) or self.goal.topic
        return tuple(dict.fromkeys(WORD.findall(said.lower())))[:MOST_WORDS]

    @cached_property
    def letters(self) -> tuple[U8, I64]:
        """The same as bytes, and where each word ends."""
        coded = [word.encode() for word in self.words]
        return np.frombuffer(b"".join(coded) or b"\0", np.uint8), np.cumsum(
            [len(word) for word in coded], dtype=np.int64
        )

    @cached_property
    def direction(self) -> F32 | None:
        """Of what is wanted, less what is not; None where the goal says nothing."""
        goal = self.goal
        wanted = " ".join(filter(None, (goal.topic.replace("_", " "), " ".join(goal.keywords), goal.reference)))
        if not wanted:
            return None
        embedding = Embedding.load()
        towards = embedding.embed([wanted])[0]
        if goal.anti_reference:
            towards = towards - 0.5 * embedding.embed([goal.anti_reference])[0]
        return np.asarray(towards / max(float(np.linalg.norm(towards)), 1e-9), np.float32)

    def likeness(self, vectors: F32) -> F32:
        if self.direction is None:
            return np.zeros(len(vectors), np.float32)
        return vectors @ self.direction


def meanings(texts: Sequence[str]) -> F32:
    return Embedding.load().embed(texts)
