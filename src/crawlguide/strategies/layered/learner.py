"""What was said of links, and how long it holds: until something is learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.columns import among
from crawlguide.core.notebook import Notebook
from crawlguide.core.outcomes import LATE, failures, refusals, releases
from crawlguide.core.types import Draw
from crawlguide.strategies.layered import (
    ask_signals,
    columns,
    evidence,
    explain,
    host_bonus,
    hubs,
    ingest,
    model,
    thompson,
    tuning,
)
from crawlguide.strategies.layered import memory as changes
from crawlguide.strategies.layered.ask_signals import AskSignals
from crawlguide.strategies.layered.meaning import Aim
from crawlguide.strategies.layered.memory import FIRST, TRANSFERABLE, LayeredMemory
from crawlguide.strategies.layered.records import COLUMNS, DONE, JUDGED, LEVELS, SEED, UNKNOWN, VISITED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F32, F64, I64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson, Links


class LinkScores(NamedTuple):
    """The chance of each link, what it is worth with what may be learned from it, and what of that is hope."""

    value: F64
    wish: F64
    hope: F64


class ScoredBatch(NamedTuple):
    """URLs that were looked at, their records, what was said of them, and in which turn of learning."""

    ids: U64
    rows: I64
    judged: LinkScores
    turn: int

    def holds(self, ids: U64, turn: int) -> bool:
        """Whether it is known what to say of these URLs: the same, or the first of them."""
        return self.turn == turn and (
            ids is self.ids or bool(len(ids) <= len(self.ids) and np.array_equal(self.ids[: len(ids)], ids))
        )

    def first(self, ids: U64) -> ScoredBatch:
        """Only these, which are the first."""
        count = len(ids)
        return ScoredBatch(ids, self.rows[:count], LinkScores(*(column[:count] for column in self.judged)), self.turn)


# The learner behind `layered`: hears what was found and fetched, and says how likely each link pays, and why.

AROUND = 24  # links of the same page that are judged anew, on either side
MOST_COMPARED = 100  # links of a page that was drawn
FIRST_OF_ALL = 2.0  # more than any wish
JUDGEMENTS = 1 << 11  # that are remembered until something is learned
NOTHING: U64 = np.zeros(0, np.uint64)


@dataclass
class ThompsonDraw:
    """What was drawn for one ask."""

    wanted: int
    hosts: list[int] = field(default_factory=list)  # places
    host_names: list[str] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    links: list[int] = field(default_factory=list)  # the best of each page
    chosen: U64 = field(default_factory=lambda: NOTHING)  # that go before all others


class Layered:
    version = "layered-4"
    transferable = TRANSFERABLE

    def __init__(self, goal: Goal, seed: int, without: Sequence[str] = (), most: int = 1_000_000) -> None:
        self.aim, self.seed = Aim(goal), seed
        self.tuning = tuning.tuned(without, aimless=self.aim.direction is None)
        self._prior, self._most = tuning.prior(columns.PRIOR, without), most
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self.memory = LayeredMemory(notebook, self._prior, self._most)
        self.told = AskSignals(notebook, self.memory)
        self._last: ScoredBatch | None = None
        self._judgements = np.zeros(JUDGEMENTS, JUDGED)
        self._taste = ingest.taste(self.memory)

    # judging

    def predict(self, batch: Batch) -> F64:
        return self._looked(batch)[1].value

    def exploration_bonus(self, batch: Batch) -> F64:
        judged = self._looked(batch)[1]
        return judged.wish - judged.value

    def _looked(self, batch: Batch) -> tuple[I64, LinkScores]:
        """The records of a batch, and what is said of them.

        The same rows, or the first of them, are asked for several times on their way; nothing is learned in between.
        """
        if self._last is None or not self._last.holds(batch.id, self.memory.turn):
            rows = self.memory.find(batch.id)
            self.told.look(batch, rows)
            judged = self._judged(rows)
            self._last = ScoredBatch(batch.id, rows, judged, self.memory.turn)
        elif batch.id is not self._last.ids:
            self._last = self._last.first(batch.id)
        return self._last.rows, self._last.judged

    def _turn(self) -> None:
        """Something is learned: what was said so far does not hold any more."""
        self._last = None
        self.memory.turn += 1

    def _judged(self, rows: I64) -> LinkScores:
        memory, judged = self.memory, LinkScores(*np.empty((3, len(rows))))
        self.told.weigh(rows)
        model.judge(
            rows, self._taste, self.tuning, memory.links.rows, memory.links.used, memory.pages.rows,
            memory.places.rows, memory.crawl.rows, memory.dense.rows, memory.words.rows, memory.hub.rows,
            memory.hub_words.rows, memory.turn, self._judgements, *judged,
        )  # fmt: skip
        return judged

    def draw(self, ask: Ask, wanted: int) -> Draw:
        """Hosts and links of pages that were drawn for some places of the answer; and URLs of which the asker told."""
        said, self._last = self.told.hear(ask), None
        memory, crawl, tuned = self.memory, self.memory.crawl.rows, self.tuning[0]
        chance = tuned["least_draws"] + tuned["most_draws"] * (1.0 - crawl["luck"][0]) ** 2
        drawn = ThompsonDraw(wanted)
        if memory.hosts.used and chance and crawl["fetched"][0]:  # before that there is nothing to draw by
            for _ in range(thompson.places_for_draws(self.seed, crawl, chance, wanted)):
                self._draw(drawn)
            memory.crawl.changed(FIRST)
        ids = np.concatenate([memory.links.rows["id"][drawn.links], said]) if drawn.links else said
        return Draw(ids, frozenset(drawn.host_names), drawn)

    def _draw(self, drawn: ThompsonDraw) -> None:
        """A host or a page, in turn as chance has it; a host where no page has links that wait."""
        memory, crawl = self.memory, self.memory.crawl.rows
        if int(crawl["draws"][0]) % 2 == 0:
            page = thompson.draw_page(self.seed, crawl, memory.pages.rows, memory.pages.used)
            best = self._best_of(page) if page >= 0 else -1
            if best >= 0:
                drawn.pages.append(page)
                drawn.links.append(best)
                return
        host = thompson.draw_host(self.seed, crawl, memory.hosts.rows, memory.hosts.used, memory.places.rows)
        if host >= 0:
            drawn.hosts.append(int(memory.hosts.rows["place"][host]))
            drawn.host_names.append(memory.hosts.rows["name"][host].decode())

    def _best_of(self, page: int) -> int:
        """The best waiting link that a page made known, among some of them; -1: none waits."""
        pages, links, rows = self.memory.pages.rows, self.memory.links, np.empty(MOST_COMPARED, np.int64)
        rows = rows[: thompson.waiting_on(page, pages, links.rows, links.used, rows)]
        return int(rows[self._judged(rows).wish.argmax()]) if len(rows) else -1

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64:
        """More for the best row of each arm that was drawn, less where another row of the answer says as much."""
        mark, less = np.zeros((2, len(batch)))
        if ask.draw is None:
            return mark
        drawn: ThompsonDraw = ask.draw.state
        (rows, judged), links = self._looked(batch), self.memory.links.rows
        host_bonus.spread(rows, judged.wish, judged.hope, links, self.memory.places.rows, drawn.wanted, less)
        if not (drawn.hosts or drawn.pages):
            return less
        known = np.flatnonzero(rows >= 0)
        known = known[rows[known].argsort()]  # of equals the first that was found, in whatever order a store has them
        host, finder = links["places"][rows, 0], links["finder"][rows]
        for column, arms_drawn in ((host, drawn.hosts), (finder, drawn.pages)):
            for arm in arms_drawn:
                mine = known[(column[known] == arm) & (mark[known] == 0)]
                if len(mine):
                    mark[mine[judged.wish[mine].argmax()]] = FIRST_OF_ALL
        drawn.chosen = batch.id[mark > 0]
        return mark + less

    def assigned(self, batch: Batch, ask: Ask) -> None:
        memory, rows = self.memory, self.memory.find(batch.id)
        self._turn()
        chosen = among(batch.id, NOTHING if ask.draw is None else ask.draw.state.chosen)
        rows, chosen = rows[rows >= 0], chosen[rows >= 0]
        memory.links.rows["chosen"][rows] = chosen
        evidence.give(rows, memory.links.rows, memory.pages.rows, memory.places.rows)
        memory.told_around(rows)

    def stats(self) -> Mapping[str, float]:
        """What `/v1/stats` shows."""
        crawl, memory = self.memory.crawl.rows[0], self.memory
        return {
            "urls": float(memory.index.live), "pages": float(crawl["pages"]), "places": float(memory.places.used),
            "hit_rate": float(crawl["good"] / max(crawl["tried"], 1.0)), "luck": float(crawl["luck"]),
            "examples": float(crawl["examples"]),
        }  # fmt: skip

    def explain(self, batch: Batch) -> list[str]:
        """What speaks for the first row, in words, the most telling first."""
        row = int(self.memory.find(batch.id[:1])[0])
        if row < 0:
            return ["nothing was learned of it yet"]
        found, memory = np.zeros(COLUMNS, np.float32), self.memory
        model.look(
            row, self._taste, self.tuning, memory.links.rows, memory.links.used, memory.pages.rows,
            memory.places.rows, memory.crawl.rows, found,
        )  # fmt: skip
        return explain.said(memory, row, found)

    # learning

    def learn(self, lesson: Lesson) -> U64 | None:
        told, memory = lesson.fetches, self.memory
        self._turn()
        fetched = self._known(told.id)
        back, late, worth = releases(told), told.status == LATE, lesson.worth
        used = ~(back | np.isnan(worth))
        if late.any():
            used &= ~late | (memory.links.rows["page"][fetched] < 0)
        amended = fetched[:0] if used.all() else self._unused(fetched, worth, used, back, late)
        page = np.full(len(told), -1, np.int64)
        before = int(memory.crawl.rows["examples"][0])
        page[used], taught = self._fetched(lesson, fetched[used], worth[used].astype(np.float32), used)
        found = self._found(lesson.links, page)
        hubs.open_pages(
            page[~late], memory.links.rows, memory.pages.rows, memory.places.rows, memory.crawl.rows, memory.hub.rows,
            memory.hub_words.rows, self.tuning,
        )  # fmt: skip
        memory.told(np.concatenate([fetched, found, amended]), page, taught)
        memory.told_examples(before)
        stirred = self.told.stirred(before)
        return np.concatenate([memory.links.rows["id"][amended], self._moved(fetched[used]), stirred])

    def _known(self, ids: U64) -> I64:
        """Records of what was fetched; what nobody had found gets one now."""
        rows, new = self.memory.claim(ids)
        if new.any():
            fresh = rows[new != 0]
            ingest.settle(self.memory, fresh, np.zeros((len(fresh), LEVELS), np.uint64))
        return rows

    def _fetched(self, lesson: Lesson, rows: I64, label: F32, used: Mask) -> tuple[I64, I64]:
        """What was fetched is learned; returns the pages, and the links that taught something."""
        told, memory = lesson.fetches if used.all() else lesson.fetches.take(used), self.memory
        failed, again = failures(told), rows[lesson.again[used]]
        relevant = np.where(failed, 0.0, np.where(np.isnan(told.relevance), label, told.relevance)).astype(np.float32)
        if len(again):  # each may be another page now
            memory.links.rows["state"][again[memory.links.rows["state"][again] == DONE]] = VISITED
        page = memory.claim_pages(rows)
        self.told.weigh(rows)
        titles, texts = lesson.title[used].tolist(), lesson.text[used].tolist()
        title = ingest.read_pages(memory, self.aim, titles, texts, label, failed)
        self._taste = ingest.taste(memory)
        replayed = np.full(len(rows) * int(self.tuning["replays"][0]), -1, np.int64)
        model.learn(
            self.seed, rows, label, relevant, (~failed).astype(np.int64), title, page, self._taste,
            self.tuning, memory.links.rows, memory.links.used, memory.pages.rows, memory.places.rows,
            memory.crawl.rows, memory.examples.rows, memory.dense.rows, memory.words.rows, replayed,
        )  # fmt: skip
        self.told.learn(rows, label)
        ask_signals.refuse(
            rows, refusals(told), memory.links.rows, memory.places.rows, self.tuning["memory"].astype(np.float32)
        )
        return page, np.concatenate([rows, replayed[replayed >= 0]])

    def _unused(self, fetched: I64, worth: F64, used: Mask, back: Mask, late: Mask) -> I64:
        """Fetches that teach nothing by themselves; returns the links whose evidence changed with them."""
        memory = self.memory
        for row in fetched[back].tolist():
            evidence.give_back(row, memory.links.rows, memory.pages.rows, memory.places.rows)
        evidence.visit(fetched[~(back | late | used)], memory.links.rows, memory.pages.rows, memory.places.rows)
        return self._amended(fetched, worth, late & ~used)

    def _amended(self, fetched: I64, worth: F64, late: Mask) -> I64:
        """Late rewards of pages already judged; returns the links whose evidence changed with them."""
        memory, changed = self.memory, [fetched[:0]]
        for row, reward in zip(fetched[late].tolist(), worth[late].tolist(), strict=True):
            page = int(memory.links.rows["page"][row])
            if page >= 0 and not np.isnan(reward):
                evidence.amend(
                    row, reward, memory.links.rows, memory.links.used, memory.pages.rows,
                    memory.places.rows, memory.crawl.rows,
                )  # fmt: skip
                first, found = memory.pages.rows["first"][page], memory.pages.rows["found"][page]
                changed.append(np.arange(first, min(first + found, memory.links.used)))
        return np.concatenate(changed)

    def _found(self, links: Links, page: I64) -> I64:
        memory = self.memory
        rows, fresh = memory.claim(links.id)
        new = np.flatnonzero(fresh)
        if len(new):
            ingest.read_links(memory, self.aim, links, new, rows[new])
        parents = np.full(len(rows), SEED)
        if len(page):
            known = page[links.parent]
            parents = np.where(links.parent < 0, SEED, np.where(known < 0, UNKNOWN, known))
        evidence.find(rows, parents, fresh.astype(np.uint8), memory.links.rows, memory.pages.rows)
        evidence.spend(rows, parents, memory.links.rows, memory.pages.rows)
        return rows

    def _moved(self, fetched: I64) -> U64:
        """Links that stand beside those that were fetched: what they are worth has changed most."""
        links, ids = self.memory.links, np.empty(2 * AROUND * len(fetched), np.uint64)
        count = changes.waiting_beside(fetched, links.rows, links.used, self.memory.pages.rows, AROUND, ids)
        return ids[:count]
