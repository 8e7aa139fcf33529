"""From what is told to numbers: links and pages are read once, when they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.predictors.layered import evidence, reading
from crawlguide.predictors.layered.columns import ADDRESS, ANCHOR, TITLE
from crawlguide.predictors.layered.goal import addresses, ends_of, meanings
from crawlguide.predictors.layered.records import LEVELS, MEANING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F32, I64, Mask
    from crawlguide.core.types import Links
    from crawlguide.predictors.layered.goal import Aim
    from crawlguide.predictors.layered.memory import Memory

READ_OF_A_PAGE = 600  # letters of its text
LONGEST_NAME = 100  # of a host that can be drawn
LIKED, DISLIKED = 0, 1


def read_links(memory: Memory, aim: Aim, links: Links, new: I64, rows: I64) -> None:
    """What the texts of new links say: places, words and meaning."""
    urls, anchors = links.url[new].tolist(), links.anchor[new].tolist()
    coded, said = [url.encode() for url in urls], [anchor.encode() for anchor in anchors]
    goal, goal_ends = aim.letters
    keys = np.empty(LEVELS * len(rows), np.uint64)
    reading.read(
        letters(coded), ends_of(coded), letters(said), ends_of(said), goal, goal_ends,
        np.zeros(len(goal_ends), np.uint8), rows, memory.links.rows, keys,
    )  # fmt: skip
    settle(memory, rows, keys.reshape(-1, LEVELS))
    name_hosts(memory, rows, links.host[new].tolist())
    mean(memory, aim, rows, anchors, addresses(urls))


def letters(coded: Sequence[bytes]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(coded) or b"\0", np.uint8)


def settle(memory: Memory, rows: I64, keys: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> None:
    """New links get their places. Every link has a host; where there is no more room smaller places are not told."""
    keys[:, 0] |= np.uint64(1)
    inside = keys != 0
    numbers = np.full(keys.shape, -1, np.int64)
    numbers[inside] = memory.claim_places(keys[inside])
    numbers[:, 0] = np.maximum(numbers[:, 0], 0)
    known = np.logical_and.accumulate(numbers >= 0, axis=1)
    evidence.settle(rows, numbers[known], known.sum(1), memory.links.rows, memory.places.rows)


def name_hosts(memory: Memory, rows: I64, names: Sequence[str]) -> None:
    """Hosts that are new get a record with their name, by which a store knows them."""
    places, hosts = memory.links.rows["places"][rows, 0], memory.hosts
    for number in np.flatnonzero(memory.places.rows["named"][places] == 0).tolist():
        place, name = int(places[number]), names[number].encode()
        if not memory.places.rows["named"][place]:
            memory.places.rows["named"][place] = 1
            if len(name) <= LONGEST_NAME:
                hosts.fit(hosts.used + 1)
                hosts.rows[hosts.used - 1] = place, name
                hosts.changed(np.array([hosts.used - 1]))


def mean(memory: Memory, aim: Aim, rows: I64, anchors: list[str], words: list[str]) -> None:
    """How alike each link is to the goal, by its anchor and by its address; and the direction in which it points."""
    vectors, links = meanings([*anchors, *words]), memory.links.rows
    said, named = vectors[: len(rows)], vectors[len(rows) :]
    links["anchor"][rows], links["address"][rows] = aim.likeness(said), aim.likeness(named)
    evidence.notice(links["anchor"][rows], ANCHOR, memory.crawl.rows)
    evidence.notice(links["address"][rows], ADDRESS, memory.crawl.rows)
    both = said[:, :MEANING] + named[:, :MEANING]
    size = np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-6)
    links["meaning"][rows] = np.rint(127.0 * both / size)


def read_pages(memory: Memory, aim: Aim, titles: list[str], texts: list[str], label: F32, failed: Mask) -> F32:
    """How alike each title is to the goal; and the taste learns what pages of worth are like."""
    title = aim.likeness(meanings(titles))
    evidence.notice(title, TITLE, memory.crawl.rows)
    told = [f"{one} {text[:READ_OF_A_PAGE]}" for one, text in zip(titles, texts, strict=True)]
    page, taste = meanings(told)[:, :MEANING], memory.taste.rows
    for kind, mine in ((LIKED, label >= 0.5), (DISLIKED, (label < 0.5) & ~failed)):
        taste["count"][kind] += mine.sum()
        taste["sum"][kind] += page[mine].sum(0)
    return title


def taste(memory: Memory) -> F32:
    """Where pages of worth lie, seen from the others."""
    counts, sums = memory.taste.rows["count"][:2], memory.taste.rows["sum"][:2]
    if not counts[LIKED]:
        return np.zeros(MEANING, np.float32)
    found = sums[LIKED] / counts[LIKED] - sums[DISLIKED] / max(counts[DISLIKED], 1.0)
    return np.asarray(found / max(float(np.linalg.norm(found)), 1e-6), np.float32)
