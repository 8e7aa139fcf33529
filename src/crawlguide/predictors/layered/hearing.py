"""From what is told to numbers: links and pages are read once, when they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import coded, numbered
from crawlguide.features.embedding import Embedding, plain
from crawlguide.predictors.layered import evidence, meaning, reading, settling
from crawlguide.predictors.layered.columns import ADDRESS, ANCHOR, TITLE
from crawlguide.predictors.layered.goal import meanings
from crawlguide.predictors.layered.records import LEVELS, MEANING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F32, I64, U64, Mask
    from crawlguide.core.types import Links
    from crawlguide.predictors.layered.goal import Aim
    from crawlguide.predictors.layered.memory import Memory

READ_OF_A_PAGE = 600  # letters of its text
LONGEST_NAME = 100  # of a host that can be drawn
LIKED, DISLIKED, NEITHER = 0, 1, 2


def read_links(memory: Memory, aim: Aim, links: Links, new: I64, rows: I64) -> None:
    """What the texts of new links say: places, words and meaning."""
    found = (links.url, links.host, links.anchor)
    urls, hosts, anchors = ((one if len(new) == len(links) else one[new]).tolist() for one in found)
    named, said = coded(urls), coded(anchors)
    goal, goal_ends = aim.letters
    keys = np.empty(LEVELS * len(rows), np.uint64)
    reading.read(
        named.letters, named.ends, said.letters, said.ends, goal, goal_ends, np.zeros(len(goal_ends), np.uint8), rows,
        memory.links.rows, keys,
    )  # fmt: skip
    settle(memory, rows, keys)
    name_hosts(memory, rows, hosts)
    embedding = Embedding.load()
    host, first = numbered(keys[::LEVELS])
    mean(
        memory, aim, rows, embedding.sums(said if said.ascii else coded([plain(anchor) for anchor in anchors])),
        embedding.sums_of_addresses(urls, named, [hosts[number] for number in first.tolist()], host),
    )  # fmt: skip


def settle(memory: Memory, rows: I64, keys: U64) -> None:
    """New links get their places, by `LEVELS` keys for each. Without room for more, smaller places are not told."""
    keys = keys.ravel()
    asked, at = np.empty(len(keys), np.uint64), np.empty(len(keys), np.int64)
    count = settling.differing(keys, asked, at)
    found = memory.claim_places(asked[:count])
    settling.settle(rows, at, found, memory.links.rows, memory.places.rows)


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


def mean(memory: Memory, aim: Aim, rows: I64, said: F32, named: F32) -> None:
    """How alike each link is to the goal, by its anchor and by its address; and the direction in which it points."""
    anchor, address = np.empty((2, len(rows)), np.float32)
    direction = np.zeros(said.shape[1], np.float32) if aim.direction is None else aim.direction
    meaning.mean(rows, said, named, direction, anchor, address, memory.links.rows)
    evidence.notice(anchor, ANCHOR, memory.crawl.rows)
    evidence.notice(address, ADDRESS, memory.crawl.rows)


def read_pages(memory: Memory, aim: Aim, titles: list[str], texts: list[str], label: F32, failed: Mask) -> F32:
    """How alike each title is to the goal; and the taste learns what pages of worth are like."""
    told = [f"{one} {text[:READ_OF_A_PAGE]}" for one, text in zip(titles, texts, strict=True)]
    vectors = meanings(titles + told)
    title = aim.likeness(vectors[: len(titles)])
    evidence.notice(title, TITLE, memory.crawl.rows)
    kind = np.where(label >= 0.5, LIKED, np.where(failed, NEITHER, DISLIKED))
    meaning.taste(vectors[len(titles) :], kind, memory.taste.rows[:NEITHER])
    return title


def taste(memory: Memory) -> F32:
    """Where pages of worth lie, seen from the others."""
    counts, sums = memory.taste.rows["count"][:2], memory.taste.rows["sum"][:2]
    if not counts[LIKED]:
        return np.zeros(MEANING, np.float32)
    found = sums[LIKED] / counts[LIKED] - sums[DISLIKED] / max(counts[DISLIKED], 1.0)
    return np.asarray(found / max(float(np.sqrt(found.dot(found))), 1e-6), np.float32)
