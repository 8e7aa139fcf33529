"""The judge of a crawl. Its own formula compares what a page means with the goal and with other pages:

    plain     = 0.45·z(text) + 0.25·z(warmth) + 0.3·max(z(title), z(url)) + 3·(share of the goal's words in all three)
    score     = (plain + clip(nearness − 0.5, −3, 3)) / 1.25      once there are 8 good pages
    relevance = 1 / (1 + exp(2·(2.5 − score)))

z is the cosine with the goal, or the warmth of the text (`warmth.py`), in standard deviations from the crawl's own
background: a few pseudo-pages, and every page as far as it is not relevant, less with each more of its host. Nearness
is that to the 50 best pages, which are chosen without it: that limits drift. The divisor is there because the sum of
both spreads wider than one of them.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from crawlguide.core.errors import UrlError
from crawlguide.core.notebook import Notebook
from crawlguide.core.outcomes import is_success
from crawlguide.core.urls import canonical, queue
from crawlguide.features.embedding import Embedding, words_of
from crawlguide.features.relevance import feedstock, forager
from crawlguide.features.relevance.background import BEST, Background
from crawlguide.features.relevance.feedstock import five_signals
from crawlguide.features.relevance.warmth import Warmth
from crawlguide.features.relevance.words import Matcher, topic_words, words_in

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Page
    from crawlguide.features.embedding.table import F32

READ = 2_000  # characters of a text
LONG = 10_000  # characters of a goal whose vector takes so long that the first page had better find it made
TEXT, WARMTH, NAMES, WORDS = 0.45, 0.25, 0.3, 3.0  # weights of the formula
NO_WARMTH = -1.0  # of a page without a text; its title stands for both
MIDDLE, STEEP = 2.5, 2.0
ENOUGH = 8  # good pages, before nearness to them counts
NEAR_FROM, NEAR_MOST = 0.5, 3.0
WIDER = 1.25
ANTI = 0.5
NO_HOST = 1  # stands for the host of pages whose URL is none
LEAST_WEIGHT = 0.05  # with which a page counts as background even if it looks relevant: no judge is always right
REPORTED = 10.0  # share of words that a page counts as having if it was reported as relevant: better than any other

FORMULAS = {"feedstock": feedstock.relevance, "forager": forager.relevance}  # that judge each page by itself


class Judge:
    """Judges the pages of one crawl by `goal.judge`; raises `MalformedRequest` for a goal that it cannot use.

    - `semantic`, the default: the formula above. Takes pages in their order and learns from each.
    - `feedstock`: feedstock's five signals (`feedstock.py`). Each page by itself; nothing is learned.
    - `forager`: forager's affinity and groups of keywords (`forager.py`). Each page by itself; nothing is learned.
    """

    def __init__(self, goal: Goal) -> None:
        self._goal, self._formula = goal, FORMULAS.get(goal.judge)
        if self._formula is forager.relevance:
            forager.groups(goal.keywords)  # a group without a word is refused now, and not when the first page comes
        self._notebook = Notebook()
        self._aim: F32 | None = None  # made with the first page: a crawl that is told relevance never needs it
        self._memory: Background | None = None
        self._matcher = Matcher(topic_words(goal))
        if len(goal.topic) + sum(map(len, goal.keywords)) > LONG:
            self._aimed()

    def remember(self, notebook: Notebook) -> None:
        """Go on from what lies in the notebook, and write into it from now on."""
        self._notebook, self._memory = notebook, None

    def inherit(self, other: Judge) -> None:
        """Go on where another judge of the crawl has come to; what it knows of another goal is forgotten."""
        self.remember(other._notebook)

    def judge(self, page: Page) -> float:
        """From 0 to 1. By `semantic` and `forager` only a page that was fetched with success can be relevant."""
        if self._formula is not None:
            return self._formula(page, self._goal)
        if not is_success(page.status):
            return 0.0
        if not self._aimed().any():  # no word of the goal has a vector
            return five_signals(page, self._goal)
        return self._judge_and_learn(page, None)

    def hear(self, page: Page, relevance: float) -> None:
        """Learn from a page whose relevance was reported. Of use only where others have to be judged here."""
        if self._memory is None and self._notebook.in_use():  # pages were judged here before a restart
            self._memory = self._made_memory()
        judging = self._memory is not None and self._memory.used
        if judging and is_success(page.status) and self._aimed().any():
            self._judge_and_learn(page, relevance)

    def state(self) -> bytes:
        """All that was learned."""
        sheets = self._notebook.in_use()
        return msgspec.msgpack.encode({name: sheet.rows[: sheet.used].tobytes() for name, sheet in sheets.items()})

    def restore(self, state: bytes) -> None:
        """Go on from what another judge of the same goal had learned."""
        kinds = self._made_memory().kinds
        for name, rows in msgspec.msgpack.decode(state, type=dict[str, bytes]).items():
            sheet, records = self._notebook.sheet(name, kinds[name]), np.frombuffer(rows, kinds[name])
            sheet.fit(len(records))
            sheet.rows[: sheet.used] = records
            sheet.changed(np.arange(sheet.used))
        self._memory = self._made_memory()

    def _judge_and_learn(self, page: Page, reported: float | None) -> float:
        memory = self._memory = self._memory or self._made_memory()
        url = _canonical(page.url)
        parts = (page.text[:READ], page.title, words_of(url) if url else "")
        vectors = Embedding.load().embed(parts)
        given = np.array([bool(part) for part in (*parts, parts[0])], np.float64)
        spoken = [words_in(part) for part in parts]
        near_goal = np.array([*(vectors @ self._aimed()).tolist(), self._warmth.of(spoken[0])])
        words = sum(self._matcher.share_among(set(said)) for said in spoken) / max(sum(map(bool, parts)), 1)
        plain = self._plain(_filled(near_goal, given), words)
        near = int((self._best_scores() >= MIDDLE).sum()) >= ENOUGH
        vector = vectors[0] if given[0] else vectors[1]
        score = (float(plain) + _clipped(memory.nearness(vector) - NEAR_FROM)) / WIDER if near else float(plain)
        relevance = _sigmoid(STEEP * (score - MIDDLE)) if reported is None else reported
        if relevance >= 0.5 if reported is not None else plain >= MIDDLE:
            self._add_best(_filled(near_goal, given), words + (REPORTED if reported is not None else 0.0), vector)
        share = memory.share(xxhash.xxh3_64_intdigest(queue(url).encode()) or NO_HOST if url else NO_HOST)
        memory.add_background(near_goal, given, vector, max(1.0 - relevance, LEAST_WEIGHT) * share, near)
        return relevance

    def _plain(self, near_goal: F64, words: float | F64) -> F64:
        """Of one page, or of each of several."""
        z = self._background.standard(near_goal)
        warmth = np.where(near_goal[..., 3] == NO_WARMTH, z[..., 0], z[..., 3])
        found: F64 = TEXT * z[..., 0] + WARMTH * warmth + NAMES * np.maximum(z[..., 1], z[..., 2]) + WORDS * words
        return found

    def _best_scores(self) -> F64:
        """Plain scores of the best pages, by the present background."""
        top = self._background.top
        return self._plain(top["near_goal"], top["words"])

    def _add_best(self, near_goal: F64, words: float, vector: F32) -> None:
        """In a free row, or in that of the worst if this one is better."""
        scores = self._best_scores()
        place = len(scores) if len(scores) < BEST else int(scores.argmin())
        if place == len(scores) or scores[place] < self._plain(near_goal, words):
            self._background.add_best(place, near_goal, words, vector)

    @property
    def _background(self) -> Background:
        assert self._memory is not None  # noqa: S101 - made before any page is looked at
        return self._memory

    def _made_memory(self) -> Background:
        goal = msgspec.to_builtins(self._goal)
        del goal["judge"]  # folders written before there was a choice go on
        return Background(self._notebook, xxhash.xxh3_64_intdigest(msgspec.json.encode(goal)), Embedding.load().dims)

    @cached_property
    def _warmth(self) -> Warmth:
        return Warmth(self._aimed())

    def _aimed(self) -> F32:
        if self._aim is None:
            self._aim = aimed(self._goal)
        return self._aim


def aimed(goal: Goal) -> F32:
    """The vector of the goal: topic, keywords and reference, each with the same weight, less the anti-reference."""
    texts = (goal.topic, " ".join(goal.keywords), goal.reference[:READ], goal.anti_reference[:READ])
    topic, keywords, reference, anti = Embedding.load().embed(texts)
    towards = topic + keywords + reference
    length = float(np.linalg.norm(towards))
    aim: F32 = towards / np.float32(length or 1.0) - np.float32(ANTI) * anti
    return aim


def _filled(near_goal: F64, given: F64) -> F64:
    """A page without a text is judged by its title, one without a title by its URL, and the other way round."""
    text, title, url, warmth = near_goal.tolist()
    if not given[1]:
        title = url
    warmth = warmth if given[3] else NO_WARMTH
    return np.array([text if given[0] else title, title, url if given[2] else title, warmth])


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(value, -700.0)))


def _clipped(nearness: float) -> float:
    return min(max(nearness, -NEAR_MOST), NEAR_MOST)


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except UrlError:
        return ""
