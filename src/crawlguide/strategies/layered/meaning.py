"""What a crawl is looking for, and how near links and pages are to it, by their embeddings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f32s, i64s, kernel, matrix_f32, nothing, records, summing_part
from crawlguide.features.embedding import Embedding
from crawlguide.strategies.layered.records import LINKS, MEANING, PROFILE

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F32, I64, U8
    from crawlguide.strategies.layered.records import Records

WORD = re.compile(r"[^\W\d_]{2,}")
MOST_WORDS = 64
LARGEST = np.float32(127.0)
LEAST = np.float32(1e-6)
HITS, OTHERS, NEITHER = 0, 1, 2  # records of the profile


@dataclass(frozen=True)
class Aim:
    """The goal of a crawl, as words and as a direction among embeddings."""

    goal: Goal

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The goal's words in small letters, each once: its keywords, else its topic."""
        text = " ".join(self.goal.keywords) or self.goal.topic
        return tuple(dict.fromkeys(WORD.findall(text.lower())))[:MOST_WORDS]

    @cached_property
    def letters(self) -> tuple[U8, I64]:
        """The same as bytes, and where each word ends."""
        coded = [word.encode() for word in self.words]
        return np.frombuffer(b"".join(coded) or b"\0", np.uint8), np.cumsum(
            [len(word) for word in coded], dtype=np.int64
        )

    @cached_property
    def direction(self) -> F32 | None:
        """Of what is wanted, less what is not; None where the goal has no words."""
        goal = self.goal
        wanted = " ".join(filter(None, (goal.topic.replace("_", " "), " ".join(goal.keywords), goal.reference)))
        if not wanted:
            return None
        embedding = Embedding.load()
        towards = embedding.embed([wanted])[0]
        if goal.anti_reference:
            towards = towards - 0.5 * embedding.embed([goal.anti_reference])[0]
        return np.asarray(towards / max(float(np.linalg.norm(towards)), 1e-9), np.float32)

    def similarity(self, vectors: F32) -> F32:
        if self.direction is None:
            return np.zeros(len(vectors), np.float32)
        return vectors @ self.direction


@summing_part
def compared(vector, direction):  # type: ignore[no-untyped-def]
    """The length of a vector, and its similarity to a direction."""
    square = product = np.float32(0.0)
    for at in range(len(vector)):
        square += vector[at] * vector[at]
        product += vector[at] * direction[at]
    size = max(np.sqrt(square), LEAST)
    return size, product / size


@kernel(nothing(i64s, matrix_f32, matrix_f32, f32s, f32s, f32s, LINKS))
def embed_links(rows, anchors, addresses, direction, anchor, address, links):  # type: ignore[no-untyped-def]
    """`anchors` and `addresses` are sums of embedded words; `anchor` and `address` get their similarity to the goal.

    A link's meaning is the direction of both together, as small integers. All in one pass, no vector is written twice.
    """
    both = np.empty(MEANING, np.float32)
    for number in range(len(rows)):
        link = links[rows[number]]
        anchor_size, anchor[number] = compared(anchors[number], direction)
        address_size, address[number] = compared(addresses[number], direction)
        link.anchor, link.address = anchor[number], address[number]
        for at in range(MEANING):
            both[at] = anchors[number, at] / anchor_size + addresses[number, at] / address_size
        size, _ = compared(both, both)
        for at in range(MEANING):
            link.meaning[at] = np.int8(np.rint(LARGEST * both[at] / size))


# The profile: what the pages that were hits have in common, against the others.


@kernel(nothing(matrix_f32, i64s, records(PROFILE)))
def add_to_profile(pages, kind, profile):  # type: ignore[no-untyped-def]
    """Each page is added to the record of its kind, or to none if there is no such record."""
    total = np.empty(MEANING, np.float32)
    for mine in range(len(profile)):
        count = 0
        total[:] = np.float32(0.0)
        for number in range(len(pages)):
            if kind[number] == mine:
                count += 1
                for at in range(MEANING):
                    total[at] += pages[number, at]
        profile[mine].count += count
        for at in range(MEANING):
            profile[mine].sum[at] += total[at]


def profile_direction(profile: Records) -> F32:
    """Where hits lie, seen from the others."""
    counts, sums = profile["count"][:NEITHER], profile["sum"][:NEITHER]
    if not counts[HITS]:
        return np.zeros(MEANING, np.float32)
    found = sums[HITS] / counts[HITS] - sums[OTHERS] / max(counts[OTHERS], 1.0)
    return np.asarray(found / max(float(np.sqrt(found.dot(found))), 1e-6), np.float32)
