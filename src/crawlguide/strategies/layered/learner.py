"""The learner behind `layered`: learns from every tell, and says how likely each link is to be relevant, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.notebook import Notebook
from crawlguide.core.outcomes import LATE, failures, refusals, releases
from crawlguide.core.types import Draw
from crawlguide.strategies.layered import evidence, exploration, ingest, model, scores, tuning
from crawlguide.strategies.layered.ask_signals import AskSignals
from crawlguide.strategies.layered.explain import sentences
from crawlguide.strategies.layered.meaning import HITS, NEITHER, OTHERS, Aim
from crawlguide.strategies.layered.memory import TRANSFERABLE, LayeredMemory, waiting_beside
from crawlguide.strategies.layered.records import COLUMNS, DONE, LEVELS, NO_PAGE, SEED, VISITED
from crawlguide.strategies.layered.scores import CACHED, SCORE, LinkScores, ScoredBatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F32, F64, I64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson, Links

BESIDE = 24  # links of the same page that are scored again after a fetch, on either side
MOST_SPREAD = 500  # rows of an ask that are chosen one by one; those beyond it stand as they stand


class Layered:
    version = "layered-7"
    transferable = TRANSFERABLE

    def __init__(self, goal: Goal, seed: int, without: Sequence[str] = (), most: int = 1_000_000) -> None:
        self.aim, self.seed = Aim(goal), seed
        self.tuning = tuning.tuned(without, aimless=self.aim.direction is None)
        self._prior, self._most = tuning.prior(without), most
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self.memory = LayeredMemory(notebook, self.tuning, self._prior, self._most)
        self.ask_signals = AskSignals(notebook, self.memory)
        self._last: ScoredBatch | None = None
        self._score_cache = np.zeros(CACHED, SCORE)

    # scores

    def predict(self, batch: Batch) -> F64:
        return self._scored(batch).scores.value

    def exploration_bonus(self, batch: Batch) -> F64:
        found = self._scored(batch).scores
        return found.explore_value - found.value

    def _scored(self, batch: Batch) -> ScoredBatch:
        """The records of a batch, and their scores.

        On its way through an ask the same batch, or the first rows of it, comes here several times.
        """
        if self._last is None or not self._last.holds(batch.id, self.memory.generation):
            rows = self.memory.find(batch.id)
            self.ask_signals.refresh_hosts(rows, batch.hosts.name, batch.host)
            found = self._scores(rows)
            self._last = ScoredBatch(batch.id, rows, found, self.memory.generation)
        elif batch.id is not self._last.ids:
            self._last = self._last.first(batch.id)
        return self._last

    def _scores(self, rows: I64) -> LinkScores:
        found = LinkScores(*np.empty((3, len(rows))))
        self.ask_signals.refresh_links(rows)
        scores.score_links(rows, self.memory.tables(), self.memory.generation, self._score_cache, found)
        return found

    def explain(self, batch: Batch) -> list[str]:
        """What speaks for or against the first row, in sentences, the most important first."""
        row = int(self.memory.find(batch.id[:1])[0])
        if row < 0:
            return ["nothing was learned of it yet"]
        columns = np.zeros(COLUMNS, np.float32)
        scores.describe_link(row, self.memory.tables(), columns)
        return sentences(self.memory, row, columns)

    def stats(self) -> Mapping[str, float]:
        """What `/v1/stats` shows; there the recent hit rate is called `luck`."""
        crawl = self.memory.crawl.rows[0]
        return {
            "urls": float(self.memory.index.live), "pages": float(crawl["pages"]),
            "places": float(self.memory.places.used), "hit_rate": float(crawl["good"] / max(crawl["tried"], 1.0)),
            "luck": float(crawl["luck"]), "examples": float(crawl["examples"]),
        }  # fmt: skip

    # an ask

    def draw(self, ask: Ask, wanted: int) -> Draw:
        """URLs of which the ask says something new; none is drawn at random."""
        signalled, self._last = self.ask_signals.record(ask), None
        return Draw(signalled, frozenset(), wanted)

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64:
        """Less for rows of a host that has others in the answer."""
        change = np.zeros(len(batch))
        if ask.draw is not None:
            rows, (_, explore_value, host_bonus) = (scored := self._scored(batch)).rows, scored.scores
            wanted = min(ask.draw.state, MOST_SPREAD)
            exploration.spread_over_hosts(rows, explore_value, host_bonus, self.memory.tables(), wanted, change)
        return change

    def assigned(self, batch: Batch, ask: Ask) -> None:
        rows = self.memory.find(batch.id)
        self.memory.generation += 1
        rows = rows[rows >= 0]
        evidence.assign(rows, self.memory.tables())
        self.memory.mark_changed(rows, rows[:0])

    # a tell

    def learn(self, lesson: Lesson) -> U64 | None:
        """Returns the URLs whose scores have changed most."""
        fetches, reward = lesson.fetches, lesson.reward
        self.memory.generation += 1
        rows = self._records(fetches.id)
        released, late = releases(fetches), fetches.status == LATE
        used = ~(released | np.isnan(reward))
        if late.any():
            waiting = (self.memory.links.rows["page"][rows] < 0) | (self.memory.links.rows["state"][rows] == VISITED)
            used &= ~late | waiting
        page = np.full(len(fetches), -1, np.int64)
        amended = rows[:0]
        if not used.all():
            evidence.release(rows[released], self.memory.tables())
            amended = self._amend(rows, reward, late & ~used)
            visited = ~(released | late | used)
            page[visited] = self._visit(lesson, rows[visited], visited)
        before = int(self.memory.crawl.rows["examples"][0])
        page[used], taught = self._learn_fetches(lesson, rows[used], reward[used].astype(np.float32), used)
        self.memory.mark_parents(rows)  # whom the rewards counted for, before newer parents take their place
        found = self._learn_links(lesson.links, page)
        exploration.learn_hubs(page[~late], self.memory.tables())
        self.memory.mark_learned(np.concatenate([rows, found, amended]), page, taught, before)
        beside = np.empty(2 * BESIDE * len(rows[used]), np.uint64)
        beside = beside[: waiting_beside(rows[used], self.memory.tables(), BESIDE, beside)]
        return np.concatenate([self.memory.links.rows["id"][amended], beside, self.ask_signals.due_for_scoring(before)])

    def _records(self, ids: U64) -> I64:
        """Records of what was fetched; URLs that nobody had found get one now."""
        rows, new = self.memory.claim(ids)
        if new.any():
            fresh = rows[new != 0]
            ingest.assign_places(self.memory, fresh, np.zeros((len(fresh), LEVELS), np.uint64))
        return rows

    def _learn_fetches(self, lesson: Lesson, rows: I64, label: F32, used: Mask) -> tuple[I64, I64]:
        """Returns the page of each fetch, and the links that were learned from, also those of replays."""
        fetches, links = lesson.fetches if used.all() else lesson.fetches.take(used), self.memory.links
        failed, again = failures(fetches), rows[lesson.again[used]]
        relevance = np.where(np.isnan(fetches.relevance), label, fetches.relevance)
        relevant = np.where(failed, 0.0, relevance).astype(np.float32)
        if len(again):  # each may be another page now
            links.rows["state"][again[links.rows["state"][again] == DONE]] = VISITED
        page = self.memory.claim_pages(rows)
        self.ask_signals.refresh_links(rows)
        self.ask_signals.refresh_hosts(rows, fetches.host, np.arange(len(rows)))
        title = self._read(lesson, rows, page, used, np.where(label >= 0.5, HITS, np.where(failed, NEITHER, OTHERS)))
        replayed = np.full(len(rows) * int(self.tuning["replays"][0]), -1, np.int64)
        answered = (~failed).astype(np.int64)
        labelled = fetches.labelled.astype(np.int64)
        model.learn(self.seed, rows, label, relevant, answered, labelled, title, page, self.memory.tables(), replayed)
        self.ask_signals.learn(rows, label)
        evidence.count_refusals(rows, refusals(fetches), self.memory.tables())
        return page, np.concatenate([rows, replayed[replayed >= 0]])

    def _read(self, lesson: Lesson, rows: I64, page: I64, used: Mask, kind: I64) -> F32:
        """How similar titles are to the goal; pages with a late reward were read when they were fetched."""
        late, title = lesson.fetches.status[used] == LATE, self.memory.pages.rows["title"][page]
        titles, texts = lesson.title[used][~late].tolist(), lesson.text[used][~late].tolist()
        title[~late] = ingest.read_pages(self.memory, self.aim, rows[~late], titles, texts, kind[~late])
        if late.any():
            ingest.move_in_profile(self.memory, rows[late], kind[late])
        return title

    def _visit(self, lesson: Lesson, rows: I64, visited: Mask) -> I64:
        """Fetches without a reward, which may come late; returns their pages."""
        page = self.memory.claim_pages(rows)
        title = self._read(lesson, rows, page, visited, np.full(len(rows), NEITHER))
        evidence.visit(rows, page, title, self.memory.tables())
        return page

    def _amend(self, rows: I64, reward: F64, late: Mask) -> I64:
        """Late rewards of pages that had one already; returns the links whose evidence changed."""
        changed, known = [rows[:0]], late & ~np.isnan(reward)
        ingest.move_in_profile(self.memory, rows[known], np.where(reward[known] >= 0.5, HITS, OTHERS))
        for row, label in zip(rows[known].tolist(), reward[known].tolist(), strict=True):
            page = int(self.memory.links.rows["page"][row])
            if page >= 0:
                evidence.amend_reward(row, label, self.memory.tables())
                self.memory.pages.changed(np.array([page]))
                first, found = self.memory.pages.rows["first"][page], self.memory.pages.rows["found"][page]
                changed.append(np.arange(first, min(first + found, self.memory.links.used)))
        return np.concatenate(changed)

    def _learn_links(self, links: Links, page: I64) -> I64:
        """Links of the pages that were fetched, or seeds; returns their records."""
        rows, fresh = self.memory.claim(links.id)
        new = np.flatnonzero(fresh)
        if len(new):
            ingest.read_links(self.memory, self.aim, links, new, rows[new])
        parents = np.full(len(rows), SEED)
        if len(page):
            known = page[links.parent]
            parents = np.where(links.parent < 0, SEED, np.where(known < 0, NO_PAGE, known))
        evidence.add_links(rows, parents, fresh.astype(np.uint8), self.memory.tables())
        evidence.pass_authority(rows, parents, self.memory.tables())
        return rows
