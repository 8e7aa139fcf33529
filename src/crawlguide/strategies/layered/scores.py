"""The scores of links: a probability, and an explore value that adds the exploration bonuses.

Within one ask the same links are looked at several times, so scores are cached until something is learned: each change
of what is known begins a new `generation`, and scores of an older one do not hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.kernels import f32s, f64s, i64s, kernel, named_tuple, nothing, one_i64, part, records
from crawlguide.strategies.layered.answers import answer_chance
from crawlguide.strategies.layered.columns import AT, REACH, describe, odds, rate
from crawlguide.strategies.layered.exploration import bonus_left, bonus_of, lead
from crawlguide.strategies.layered.model import calibrated, log_odds
from crawlguide.strategies.layered.records import COLUMNS, SEED, TABLES
from crawlguide.strategies.layered.steps import sigmoid
from crawlguide.strategies.layered.trust import trusted

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U64

CACHED = 1 << 11  # scores kept, a power of two
ALIKE = 0.001  # of the explore value: links of a page that differ by less are taken from all over it
SCORE = np.dtype(
    [
        ("row", np.int64),  # of the link
        ("generation", np.int64),
        ("value", np.float64),
        ("explore_value", np.float64),
        ("host_bonus", np.float64),
    ],
    align=True,
)


class LinkScores(NamedTuple):
    value: F64  # the probability to be relevant
    explore_value: F64  # with all bonuses
    host_bonus: F64  # the bonus for its host, before what was fetched there is taken off


class ScoredBatch(NamedTuple):
    """URLs, their records and scores, and the generation in which these hold."""

    ids: U64
    rows: I64
    scores: LinkScores
    generation: int

    def holds(self, ids: U64, generation: int) -> bool:
        """Whether these are the same URLs, or the first of them, and nothing was learned since."""
        return self.generation == generation and (
            ids is self.ids or bool(len(ids) <= len(self.ids) and np.array_equal(self.ids[: len(ids)], ids))
        )

    def first(self, ids: U64) -> ScoredBatch:
        count = len(ids)
        scores = LinkScores(*(column[:count] for column in self.scores))
        return ScoredBatch(ids, self.rows[:count], scores, self.generation)


@part
def holds(score, row, generation):  # type: ignore[no-untyped-def]
    return score.row == row and score.generation == generation


@part
def prefetch(rows, tables, generation, cache):  # type: ignore[no-untyped-def]
    """Touch all records that will be read, so that the processor waits for many of them at once.

    They lie anywhere in much memory; else it would wait for one after the other. What it returns means nothing.
    """
    links, total = tables.links, 0
    for row in rows:
        if row >= 0 and not holds(cache[row & (len(cache) - 1)], row, generation):
            total += (links[row].count > 0.0) + links[row].words[0] + (links[row].meaning[0] > 0)
            for other in range(max(row - REACH, 0), min(row + REACH + 1, tables.links_used)):
                total += links[other].state
    return total


@part
def scattered(row, link, pages):  # type: ignore[no-untyped-def]
    """0…1, less far from 0 the earlier a link is to be taken: the first of its page, that in the middle, quarters.

    Its place in the page with its bits turned around. A menu leads to much that is alike, one beside the other.
    """
    share, half = 0.0, 0.5
    place = row - pages[link.finder].first if link.finder >= 0 else 0
    while place > 0:
        share += half * (place & 1)
        place >>= 1
        half /= 2.0
    return share


@part
def score_link(row, base, tables, columns, score):  # type: ignore[no-untyped-def]
    """`value` is the chance that is told; the explore value begins with the chance by which links are ordered."""
    link, crawl, tuning = tables.links[row], tables.crawl[0], tables.tuning[0]
    describe(row, tables, columns)
    answers, logit = answer_chance(link, tables), log_odds(link, columns, base, tables)
    chance = answers * sigmoid(calibrated(logit, crawl))
    mixed = tables.trust[0].judged > 0
    score.value = answers * trusted(calibrated(logit, crawl), tables.trust[0]) if mixed else chance
    if link.finder == SEED and link.parents[0] < 0:  # somebody vouches for it, and its links make a host known
        score.explore_value, score.host_bonus = tuning.seed_value + (1.0 - tuning.seed_value) * chance, 0.0
        return
    score.host_bonus = bonus_of(link, chance, answers, columns, tables)
    score.explore_value = chance + bonus_left(score.host_bonus, tables.places[link.places[0]], 0.0)
    score.explore_value += answers * lead(link, tables) - ALIKE * scattered(row, link, tables.pages)


@kernel(nothing(i64s, TABLES, one_i64, records(SCORE), named_tuple(LinkScores, f64s, f64s, f64s)))
def score_links(rows, tables, generation, cache, scores):  # type: ignore[no-untyped-def]
    """Fill in `scores`; a row of -1 is a link without a record, which has the crawl's own rate."""
    if prefetch(rows, tables, generation, cache) < 0:
        return  # never; but so the compiler does not leave it out as useless
    columns, usual = np.zeros(COLUMNS, np.float32), rate(tables.crawl[0])
    base = odds(usual)
    for number in range(len(rows)):
        row = rows[number]
        if row < 0:
            scores.value[number] = scores.explore_value[number] = usual
            scores.host_bonus[number] = 0.0
            continue
        score = cache[row & (len(cache) - 1)]
        if not holds(score, row, generation):
            score.row, score.generation = row, generation
            score_link(row, base, tables, columns, score)
        scores.value[number] = score.value
        scores.explore_value[number] = score.explore_value
        scores.host_bonus[number] = score.host_bonus


@kernel(nothing(one_i64, TABLES, f32s))
def describe_link(row, tables, columns):  # type: ignore[no-untyped-def]
    describe(row, tables, columns)
    columns[AT.answers] = np.log(answer_chance(tables.links[row], tables))
