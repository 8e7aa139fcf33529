"""In which direction a link points: the meaning of its anchor and of its address together, in small numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f32s, i64s, kernel, matrix_f32, nothing, records, summing_part
from crawlguide.features.embedding import Embedding
from crawlguide.strategies.layered.evidence import LINKS
from crawlguide.strategies.layered.records import MEANING, TASTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F32, I64, U8

LARGEST = np.float32(127.0)
LEAST = np.float32(1e-6)


@summing_part
def measured(vector, direction):  # type: ignore[no-untyped-def]
    """How long a vector is, and how alike the direction it is."""
    square = product = np.float32(0.0)
    for at in range(len(vector)):
        square += vector[at] * vector[at]
        product += vector[at] * direction[at]
    size = max(np.sqrt(square), LEAST)
    return size, product / size


@kernel(nothing(i64s, matrix_f32, matrix_f32, f32s, f32s, f32s, LINKS))
def mean(rows, said, named, direction, anchor, address, links):  # type: ignore[no-untyped-def]
    """`said` and `named` are the sums of anchors and addresses; `anchor` and `address` get how alike the goal they are.

    All in one pass, and no vector is written again.
    """
    both = np.empty(MEANING, np.float32)
    for number in range(len(rows)):
        link, mine, other = links[rows[number]], said[number], named[number]
        said_size, anchor[number] = measured(mine, direction)
        named_size, address[number] = measured(other, direction)
        link.anchor, link.address = anchor[number], address[number]
        for at in range(MEANING):
            both[at] = mine[at] / said_size + other[at] / named_size
        size, _ = measured(both, both)
        for at in range(MEANING):
            link.meaning[at] = np.int8(np.rint(LARGEST * both[at] / size))


@kernel(nothing(matrix_f32, i64s, records(TASTE)))
def taste(pages, kind, tastes):  # type: ignore[no-untyped-def]
    """Each page counts for the taste of its kind, and for none if there is no such taste."""
    total = np.empty(MEANING, np.float32)
    for mine in range(len(tastes)):
        count = 0
        total[:] = np.float32(0.0)
        for number in range(len(pages)):
            if kind[number] == mine:
                count += 1
                for at in range(MEANING):
                    total[at] += pages[number, at]
        tastes[mine].count += count
        for at in range(MEANING):
            tastes[mine].sum[at] += total[at]


# What a crawl is looking for, as words and as a direction of meaning.

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
