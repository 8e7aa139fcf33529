"""Select and Tune: draws URLs from the leaves of the tree, values them by the network, and learns from fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.columns import among
from crawlguide.core.notebook import Notebook
from crawlguide.core.types import Draw, Sample
from crawlguide.strategies.shared.learning import outcomes
from crawlguide.strategies.tres import network, tree
from crawlguide.strategies.tres.domain_limits import PAGES, SLOW, UNRELIABLE, DomainLimits
from crawlguide.strategies.tres.features import ANCHOR_SIMILARITY, AnchorSimilarity, Describer, weights_of
from crawlguide.strategies.tres.options import Options, param
from crawlguide.strategies.tres.records import (
    ASSIGNED,
    DONE,
    FREE,
    MOST_LEAVES,
    MOST_LINKS,
    MOST_MISSES,
    ONLINE,
    QUEUE,
    READMITTED,
    SAMPLES,
    WAITING,
)
from crawlguide.strategies.tres.replay import ReplayBuffer
from crawlguide.strategies.tres.tables import Tables

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F32, F64, I64, U64, Mask, Rows
    from crawlguide.core.types import Ask, Batch, Lesson
    from crawlguide.strategies.shared.learning import Outcomes

WORDS = 0.1  # weight of the words of a link beside the mean reward of its leaf
DRAWN_PER_URL = 4  # candidates drawn for each URL of an answer, so that filters leave enough
AHEAD = 3.0  # more than any value, and enough for slow hosts to stay ahead of what was not drawn
NOTHING: U64 = np.zeros(0, np.uint64)


class LeafDraw(NamedTuple):
    """What was drawn from the leaves for one ask, sorted by id, and the place of each in the draw."""

    ids: U64
    places: F64


def drawn_for(ask: Ask) -> LeafDraw:
    return LeafDraw(NOTHING, np.zeros(0)) if ask.draw is None else ask.draw.state


class Tres:
    """A predictor and a sampler: a URL is worth the mean reward of its leaf; what was drawn goes before all others."""

    version = "tres-1"
    transferable = ("t.net",)

    def __init__(self, options: Options, seed: int, goal: Goal, model: F32 | None = None) -> None:
        self._options, self._seed, self._model = options, seed & ((1 << 63) - 1), model
        self._describer = Describer(AnchorSimilarity(goal), options.domain_weights)
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        options = self._options
        alpha = param(options.per_alpha).value
        self.tables = Tables(notebook, self._seed, options.replay_capacity, alpha, self._model)
        self._limits = DomainLimits(options, self.tables.crawl)
        self._replay = ReplayBuffer(options, self.tables)

    def predict(self, batch: Batch) -> F64:
        """The mean reward of each URL's leaf, drawn towards that of the whole crawl while little is known."""
        return self._mean_reward(self.tables.leaf(batch.id))

    def exploration_bonus(self, batch: Batch) -> F64:
        """None: exploration is in the draw."""
        return np.zeros(len(batch))

    # choosing

    def draw(self, ask: Ask, wanted: int) -> Draw:
        """Select: one URL from each leaf, valued by one pass of the network, in ε-greedy order."""
        tables, wanted = self.tables, DRAWN_PER_URL * wanted
        drawn = np.empty(tables.leaves.used + wanted, np.int64)
        per_leaf = wanted if self._options.per_leaf == "several" else 1
        leaves, queues = tables.leaves.rows[: tables.leaves.used], tables.queues.rows
        drawn = drawn[: tree.draw(leaves, queues, tables.crawl, self._seed, wanted, per_leaf, drawn)]
        by_value, order = np.argsort(-self._valued(drawn), kind="stable"), np.empty(min(wanted, len(drawn)), np.int64)
        tree.epsilon_greedy(self.epsilon(), tables.crawl, self._seed, by_value, order)
        tables.crawl_changed()
        ids = tables.links.rows["id"][drawn[order]]
        by_id = np.argsort(ids, kind="stable")
        return Draw(ids[by_id], frozenset(), LeafDraw(ids[by_id], by_id.astype(np.float64)))

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64:
        """What was drawn goes before all others, in the order of the draw; slow domains come last of it.

        Domain weights are factors on that, up to the first place. A manual priority of 1 goes before all that, and one
        of 0 behind all.
        """
        place, weights = self._places(batch, ask), weights_of(batch.hosts.name.tolist(), self._describer.weights)
        ahead = np.where(np.isinf(place), 0.0, AHEAD - place / max(len(drawn_for(ask).ids), 1))
        ahead[self._limits.slow(batch.hosts)[batch.host]] -= 1.0
        ahead = np.clip(ahead * weights[batch.host], 0.0, AHEAD)
        return np.where(np.isnan(batch.manual_priority), ahead, (AHEAD + 1.0) * batch.manual_priority)

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        """What was drawn, then what was gathered besides, without domains that are full or failing.

        With `per_leaf = "one"` only what was drawn. With `cut = "before"` the domains are refused after the cut to the
        size of the answer, which then stays short.
        """
        wanted, place = ask.budget.max_urls, self._places(batch, ask)
        order, keep = np.argsort(place, kind="stable"), self._acceptable(batch, ask)
        if self._options.per_leaf == "one":
            order = order[: np.count_nonzero(np.isfinite(place))]
        if self._options.cut == "before":
            order = order[:wanted]
        rows = order[keep[order]][: max(limit, wanted)]
        leaves = self.tables.leaf(batch.id[rows])
        waiting = np.maximum(self.tables.leaves.rows["waiting"][leaves], 1)
        return Sample(rows, leaves.astype(np.float64), np.where(leaves < 0, 1.0, 1.0 / waiting))

    def epsilon(self) -> float:
        """From 1 down to 0.05, over so many transitions, or rounds of them."""
        options = self._options
        steps = options.decay_steps * (options.pages_per_round if options.decay_unit == "rounds" else 1)
        done = min(float(self.tables.crawl[0]["transitions"]) / steps, 1.0)
        return options.epsilon + done * (options.epsilon_min - options.epsilon)

    def _places(self, batch: Batch, ask: Ask) -> F64:
        """The place of each row in the draw of this ask; infinite for one that was not drawn."""
        place, drawn = np.full(len(batch), np.inf), drawn_for(ask)
        if len(drawn.ids):
            at = np.minimum(np.searchsorted(drawn.ids, batch.id), len(drawn.ids) - 1)
            mine = drawn.ids[at] == batch.id
            place[mine] = drawn.places[at[mine]]
        return place

    def _acceptable(self, batch: Batch, ask: Ask) -> Mask:
        """Rows that may be assigned."""
        self._count_misses(batch, drawn_for(ask).ids)
        self._readmit(batch)
        keep = self._limits.keep(batch, ask.budget.max_urls)
        self.tables.crawl_changed()
        return keep

    def _valued(self, links: I64) -> F64:
        """By the network; until it has learned something by the tree, and among equals by the words of the link."""
        tables, values, x = self.tables, np.empty(len(links)), self.tables.links.rows["x"][links]
        if self._options.untrained == "tree" and not self._network_learned():
            leaves = (tables.places[links] // QUEUE).astype(np.int64)
            return self._mean_reward(leaves) + WORDS * x[:, ANCHOR_SIMILARITY]
        network.values(tables.weights(ONLINE), x, values)
        return values

    def _network_learned(self) -> bool:
        """It came trained, or was trained here and has seen a reward."""
        crawl = self.tables.crawl[0]
        return bool(crawl["taught"] or (crawl["trained"] and crawl["reward"] > 0.0))

    def _mean_reward(self, leaves: I64) -> F64:
        """Of each leaf; for -1 that of the whole crawl."""
        crawl, rows = self.tables.crawl[0], self.tables.leaves.rows[leaves]
        overall = (crawl["reward"] + 0.5) / (crawl["transitions"] + 1.0)
        mean: F64 = np.where(leaves < 0, overall, (rows["total"] + overall) / (rows["heard"] + 1.0))
        return mean

    def _count_misses(self, batch: Batch, drawn: U64) -> None:
        """A URL that is drawn again and again but never gathered was dropped; nobody tells a learner of that."""
        tables, rows, there = self.tables, self.tables.find(drawn), among(drawn, batch.id)
        before = tables.column("missed", rows, 0)
        if there.all() and not before.any():
            return
        missed = np.where(there, 0, before + 1).astype(np.uint8)
        changed = np.flatnonzero((rows >= 0) & (missed != before))
        tables.links.rows["missed"][rows[changed]] = missed[changed]
        tables.links.changed(rows[changed])
        gone = rows[changed[missed[changed] >= MOST_MISSES]]
        if len(gone):
            tables.leave(gone, FREE)
            tables.forget(gone)

    def _readmit(self, batch: Batch) -> None:
        """What was gathered does wait: of the rows that are in no leaf, the first few go to theirs."""
        tables = self.tables
        outside = np.flatnonzero(tables.leaf(batch.id) < 0)[:READMITTED]
        if len(outside) and tables.live <= MOST_LINKS:
            tables.enter(self._claimed(batch, outside))

    def _claimed(self, batch: Batch, rows: Rows) -> I64:
        """The records of these rows of a batch; new ones for URLs that came another way than by a link."""
        tables = self.tables
        found = tables.find(batch.id[rows])
        new = np.flatnonzero(found < 0)
        if len(new):
            found[new] = tables.claim(batch.id[rows[new]])
            tables.links.rows["x"][found[new]] = self._describer.of_batch(batch, rows[new])
            tables.links.rows["depth"][found[new]] = batch.depth[rows[new]]
        return found

    # learning

    def assigned(self, batch: Batch, ask: Ask) -> None:
        tables = self.tables
        tables.leave(self._claimed(batch, np.arange(len(batch))), ASSIGNED)
        tables.keep_recent(batch.id)
        tables.crawl_changed()

    def learn(self, lesson: Lesson) -> None:
        tables, outcome = self.tables, outcomes(lesson)
        pages = tables.find(lesson.fetches.id)
        self._mark_fetched(outcome, pages)
        self._count_domains(lesson, outcome)
        self._add_links(lesson, pages)
        links = tables.find(lesson.links.id)
        ends = np.searchsorted(lesson.links.parent, np.arange(len(pages) + 1))
        for page in np.flatnonzero((pages >= 0) & ~np.isnan(outcome.reward)).tolist():
            of_page = links[ends[page] : ends[page + 1]]
            self._add_transition(int(pages[page]), of_page[tables.column("state", of_page, FREE) == WAITING])
        tables.crawl_changed()

    def stats(self) -> dict[str, float]:
        crawl, leaves = self.tables.crawl[0], self.tables.leaves
        return {
            "epsilon": self.epsilon(),
            "leaves": float(leaves.used),
            "waiting": float(leaves.rows["waiting"][: leaves.used].sum()),
            "transitions": float(crawl["transitions"]),
            "trained": float(crawl["trained"]),
            "domain_max_pages": self._limits.limit(PAGES),
            "slow_domain_ms": self._limits.limit(SLOW),
            "unreliable_threshold": self._limits.limit(UNRELIABLE),
        }

    def _mark_fetched(self, outcome: Outcomes, pages: I64) -> None:
        """What was fetched is done, whatever came of it; what was released waits again."""
        tables, has_record = self.tables, pages >= 0
        released = np.unique(pages[has_record & outcome.released])
        released = released[tables.links.rows["state"][released] == ASSIGNED]
        if len(released):
            tables.enter(released)
        done = has_record & ~outcome.released
        tables.leave(np.unique(pages[done]), DONE)
        tables.links.rows["reward"][pages[done]] = np.nan_to_num(outcome.reward[done])

    def _count_domains(self, lesson: Lesson, outcome: Outcomes) -> None:
        counted = np.flatnonzero(~outcome.released)
        if len(counted):
            rows, domains = self.tables.domain_rows(lesson.fetches.host[counted].tolist()), self.tables.domains
            fetched, reward = ~outcome.late[counted], outcome.reward[counted]
            np.add.at(domains.rows["fetched"], rows, fetched)
            np.add.at(domains.rows["failed"], rows, outcome.failed[counted] & fetched)
            np.add.at(domains.rows["judged"], rows, ~np.isnan(reward))
            np.add.at(domains.rows["score"], rows, np.nan_to_num(reward))
            domains.changed(rows)

    def _add_links(self, lesson: Lesson, pages: I64) -> None:
        """Links that are new and were not refused wait in their leaves. `pages` are the records of the fetches."""
        tables, links = self.tables, lesson.links
        rows = np.flatnonzero(lesson.fresh & (links.reason == None))  # noqa: E711 - for each row
        if not len(rows) or tables.live + len(rows) > MOST_LINKS:
            return
        page = np.append(pages, -1)[links.parent[rows]]  # seeds stand on no page
        depth = tables.column("depth", page, -1.0) + 1.0
        x = self._describer.of_links(tables, lesson, rows, depth, self._replay.round_number)
        claimed = tables.claim(links.id[rows])
        new = tables.links.rows["state"][claimed] != WAITING
        tables.links.rows["x"][claimed[new]] = x[new]
        tables.links.rows["depth"][claimed[new]] = depth[new]
        tables.enter(claimed[new])

    def _add_transition(self, page: int, next_links: I64) -> None:
        """A fetch becomes a sample of its leaf, which may be split then, and a transition to learn from."""
        tables, options = self.tables, self._options
        link = tables.links.rows[page]
        x, reward = link["x"].copy(), float(link["reward"])
        leaf = tree.add_sample(tables.nodes.rows, tables.leaves.rows, tables.samples.rows, x, reward)
        tables.leaves.changed(np.array([leaf]))
        count = int(tables.leaves.rows["heard"][leaf])
        tables.samples.changed(np.array([leaf * SAMPLES + (count - 1) % SAMPLES]))
        if count >= options.min_samples_per_split and tables.leaves.rows["depth"][leaf] < options.max_depth:
            self._split(leaf, min(count, SAMPLES))
        self._replay.add(x, reward, next_links)

    def _split(self, leaf: int, count: int) -> None:
        """Split a leaf if that reduces the variance of its rewards."""
        tables, split = self.tables, np.empty(3)
        tree.best_split(tables.samples.rows, leaf * SAMPLES, count, split)
        if split[0] >= 0 and tables.leaves.used < MOST_LEAVES:
            tables.split(leaf, int(split[0]), float(split[1]))
