"""When pages are fetched again: each as often as its changes are worth, no more (`policy.recrawl`).

A page that was fetched gets an instant in the store's order of what is due: when it will be worth three quarters of the
price. When that comes the page is judged afresh, by what is known and what a fetch costs then. It is brought into the
queue, before what was never fetched, or gets another instant. So an ask looks at what is due, never at all pages.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xxhash

from crawlguide.core.clock import http_date
from crawlguide.core.columns import first_of_each
from crawlguide.core.notebook import Notebook
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.freshness.rates import DAY_S
from crawlguide.guide.recrawl import looks, words
from crawlguide.guide.recrawl.known_pages import KnownPages
from crawlguide.guide.recrawl.looks import CHANGED, FAILED, GONE, SAME, Held
from crawlguide.guide.recrawl.price import Price
from crawlguide.guide.recrawl.promises import Promises
from crawlguide.policy.robots.cache import is_file
from crawlguide.policy.traps.url_scan import scan_urls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Policy
    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Crawl, Fetches
    from crawlguide.guide.recrawl.promises import PromiseState

AT_ONCE, LEAST_AT_ONCE = 1_000, 32  # pages that are judged afresh for one ask, at the most
LOOKED_AT, LOT = 2, 4  # for each that is brought; and of those so many answers' worth at once
STOCKED_S = 60.0  # after which more are brought, whatever is left of the last lot
EARLY = 0.75  # of the price at which a page is looked at again
LEAST_CHANCE = 0.2  # that a page has changed: below that nobody asks for it, however much room there is
SOONEST_S = 60.0
FARTHEST_S = 60 * DAY_S  # after which every page is judged afresh
UNTRIED_S = DAY_S  # after which a page is tried again that could not be fetched
MISSED_S, MOST_MISSES, LONGEST_MISSED_S = DAY_S, 6, 90 * DAY_S
LEAST_WEIGHT = 0.05  # of a page that is not relevant at all
FIRST = 2.0  # priority of what is brought: before all chances, which end at 1
HOST_FINE = 0
AHEAD_AT_ONCE, AHEAD_EVERY_S = 100, 60.0  # pages that are judged before their time, where there is room for more
STATES_KEPT_S = 60.0
HINTS = {  # `changefreq` of sitemaps, as changes a day
    "always": 24.0,
    "hourly": 24.0,
    "daily": 1.0,
    "weekly": 1 / 7,
    "monthly": 1 / 30,
    "yearly": 1 / 365,
    "never": 1 / 3_650,
}
HINT_LOOKS = 0.5
RENEWED_AT_ONCE = 1_000
RELEASED, SAID = 1, 2
NOTHING = np.zeros(0)


class Judged(NamedTuple):
    """What comes of pages that are due: which are brought, and when the others are judged again."""

    brought: Mask
    due: F64


class Refresher:
    """What one crawl knows of pages that it fetches again."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.promises = policy, Promises(policy)
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self.known, self.price = KnownPages(notebook), Price(notebook, self.policy)
        self._looked_ahead = self._stocked = -np.inf
        self._stock = 0  # pages of the last lot that were not given out yet
        self._impossible: set[int] = set()
        self._states: tuple[float, list[PromiseState]] = (-np.inf, [])

    def inherit(self, before: Refresher) -> None:
        """Go on with what is known, after the crawl was defined anew."""
        self.known, self.price = before.known, before.price
        self.price.policy = self.policy
        if self.promises.promises != before.promises.promises:
            self.price.renewed = 0

    # a tell

    def hear(self, fetches: Fetches, messages: Sequence[Fetch], used: Mask, at: float) -> tuple[U64, F64]:
        """Learn from the fetches that were accepted; returns which pages are due again, and when."""
        pages = used & (fetches.status >= 0) & (fetches.error != "released")
        pages &= np.array([not is_file(url) for url in fetches.url.tolist()], np.bool_)
        places = np.flatnonzero(pages)
        if not len(places):
            return fetches.id[places], np.zeros(0)
        ids, told = fetches.target_id[places], [messages[item] for item in fetches.item[places].tolist()]
        rows = self.known.claim(ids)
        kept = (rows >= 0) & first_of_each(ids[::-1])[::-1]  # of several fetches of a page the last
        places, ids, rows = places[kept], ids[kept], rows[kept]
        told = [fetch for fetch, keep in zip(told, kept.tolist(), strict=True) if keep]
        hosts, texts = fetches.target_host[places].tolist(), fetches.target_url[places].tolist()
        self._weigh(rows, fetches.relevance[places], texts)
        kinds = self._looked(ids, rows, told)
        self._learn(rows, kinds, self._chains(texts, hosts, told), at)
        self._fetched(rows, hosts)
        due = self._due_after(rows, kinds, at)
        due = np.maximum(due, at + np.array([looks.fresh_for_s(fetch.cache_control) for fetch in told]))
        over = self._forget_gone(rows)
        due = np.minimum(due, self._owed_from(rows))
        return ids[~over], due[~over]

    def _weigh(self, rows: I64, relevance: F64, urls: Sequence[str]) -> None:
        known = ~np.isnan(relevance)
        pages = self.known.pages.rows
        pages["weight"][rows[known]] = np.maximum(relevance[known], LEAST_WEIGHT)
        pages["promise"][rows] = self.promises.of(urls)
        self.known.pages.changed(rows)

    def _looked(self, ids: U64, rows: I64, told: Sequence[Fetch]) -> I64:
        """What came of each look; and what each copy holds is kept."""
        contents, found = self.known.contents.rows, np.empty(len(rows), np.int64)
        tagged: list[tuple[int, str, float]] = []
        for number, (row, fetch, (tag, modified)) in enumerate(
            zip(rows.tolist(), told, self.known.names(ids), strict=True)
        ):
            before = Held(int(contents["hash"][row]), int(contents["sketch"][row]), tag, modified)
            now = looks.held_in(fetch)
            kind = found[number] = looks.look(fetch, before, now)
            if kind in (GONE, FAILED):
                continue
            if now.hash or now.sketch:
                contents["hash"][row], contents["sketch"][row] = now.hash, now.sketch
            if now.tag or not isnan(now.modified):
                tagged.append((number, now.tag, now.modified))
        self.known.contents.changed(rows)
        if tagged:
            numbers = [number for number, _, _ in tagged]
            self.known.name(ids[numbers], [tag for _, tag, _ in tagged], [when for _, _, when in tagged])
        return found

    def _chains(self, urls: Sequence[str], hosts: Sequence[str], told: Sequence[Fetch]) -> list[tuple[int, int, int]]:
        """Content type, host and template of each page, as the groups that it learns with."""
        templates = scan_urls(urls, None).code(HOST_FINE).tolist()
        kinds = [_hash((fetch.content_type or "").partition(";")[0].strip().lower()) for fetch in told]
        return [
            (kind, _hash(f"{kind} {host}"), template ^ kind or 1)
            for kind, host, template in zip(kinds, hosts, templates, strict=True)
        ]

    def _learn(self, rows: I64, kinds: I64, chains: list[tuple[int, int, int]], at: float) -> None:
        rates, when = self.known.rates, np.full(len(rows), at)
        first = (rates.pages.rows["seen"][rows] == 0) & np.isin(kinds, (SAME, CHANGED, looks.UNKNOWN))
        rates.begin(rows[first], when[first], rates.grouped([chains[row] for row in np.flatnonzero(first).tolist()]))
        again = ~first & ((kinds == SAME) | (kinds == CHANGED))
        rates.observe(rows[again], when[again], kinds[again] == CHANGED)
        unknown = ~first & (kinds == looks.UNKNOWN)
        rates.look(rows[unknown], when[unknown])
        gone = rates.pages.rows["gone"]
        missing = rows[kinds == GONE]
        gone[missing] = np.minimum(gone[missing].astype(np.int64) + 1, 255)
        gone[rows[np.isin(kinds, (SAME, CHANGED, looks.UNKNOWN))]] = 0
        rates.pages.changed(rows)

    def _fetched(self, rows: I64, hosts: Sequence[str]) -> None:
        waited = self.known.pages.rows["released"][rows] > 0
        if waited.any():
            left = [_hash(hosts[number]) for number in np.flatnonzero(waited).tolist()]
            self.price.waits(np.array(left, np.uint64), -1)
        self.known.release(rows, 0)

    def _due_after(self, rows: I64, kinds: I64, at: float) -> F64:
        due = np.where(kinds == FAILED, at + UNTRIED_S, self._worth_looking(rows, EARLY * self.price.now, at))
        misses = self.known.rates.pages.rows["gone"][rows]
        missed = at + np.minimum(MISSED_S * 2.0 ** np.minimum(misses, 20), LONGEST_MISSED_S)
        return np.where(kinds == GONE, missed, due)

    def _forget_gone(self, rows: I64) -> Mask:
        """Pages that were found gone again and again are not asked for any more."""
        over: Mask = self.known.rates.pages.rows["gone"][rows] >= MOST_MISSES
        if over.any():
            self.known.forget(rows[over])
        return over

    def _worth_looking(self, rows: I64, price: float | F64, at: float) -> F64:
        """When each page reaches a price and may well have changed; within bounds."""
        rates = self.known.rates
        weight = self.known.pages.rows["weight"][rows].astype(np.float64)
        due = rates.due(rows, weight, np.broadcast_to(price, len(rows)).astype(np.float64))
        due = np.maximum(due, rates.due_at_chance(rows, LEAST_CHANCE))
        return np.minimum(np.maximum(due, at + SOONEST_S), at + FARTHEST_S)

    def _owed_from(self, rows: I64) -> F64:
        pages = self.known.pages.rows[rows]
        seen = self.known.rates.pages.rows["seen"][rows].astype(np.float64)
        return np.where(seen > 0, self.promises.owed_from(pages["promise"].astype(np.int64), seen), np.inf)

    # an ask

    async def bring(self, store: Store, crawl: Crawl, ask: Ask) -> None:
        """What is due comes into the queue, or is due later. Nobody else is served in between."""
        wanted = ask.budget.max_urls
        if not self._is_time(ask.at, wanted):
            return
        allowed = self.price.allowed(ask.at, LOT * wanted)
        self._stocked, self._stock = ask.at, 0
        if self.promises:
            self.warn(crawl, ask.at)
        if self.price.renewed >= 0:
            await self._renew(store, crawl)
        most = min(max(LEAST_AT_ONCE, LOOKED_AT * LOT * wanted), AT_ONCE)
        brought = await self._bring(store, crawl, ask, await store.take_due(crawl, ask.at, most), allowed)
        if self.price.per_day is not None and brought < allowed and ask.at >= self._looked_ahead + AHEAD_EVERY_S:
            self._looked_ahead = ask.at  # the price has fallen since most were judged
            soon = await store.take_due(crawl, ask.at + FARTHEST_S, AHEAD_AT_ONCE)
            await self._bring(store, crawl, ask, soon, allowed - brought, spare=True)

    def _is_time(self, at: float, wanted: int) -> bool:
        """Whether more are brought: now and then, or where the last lot, or its budget, is used up before."""
        passed, per_day = at - self._stocked, self.price.per_day
        if passed >= STOCKED_S:
            return True
        return self._stock < wanted if per_day is None else passed * per_day >= LOT * wanted * DAY_S

    async def _bring(self, store: Store, crawl: Crawl, ask: Ask, ids: U64, allowed: int, *, spare: bool = False) -> int:
        """`spare`: there is room for more than what is worth the price."""
        if not len(ids):
            return 0
        batch = await store.look(crawl, ids)
        judged = self._judged(batch, ask.at, allowed, spare)
        now, later = ids[judged.brought], ~judged.brought
        await store.schedule(crawl, ids[later], judged.due[later])
        await store.queue_again(crawl, now)
        await store.rank(crawl, now, self._priorities(now, ask.at))
        self._stock += len(now)
        return len(now)

    def _judged(self, batch: Batch, at: float, allowed: int, spare: bool) -> Judged:
        rows, hosts = (
            self.known.find(batch.id),
            np.array([_hash(name) for name in batch.hosts.name.tolist()], np.uint64),
        )
        known = rows >= 0
        brought, due = np.zeros(len(rows), np.bool_), np.full(len(rows), at + SOONEST_S)
        of_host = hosts[batch.host]
        price = self.price.now * self.price.of_hosts(of_host)
        value = np.full(len(rows), np.inf)  # what nobody knows was fetched before there was anything to learn
        here = rows[known]
        weight = self.known.pages.rows["weight"][here].astype(np.float64)
        value[known] = self.known.rates.values(here, np.full(len(here), at), weight)
        likely = np.ones(len(rows), np.bool_)
        likely[known] = self.known.rates.chance_changed(here, np.full(len(here), at)) >= LEAST_CHANCE * 0.999
        gone = np.zeros(len(rows), np.bool_)
        gone[known] = self.known.rates.pages.rows["gone"][here] > 0
        owed = np.zeros(len(rows), np.bool_)
        owed[known] = self._owed_from(here) <= at
        said = np.zeros(len(rows), np.bool_)
        said[known] = self.known.pages.rows["released"][here] == SAID
        worthy = ((spare | (value >= price)) & likely) | owed | gone | said
        order = np.lexsort((-value, ~(owed | said), ~worthy))[: min(allowed, int(worthy.sum()))]
        brought[order] = True
        refused = worthy & ~brought
        bounded = spare or bool(refused.any())
        priced = order[np.isfinite(value[order]) & ~(owed | said | gone)[order]]
        self.price.brought(len(order), float(value[priced].min()) if bounded and len(priced) else np.inf)
        self.price.waits(of_host[brought], 1)
        due[known] = self._worth_looking(here, np.maximum(price[known], 0.0), at)
        due[refused] = at + np.maximum(0.02 * (due[refused] - at), SOONEST_S)
        self.known.release(rows[brought & known], RELEASED)
        return Judged(brought, due)

    def _priorities(self, ids: U64, at: float) -> F64:
        """Before everything that was never fetched, and among themselves by the chance that they have changed."""
        return FIRST + self.chance_changed(ids, at, unknown=1.0)

    async def _renew(self, store: Store, crawl: Crawl) -> None:
        """What is promised now holds for pages that were fetched before, too: some of them with each ask."""
        first, used = self.price.renewed, self.known.pages.used
        rows = np.arange(first, min(first + RENEWED_AT_ONCE, used))
        rows = rows[self.known.pages.rows["key"][rows] > 0]
        ids = self.known.pages.rows["key"][rows].copy()
        there = np.array([found is not None for found in await store.find(crawl, ids)], np.bool_)
        rows, ids = rows[there], ids[there]
        if len(ids):
            self.known.pages.rows["promise"][rows] = self.promises.of((await store.look(crawl, ids)).url.tolist())
            self.known.pages.changed(rows)
            owed = self._owed_from(rows)
            await store.schedule(crawl, ids[np.isfinite(owed)], owed[np.isfinite(owed)])
        self.price.renewed = first + RENEWED_AT_ONCE if first + RENEWED_AT_ONCE < used else -1

    async def said_to_have_changed(self, store: Store, crawl: Crawl, ids: U64, at: float) -> None:
        """A sitemap says that these pages were changed after they were fetched."""
        rows = self.known.find(ids)
        self.known.release(rows[rows >= 0], SAID)
        await store.schedule(crawl, ids, np.full(len(ids), at))

    def hint(self, ids: U64, frequencies: Sequence[str]) -> None:
        """What a sitemap says of how often pages change: little is made of it, and nothing once it is known better."""
        rows, rates = self.known.find(ids), self.known.rates
        per_day = np.array([HINTS.get(word.strip().lower(), 0.0) for word in frequencies])
        told = (rows >= 0) & (per_day > 0)
        told[told] &= rates.pages.rows["looks"][rows[told]] == 0
        rates.hint(rows[told], per_day[told], HINT_LOOKS)

    def is_brought(self, ids: U64) -> Mask:
        """Which of these URLs wait to be fetched again because they are worth it."""
        rows = self.known.find(ids)
        found: Mask = (rows >= 0) & (self.known.pages.rows["released"][rows] > 0) if len(self.known) else rows >= 0
        return found

    def answered(self, batch: Batch, wanted: int) -> None:
        """What an answer holds, so that the price knows what else a fetch would bring."""
        new = np.isnan(batch.fetched)
        self._stock -= len(batch) - int(new.sum())
        if not new.any():
            self.price.answered(NOTHING, len(batch), wanted)
            return
        unseen = self.known.rates.unseen_value(FARTHEST_S / DAY_S)
        worth = np.clip(batch.value[new], LEAST_WEIGHT, 1.0) * unseen
        self.price.answered(worth, len(batch), wanted)

    def conditions(self, ids: U64) -> list[tuple[str, str]]:
        """What each page is to be asked for with: `if_none_match` and `if_modified_since`, "" for none."""
        return [(tag, "" if isnan(when) else http_date(when)) for tag, when in self.known.names(ids)]

    # for people

    def chance_changed(self, ids: U64, at: float, unknown: float = np.nan) -> F64:
        """The chance that each page has changed since it was fetched."""
        rows, chance = self.known.find(ids), np.full(len(ids), unknown)
        known = rows >= 0
        known[known] = self.known.rates.pages.rows["seen"][rows[known]] > 0
        chance[known] = self.known.rates.chance_changed(rows[known], np.full(int(known.sum()), at))
        return chance

    def facts(self, id_: int, at: float) -> dict[str, float | None]:
        """What is known of one page, as numbers; nothing for one that was never fetched."""
        rows = self.known.find(np.array([id_], np.uint64))
        if rows[0] < 0 or not self.known.rates.pages.rows["seen"][rows[0]]:
            return {}
        weight = self.known.pages.rows["weight"][rows].astype(np.float64)
        return {
            "changes_per_day": float(self.known.rates.per_day(rows)[0]),
            "seen": float(self.known.rates.pages.rows["seen"][rows[0]]),
            "chance_changed": float(self.known.rates.chance_changed(rows, np.full(1, at))[0]),
            "refresh_value": float(self.known.rates.values(rows, np.full(1, at), weight)[0]),
            "refresh_price": self.price.now,
        }

    def words(self, id_: int, at: float) -> list[str]:
        facts = self.facts(id_, at)
        return [words.of_page(facts, at)] if facts else []

    def states(self, at: float) -> list[PromiseState]:
        """How things stand with the promises; looked at once a minute."""
        if at >= self._states[0] + STATES_KEPT_S:
            self._states = at, self.promises.states(self.known, self.price, at) if self.promises else []
        return self._states[1]

    def stats(self, at: float) -> dict[str, Any]:
        return words.stats(self, at)

    def warn(self, crawl: Crawl, at: float) -> None:
        """The log is told once of each promise that cannot be kept, and that it can be again."""
        for number, state in enumerate(self.states(at)):
            if state.possible == (number in self._impossible):
                self._impossible ^= {number}
                happened(
                    "promise_possible" if state.possible else "promise_impossible",
                    "crawl {crawl}, promise {promise}: {words}",
                    WARNING,
                    **crawl.logged,
                    promise=number,
                    words=state.words,
                )


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode()) or 1
