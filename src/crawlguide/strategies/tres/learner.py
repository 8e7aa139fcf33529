"""Links that were found get their features and go to their leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.columns import among
from crawlguide.core.notebook import Notebook
from crawlguide.core.types import Draw
from crawlguide.strategies.shared.outcomes import outcomes
from crawlguide.strategies.tres import features, network
from crawlguide.strategies.tres import leaves as rooms
from crawlguide.strategies.tres import leaves as tree
from crawlguide.strategies.tres.features import PAGES, SLOW, UNRELIABLE, Profiles
from crawlguide.strategies.tres.memory import TresMemory
from crawlguide.strategies.tres.options import Settings, param
from crawlguide.strategies.tres.records import (
    DONE,
    FREE,
    GIVEN,
    MOST_LEAVES,
    MOST_LINKS,
    ONLINE,
    PATIENCE,
    ROOM,
    SEEN,
    WAITING,
    WELCOMED,
    X,
)
from crawlguide.strategies.tres.replay import Tuning

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal
    from crawlguide.core.tables import F32, F64, I64, U64, Mask, Rows
    from crawlguide.core.types import Ask, Batch, Lesson
    from crawlguide.strategies.shared.outcomes import Outcomes


def found(memory: TresMemory, learner: Tres, lesson: Lesson, reward: F64, pages: I64) -> None:
    """Those nobody knew before and nobody refused. `pages` are the records of the lesson's fetches, -1: unknown."""
    links = lesson.links
    rows = np.flatnonzero(lesson.fresh & (links.reason == None))  # noqa: E711 - for each row
    if not len(rows) or memory.live + len(rows) > MOST_LINKS:
        return
    fetched = np.append(pages, -1)[links.parent[rows]]  # seeds stand on no page
    depth = memory.told("depth", fetched, -1.0) + 1.0
    x = described(memory, learner, lesson, rows)
    x[:, features.DEPTH] = features.depth(depth)
    x[:, features.PARENT_SCORE] = np.append(reward, 0.0)[links.parent[rows]]
    x[:, features.SIBLING_SCORE] = np.append(siblings(memory, lesson, len(pages)), 0.0)[links.parent[rows]]
    claimed = memory.claim(links.id[rows])
    new = memory.links.rows["state"][claimed] != WAITING
    memory.links.rows["x"][claimed[new]] = x[new]
    memory.links.rows["depth"][claimed[new]] = depth[new]
    memory.enter(claimed[new])


def described(memory: TresMemory, learner: Tres, lesson: Lesson, rows: I64) -> F32:
    """The features that do not depend on the page where a link stands."""
    urls, hosts = lesson.links.url[rows].tolist(), lesson.links.host[rows].tolist()
    domains = memory.domain(hosts)
    fetched, failed, score = (memory.domains.rows[name][domains] for name in ("fetched", "failed", "score"))
    x = np.zeros((len(rows), X), np.float32)
    x[:, features.DOMAIN_RELEVANCE] = features.domain_relevance(score, fetched)
    x[:, features.DOMAIN_COUNT] = features.domain_count(fetched)
    x[:, features.DOMAIN_FAILURE_RATE] = features.domain_failure_rate(failed, fetched)
    x[:, features.ANCHOR_SIMILARITY] = learner.likeness.of(lesson.links.anchor[rows].tolist(), urls)
    x[:, features.PATH_DEPTH] = features.path_depth(urls)
    x[:, features.HAS_QUERY] = features.has_query(urls)
    x[:, features.DOMAIN_WEIGHT] = features.domain_weight(hosts, learner.settings.domain_weights)
    x[:, features.ROUND_DISCOVERED] = features.round_discovered(learner.turn)
    return x


def siblings(memory: TresMemory, lesson: Lesson, pages: int) -> F64:
    """For each page the mean reward of those of its links that were fetched."""
    parent, known = lesson.links.parent, memory.find(lesson.links.id)
    done = np.flatnonzero((memory.told("state", known, FREE) == DONE) & (parent >= 0))
    count = np.bincount(parent[done], minlength=pages)[:pages]
    total = np.bincount(parent[done], memory.links.rows["reward"][known[done]], minlength=pages)[:pages]
    mean: F64 = total / np.maximum(count, 1)
    return mean


# Select and Tune: draws from the leaves, values by the network, and learns from what was fetched.

WORDS = 0.1  # what the words of a link count beside the mean of its leaf
LOOKED_AT = 4  # times as many candidates as are wanted, so that filters leave enough
AHEAD = 3.0  # more than any value, and enough for slow ones to stay ahead of what was not drawn
NOTHING: U64 = np.zeros(0, np.uint64)


class LeafDraw(NamedTuple):
    """What was drawn from the leaves for one ask, sorted by id, and the place of each in the draw."""

    ids: U64
    places: F64


def drawn_for(ask: Ask) -> LeafDraw:
    return LeafDraw(NOTHING, np.zeros(0)) if ask.draw is None else ask.draw.state


class Tres:
    """A URL is worth the mean reward of its leaf; what is drawn from the leaves goes before everything else."""

    version = "tres-1"
    transferable = ("t.net",)

    def __init__(self, settings: Settings, seed: int, goal: Goal, model: F32 | None = None) -> None:
        self.settings, self._seed, self._model = settings, seed & ((1 << 63) - 1), model
        self.likeness = features.Likeness(goal)
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        settings = self.settings
        alpha = param(settings.per_alpha).value
        self.memory = TresMemory(notebook, self._seed, settings.replay_capacity, alpha, self._model)
        self.profiles = Profiles(settings, self.memory.crawl)
        self._tuning = Tuning(settings, self.memory)

    def predict(self, batch: Batch) -> F64:
        """The mean reward of each URL's leaf, drawn towards that of the whole crawl while little is known."""
        return self._mean(self.memory.leaf(batch.id))

    def exploration_bonus(self, batch: Batch) -> F64:
        """Nothing: chance is in the draw."""
        return np.zeros(len(batch))

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64:
        """What was drawn goes before everything else, in the order of the draw; slow domains come last of it.

        Where a person set a priority, 1 goes before all that, and 0 behind all.
        """
        place = self.places(batch, ask)
        ahead = np.where(np.isinf(place), 0.0, AHEAD - place / max(len(drawn_for(ask).ids), 1))
        ahead[self.profiles.slow(batch.hosts)[batch.host]] -= 1.0
        return np.where(np.isnan(batch.manual_priority), np.maximum(ahead, 0.0), (AHEAD + 1.0) * batch.manual_priority)

    def places(self, batch: Batch, ask: Ask) -> F64:
        place, drawn = np.full(len(batch), np.inf), drawn_for(ask)
        if len(drawn.ids):
            at = np.minimum(np.searchsorted(drawn.ids, batch.id), len(drawn.ids) - 1)
            mine = drawn.ids[at] == batch.id
            place[mine] = drawn.places[at[mine]]
        return place

    def acceptable(self, batch: Batch, ask: Ask) -> Mask:
        self._miss(batch, drawn_for(ask).ids)
        self._welcome(batch)
        keep = self.profiles.keep(batch, ask.budget.max_urls)
        self.memory.touch()
        return keep

    def arms(self, batch: Batch) -> tuple[F64, F64]:
        leaves = self.memory.leaf(batch.id)
        waiting = np.maximum(self.memory.leaves.rows["waiting"][leaves], 1)
        return leaves.astype(np.float64), np.where(leaves < 0, 1.0, 1.0 / waiting)

    def draw(self, ask: Ask, wanted: int) -> Draw:
        """Select: one URL from each leaf, valued by one pass of the network, in ε-greedy order."""
        memory, wanted = self.memory, LOOKED_AT * wanted
        drawn = np.empty(memory.leaves.used + wanted, np.int64)
        most = wanted if self.settings.per_leaf == "several" else 1
        leaves = memory.leaves.rows[: memory.leaves.used]
        crawl, seed = memory.crawl, self._seed
        drawn = drawn[: rooms.draw(leaves, memory.rooms.rows, crawl, seed, wanted, most, drawn)]
        order = np.empty(min(wanted, len(drawn)), np.int64)
        rooms.greedy(self.epsilon(), crawl, seed, np.argsort(-self._valued(drawn), kind="stable"), order)
        memory.touch()
        ids = memory.links.rows["id"][drawn[order]]
        by_id = np.argsort(ids, kind="stable")
        return Draw(ids[by_id], frozenset(), LeafDraw(ids[by_id], by_id.astype(np.float64)))

    def assigned(self, batch: Batch, ask: Ask) -> None:
        memory = self.memory
        known = memory.find(batch.id)
        new = np.flatnonzero(known < 0)
        if len(new):
            known[new] = self._described(batch, new)
        memory.leave(known, GIVEN)
        memory.let_go(batch.id)
        memory.touch()

    def learn(self, lesson: Lesson) -> None:
        memory, told = self.memory, outcomes(lesson)
        pages = memory.find(lesson.fetches.id)
        self._judge(lesson, told, pages)
        found(memory, self, lesson, np.nan_to_num(told.reward), pages)
        links = memory.find(lesson.links.id)
        ends = np.searchsorted(lesson.links.parent, np.arange(len(pages) + 1))
        for page in np.flatnonzero((pages >= 0) & ~np.isnan(told.reward)).tolist():
            ways = links[ends[page] : ends[page + 1]]
            self._experience(int(pages[page]), ways[memory.told("state", ways, FREE) == WAITING])
        memory.touch()

    def epsilon(self) -> float:
        """From 1 down to 0.05, over so many transitions, or rounds of them."""
        settings = self.settings
        steps = settings.decay_steps * (settings.pages_per_round if settings.decay_unit == "rounds" else 1)
        done = min(float(self.memory.crawl[0]["transitions"]) / steps, 1.0)
        return settings.epsilon + done * (settings.epsilon_min - settings.epsilon)

    def stats(self) -> dict[str, float]:
        crawl, leaves = self.memory.crawl[0], self.memory.leaves
        return {
            "epsilon": self.epsilon(),
            "leaves": float(leaves.used),
            "waiting": float(leaves.rows["waiting"][: leaves.used].sum()),
            "transitions": float(crawl["transitions"]),
            "trained": float(crawl["trained"]),
            "domain_max_pages": self.profiles.limit(PAGES),
            "slow_domain_ms": self.profiles.limit(SLOW),
            "unreliable_threshold": self.profiles.limit(UNRELIABLE),
        }

    @property
    def turn(self) -> int:
        """The number of the round."""
        return self._tuning.turn

    def _valued(self, links: I64) -> F64:
        """By the network. As long as it has nothing to tell, by the tree, and among equals by the words of the link."""
        memory, values, x = self.memory, np.empty(len(links)), self.memory.links.rows["x"][links]
        if self.settings.untrained == "tree" and not self._network_speaks():
            return (
                self._mean((memory.places[links] // ROOM).astype(np.int64)) + WORDS * x[:, features.ANCHOR_SIMILARITY]
            )
        network.values(memory.weights(ONLINE), x, values)
        return values

    def _network_speaks(self) -> bool:
        """It came trained, or was trained here and has seen a reward."""
        crawl = self.memory.crawl[0]
        return bool(crawl["taught"] or (crawl["trained"] and crawl["reward"] > 0.0))

    def _mean(self, leaves: I64) -> F64:
        """Of each leaf; of none (-1) that of the whole crawl."""
        memory = self.memory
        crawl, rows = memory.crawl[0], memory.leaves.rows[leaves]
        overall = (crawl["reward"] + 0.5) / (crawl["transitions"] + 1.0)
        mean: F64 = np.where(leaves < 0, overall, (rows["total"] + overall) / (rows["heard"] + 1.0))
        return mean

    def _described(self, batch: Batch, rows: Rows) -> I64:
        """Records for URLs that came another way."""
        memory = self.memory
        claimed = memory.claim(batch.id[rows])
        memory.links.rows["x"][claimed] = features.of_batch(batch, rows, self.settings.domain_weights)
        memory.links.rows["depth"][claimed] = batch.depth[rows]
        return claimed

    def _miss(self, batch: Batch, drawn: U64) -> None:
        """What was drawn and could not be had, again and again, is gone: nobody says so when a URL is dropped."""
        memory, rows, there = self.memory, self.memory.find(drawn), among(drawn, batch.id)
        before = memory.told("missed", rows, 0)
        if there.all() and not before.any():
            return
        missed = np.where(there, 0, before + 1).astype(np.uint8)
        moved = np.flatnonzero((rows >= 0) & (missed != before))
        memory.links.rows["missed"][rows[moved]] = missed[moved]
        memory.links.changed(rows[moved])
        gone = rows[moved[missed[moved] >= PATIENCE]]
        if len(gone):
            memory.leave(gone, FREE)
            memory.forget(gone)

    def _welcome(self, batch: Batch) -> None:
        """What was gathered does wait: of that which is in no leaf, the first few find one."""
        memory = self.memory
        outside = np.flatnonzero(memory.leaf(batch.id) < 0)[:WELCOMED]
        if not len(outside) or memory.live > MOST_LINKS:
            return
        known = memory.find(batch.id[outside])
        new = np.flatnonzero(known < 0)
        if len(new):
            known[new] = self._described(batch, outside[new])
        memory.enter(known)

    def _judge(self, lesson: Lesson, told: Outcomes, pages: I64) -> None:
        """What was fetched is done, for better or worse; what came back unused waits again. Domains keep count."""
        memory = self.memory
        mine = pages >= 0
        back = np.unique(pages[mine & told.released])
        back = back[memory.links.rows["state"][back] == GIVEN]
        if len(back):
            memory.enter(back)
        done = mine & ~told.released
        memory.leave(np.unique(pages[done]), DONE)
        memory.links.rows["reward"][pages[done]] = np.nan_to_num(told.reward[done])
        counted = np.flatnonzero(~told.released & ~told.late)
        if len(counted):
            rows, domains = memory.domain(lesson.fetches.host[counted].tolist()), memory.domains
            np.add.at(domains.rows["fetched"], rows, 1.0)
            np.add.at(domains.rows["failed"], rows, told.failed[counted].astype(np.float64))
            np.add.at(domains.rows["score"], rows, np.nan_to_num(told.reward[counted]))
            domains.changed(rows)

    def _experience(self, page: int, ways: I64) -> None:
        """The tree sees it, and it becomes a transition."""
        memory, settings = self.memory, self.settings
        link = memory.links.rows[page]
        x, reward = link["x"].copy(), float(link["reward"])
        leaf = tree.see(memory.nodes.rows, memory.leaves.rows, memory.samples.rows, x, reward)
        memory.leaves.changed(np.array([leaf]))
        heard = int(memory.leaves.rows["heard"][leaf])
        memory.samples.changed(np.array([leaf * SEEN + (heard - 1) % SEEN]))
        if heard >= settings.min_samples_per_split and memory.leaves.rows["depth"][leaf] < settings.max_depth:
            self._test(leaf, min(heard, SEEN))
        self._tuning.add(x, reward, ways)

    def _test(self, leaf: int, count: int) -> None:
        memory, split = self.memory, np.empty(3)
        tree.best_split(memory.samples.rows, leaf * SEEN, count, split)
        if split[0] >= 0 and memory.leaves.used < MOST_LEAVES:
            memory.split(leaf, int(split[0]), float(split[1]))
