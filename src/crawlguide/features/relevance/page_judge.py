"""The judge of a crawl: what a page means beside the goal, compared with what other pages mean.

    plain     = 0.7·z(text) + 0.3·max(z(title), z(url)) + 3·(share of the goal's words in title, URL and text)
    score     = (plain + clip(nearness − 0.5, −3, 3)) / 1.25      once there are 8 good pages
    relevance = 1 / (1 + exp(2·(2.5 − score)))

z is the cosine with the goal in standard deviations from the crawl's own background: a few pseudo-pages, and every page
as far as it is not relevant, less with each more of its host. Nearness is that to the 50 best pages, which are chosen
without it: that limits drift. The divisor is there because the sum of both spreads wider than one of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from crawlguide.core.errors import UrlError
from crawlguide.core.notebook import Notebook
from crawlguide.core.outcomes import is_success
from crawlguide.core.urls import canonical, queue
from crawlguide.features.embedding import Embedding, words_of
from crawlguide.features.relevance.background import BEST, Background
from crawlguide.features.relevance.feedstock import five_signals
from crawlguide.features.relevance.words import Matcher, topic_words

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Page
    from crawlguide.features.embedding.table import F32

READ = 2_000
TEXT, NAMES, WORDS = 0.7, 0.3, 3.0
MIDDLE, STEEP = 2.5, 2.0
ENOUGH = 8  # good pages, before what is near to them counts
NEAR_FROM, NEAR_MOST = 0.5, 3.0
WIDER = 1.25
ANTI = 0.5
UNNAMED = 1  # the host of all pages whose URL is none
LEAST_WEIGHT = 0.05  # with which a page counts as background even if it looks relevant: no judge is always right
TOLD = 10.0  # words that a page counts as having if somebody who knows calls it relevant: better than any other


class Judge:
    """Judges the pages of one crawl, in their order, and learns from each."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._notebook = Notebook()
        self._aim: F32 | None = None  # made with the first page: who is told relevance never needs it
        self._memory: Background | None = None
        self._matcher = Matcher(topic_words(goal))

    def remember(self, notebook: Notebook) -> None:
        """Go on from what lies in the notebook, and write into it from now on."""
        self._notebook, self._memory = notebook, None

    def inherit(self, other: Judge) -> None:
        """Go on where another judge of the crawl has come to; what it knows of another goal is forgotten."""
        self.remember(other._notebook)

    def judge(self, page: Page) -> float:
        """From 0 to 1; only what came well can be relevant."""
        if not is_success(page.status):
            return 0.0
        if not self._aimed().any():  # no word of the goal is known
            return five_signals(page, self._goal)
        return self._learned(page, None)

    def hear(self, page: Page, relevance: float) -> None:
        """Somebody who knows has judged this page. Of use only where others have to be judged here."""
        judging = self._memory is not None and self._memory.used
        if judging and is_success(page.status) and self._aimed().any():
            self._learned(page, relevance)

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

    def _learned(self, page: Page, told: float | None) -> float:
        memory = self._memory = self._memory or self._made_memory()
        url = _canonical(page.url)
        parts = (page.text[:READ], page.title, words_of(url) if url else "")
        vectors = Embedding.load().embed(parts)
        given = np.array([bool(part) for part in parts], np.float64)
        cosines = (vectors @ self._aimed()).astype(np.float64)
        words = float(np.array([self._matcher.share(part) for part in parts]) @ given / max(given.sum(), 1.0))
        plain = self._plain(_filled(cosines, given), words)
        near = int((self._best_scores() >= MIDDLE).sum()) >= ENOUGH
        vector = vectors[0] if given[0] else vectors[1]
        score = (float(plain) + _clipped(memory.nearness(vector) - NEAR_FROM)) / WIDER if near else float(plain)
        relevance = _sigmoid(STEEP * (score - MIDDLE)) if told is None else told
        if relevance >= 0.5 if told is not None else plain >= MIDDLE:
            self._add_best(_filled(cosines, given), words + (TOLD if told is not None else 0.0), vector)
        share = memory.share(xxhash.xxh3_64_intdigest(queue(url).encode()) or UNNAMED if url else UNNAMED)
        memory.add_background(cosines, given, vector, max(1.0 - relevance, LEAST_WEIGHT) * share, near)
        return relevance

    def _plain(self, cosines: F64, words: float | F64) -> F64:
        """Of one page, or of each of several."""
        z = self._known.standard(cosines)
        found: F64 = TEXT * z[..., 0] + NAMES * np.maximum(z[..., 1], z[..., 2]) + WORDS * words
        return found

    def _best_scores(self) -> F64:
        """Of the best pages, by what is known now."""
        top = self._known.top
        return self._plain(top["cosines"], top["words"])

    def _add_best(self, cosines: F64, words: float, vector: F32) -> None:
        """In a free place, or in that of the worst if this one is better."""
        scores = self._best_scores()
        place = len(scores) if len(scores) < BEST else int(scores.argmin())
        if place == len(scores) or scores[place] < self._plain(cosines, words):
            self._known.add_best(place, cosines, words, vector)

    @property
    def _known(self) -> Background:
        assert self._memory is not None  # noqa: S101 - made before any page is looked at
        return self._memory

    def _made_memory(self) -> Background:
        goal = xxhash.xxh3_64_intdigest(msgspec.json.encode(self._goal))
        return Background(self._notebook, goal, Embedding.load().dims)

    def _aimed(self) -> F32:
        if self._aim is None:
            self._aim = aimed(self._goal)
        return self._aim


def aimed(goal: Goal) -> F32:
    """What is looked for: topic, keywords and reference, each with the same weight, less the anti-reference."""
    texts = (goal.topic, " ".join(goal.keywords), goal.reference[:READ], goal.anti_reference[:READ])
    topic, keywords, reference, anti = Embedding.load().embed(texts)
    towards = topic + keywords + reference
    length = float(np.linalg.norm(towards))
    aim: F32 = towards / np.float32(length or 1.0) - np.float32(ANTI) * anti
    return aim


def _filled(cosines: F64, given: F64) -> F64:
    """A page without a text is judged by its title, one without a title by its URL, and the other way round."""
    text, title, url = cosines.tolist()
    if not given[1]:
        title = url
    return np.array([text if given[0] else title, title, url if given[2] else title])


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(value, -700.0)))


def _clipped(nearness: float) -> float:
    return min(max(nearness, -NEAR_MOST), NEAR_MOST)


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except UrlError:
        return ""
