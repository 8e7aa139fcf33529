"""How often pages change, learned from what fetches see: one bit each, was it different since the last time.

A page costs 32 bytes. It keeps what its own observations say, apart from what is known of its kind: the prior is added
whenever the belief is needed, so that a page that was seen once gains by what is learned from its neighbours tomorrow.

**Prior.** Pages belong to groups, each with a parent: host × URL template → host → content type → all. A group holds
the sum of its pages' mean rates and mean log rates, one vote a page, replaced with every observation (incremental
expectation maximisation). Its Gamma prior follows from these and its parent's, which counts as `SHRINKAGE` pages. The
page's own vote is left out when its own prior is made, else it would believe itself twice.

**Age.** Real pages change in bursts: one that was edited yesterday will sooner be edited again than one that rested for
a year, and a new page sooner than an old one. So every page stands at an age, the time since its last change that was
seen (or since it was found), and each span of ages has a factor on all rates, learned as levels are. Days count as many
times as their factor says; where pages change by chance all factors stay about one.

**Drift.** Pages of a group often become livelier together: a group has a level, a factor on the rates of its pages,
tracked by a Kalman filter on its logarithm. What a single page has seen fades, too (`memory_days`).
"""

from __future__ import annotations

from math import exp, expm1, inf, log, log1p
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.kernels import bools, f64s, i64s, kernel, named_tuple, nothing, one_f64, one_i64, part, records
from crawlguide.core.notebook import Sheet
from crawlguide.freshness.posterior import believed, chance_unchanged, expected_value, shape_of
from crawlguide.freshness.value import LONGEST_GAP, SHORTEST_GAP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, I64, Mask

DAY_S = 86_400.0
NO_GROUP = -1
MOST_GROUPS = 1 << 16
SHRINKAGE = 2.0  # pages that a parent counts for in the prior of a group
FIRST_SHAPE, FIRST_EXPOSURE = 1.0, 4.0  # of all pages, before anything is known: about once in four days
FIRST_MEAN_LOG = -0.5772156649015329 - log(FIRST_EXPOSURE)  # ψ(1) − log b
FIRST_SPREAD = 0.5772156649015329  # of shape 1: log a − ψ(a)
FIRST_VOTES = 4.0  # pages that this counts for
OVERSTEP = 2.0  # how far the spread of a group goes with one vote of each of its pages
LEAST_SPREAD, MOST_SPREAD = 0.01, 5.0
MOST_SHAPE, LEAST_SHAPE = 10.0, 0.3
WANDER = 0.001  # variance by which the logarithm of a group's level may move in a day
MOST_DOUBT = 1.0
ASSUMED = 500.0  # looks that the first assumption counts for
MOST_WRONG = 0.2
AGES = 9  # spans, each √10 times as long as the one before; the first ends after `FIRST_AGE` days
FIRST_AGE, LONGER = 0.1, 10.0**0.5
WAYS = 3
QUIET, NEW, EDITED = 0, 1, 2  # ages count from the first look, from when the page came to a known site, from a change
NEW_AFTER = 7.0  # days after the first look at its site: then a page that is found is a new one
AGE_DOUBT = 0.5  # variance of the logarithm of an age's factor before anything is known
AGE_WANDER = 1e-6  # by which it may move with a look
FIXED = 1 + WAYS * AGES  # groups that are always there: all pages, then the ages
KEPT = 1.0 - 1e-5  # of what was counted, with each look
FEWEST = 3  # pages whose spread says something
MONTH = 30.0  # days
LEAST_GAP = 1e-4  # days: two looks within seconds are one
LAST_SECOND = 4_294_967_295.0

PAGE = np.dtype(
    [
        ("seen", np.uint32),  # second of the last look; 0: never
        ("since", np.uint32),  # second from which its age counts
        ("shape", np.float32),  # what its own observations add to the prior
        ("exposure", np.float32),
        ("vote", np.float32),  # its mean rate and mean log rate as they stand in its groups; 0: it did not vote yet
        ("log_vote", np.float32),
        ("group", np.uint16),
        ("looks", np.uint8),  # that told whether it changed; 255: as many or more
        ("gone", np.uint8),  # looks in a row that found it gone
        ("way", np.uint8),  # what its age counts from
    ],
    align=True,
)
GROUP = np.dtype(
    [
        ("key", np.uint64),
        ("votes", np.float64),
        ("log_votes", np.float64),
        ("spread", np.float64),  # how unlike its pages are: log of the mean rate − mean of the logs
        ("level", np.float64),  # logarithm of how much livelier its pages are than they used to be
        ("doubt", np.float64),  # variance of that
        ("at", np.float64),
        ("began", np.float64),  # the first look at a page of it
        ("alarms", np.float64),  # of all pages alone: looks that were believed to be wrong, and all that could be
        ("calm", np.float64),
        ("misses", np.float64),
        ("moved", np.float64),
        ("pages", np.int32),
        ("parent", np.int32),
    ],
    align=True,
)
PAGES, GROUPS = records(PAGE), records(GROUP)


class Terms(NamedTuple):
    """How observations are believed; both chances are what is assumed at first, and learned from then on."""

    false_alarm: float
    miss: float
    memory_days: float


TERMS = named_tuple(Terms, one_f64, one_f64, one_f64)


class Rates:
    """Change rates of pages by row number. The rows are the caller's; `fit` makes room for them."""

    def __init__(self, *, false_alarm: float = 0.001, miss: float = 0.001, memory_days: float = 180.0) -> None:
        self.pages, self.groups = Sheet(PAGE), Sheet(GROUP)
        self.terms = Terms(false_alarm, miss, memory_days)
        self._slots: dict[int, int] = {}
        self._begin()

    def remember(self, notebook: Notebook) -> None:
        """Go on from what is in the notebook, and write into it from now on."""
        self.pages, self.groups = notebook.sheet("fr-rates", PAGE), notebook.sheet("fr-group", GROUP)
        self._begin()

    def fit(self, count: int) -> None:
        """Have room for the rows 0 to count − 1."""
        self.pages.fit(count)

    def grouped(self, chains: Sequence[Sequence[int]]) -> I64:
        """The group of each page, whose chain of keys (64-bit, not 0) goes from the widest group to its own.

        Unknown groups are added; where there are too many of them, the widest that is known is taken.
        """
        return np.array([self._group(chain) for chain in chains], np.int64)

    def begin(self, rows: I64, at: F64, group: I64) -> None:
        """First looks at pages: from now on changes can be seen. A page that was seen before only changes its group."""
        begin(self.pages.rows, self.groups.rows, rows, at, group)
        self.pages.changed(rows)
        self.groups.changed(self._touched(rows))

    def observe(self, rows: I64, at: F64, changed: Mask) -> None:
        """Later looks, in the order in which they happened."""
        observe(self.pages.rows, self.groups.rows, rows, at, changed, self.terms)
        self.pages.changed(rows)
        self.groups.changed(self._touched(rows))

    def look(self, rows: I64, at: F64) -> None:
        """Looks that told nothing but that the page is there: what is seen from now on counts from now."""
        self.pages.rows["seen"][rows] = np.clip(at, 1.0, LAST_SECOND)
        self.pages.changed(rows)

    def unseen_value(self, days: float) -> float:
        """What fetching a page is worth of which nothing is known, for copies that are kept so many days."""
        nobody = np.zeros(1, PAGE)
        nobody["seen"] = 1
        out = np.empty(1)
        values_of(nobody, self.groups.rows, np.zeros(1, np.int64), np.full(1, 1.0 + days * DAY_S), np.ones(1), out)
        return float(out[0])

    def forget(self, rows: I64) -> None:
        """Pages that are no more: their votes are taken back, and their rows may be used again."""
        forget(self.pages.rows, self.groups.rows, rows)
        self.pages.changed(rows)
        self.groups.changed(self._touched(rows))

    def values(self, rows: I64, at: F64, weight: F64) -> F64:
        """The expected crawl value of each page at an instant, in weighted days; never seen: as much as it can be."""
        out = np.empty(len(rows))
        values_of(self.pages.rows, self.groups.rows, rows, at, weight, out)
        return out

    def due(self, rows: I64, weight: F64, price: F64) -> F64:
        """The instant at which each page will be worth its price; infinite: never, as far as is known now."""
        out = np.empty(len(rows))
        due_of(self.pages.rows, self.groups.rows, rows, weight, price, out)
        return out

    def chance_changed(self, rows: I64, at: F64) -> F64:
        """The chance that each page is different from what was seen of it; 1 for a page that was never seen."""
        out = np.empty(len(rows))
        chances_of(self.pages.rows, self.groups.rows, rows, at, out)
        return out

    def due_at_chance(self, rows: I64, chance: float) -> F64:
        """The instant at which each page has changed with such a chance."""
        out = np.empty(len(rows))
        chances_reached(self.pages.rows, self.groups.rows, rows, chance, out)
        return out

    def hint(self, rows: I64, per_day: F64, looks: float) -> None:
        """Somebody says how often pages change: as much evidence as so many looks."""
        hinted(self.pages.rows, rows, per_day, looks)
        self.pages.changed(rows)

    def per_day(self, rows: I64) -> F64:
        """The mean of what is believed of each page's changes a day, until it is likely to change again."""
        out = np.empty(len(rows))
        rates_of(self.pages.rows, self.groups.rows, rows, out)
        return out

    def _begin(self) -> None:
        if not self.groups.used:
            self.groups.fit(FIXED)
            for slot in range(FIXED):
                self.groups.rows[slot] = _blank(0 if slot else 1, FIRST_SPREAD, NO_GROUP)  # no page names a key 0
            self.groups.rows["doubt"][1:FIXED] = AGE_DOUBT
            self.groups.changed(np.arange(FIXED))
        keys = self.groups.rows["key"][: self.groups.used].tolist()
        self._slots = {key: slot for slot, key in enumerate(keys) if key}

    def _group(self, chain: Sequence[int]) -> int:
        slot = 0
        for key in chain:
            found = self._slots.get(key)
            if found is None:
                if self.groups.used >= MOST_GROUPS:
                    break
                found = self._added(key, slot)
            slot = found
        return slot

    def _added(self, key: int, parent: int) -> int:
        slot = self.groups.used
        self.groups.fit(slot + 1)
        self.groups.rows[slot] = _blank(key, self.groups.rows["spread"][parent], parent)
        self.groups.changed(np.array([slot]))
        self._slots[key] = slot
        return slot

    def _touched(self, rows: I64) -> I64:
        """The groups of pages, with all above them."""
        found = np.unique(self.pages.rows["group"][rows])
        parents, every = self.groups.rows["parent"], [found, np.arange(1, FIXED)]
        while len(found):
            found = np.unique(parents[found])
            found = found[found >= 0]
            every.append(found)
        return np.concatenate(every).astype(np.int64)


def _blank(key: int, spread: float, parent: int) -> tuple[float, ...]:
    return (key, 0.0, 0.0, spread, *(0.0,) * 8, 0, parent)


@part
def second(at):  # type: ignore[no-untyped-def]
    """As a page keeps an instant: whole seconds, never 0."""
    return min(max(at, 1.0), LAST_SECOND)


@part
def prior_of(groups, page):  # type: ignore[no-untyped-def]
    """Shape and exposure of the prior of a page, its own vote left out, and the level of its group, as a factor."""
    chain, depth = one_i64(page.group), 0
    one = two = three = four = one_i64(NO_GROUP)
    while chain >= 0 and depth < 4:  # at most four: all, content type, host, template
        one, two, three, four = chain, one, two, three
        chain = groups[chain].parent
        depth += 1
    mean_log, spread, level, weight = FIRST_MEAN_LOG, FIRST_SPREAD, 0.0, FIRST_VOTES
    for slot in (one, two, three, four):
        if slot >= 0:
            group = groups[slot]
            others = group.pages - (page.vote > 0.0)
            mean_log = (weight * mean_log + group.log_votes - page.log_vote) / (weight + others)
            spread = (weight * spread + others * group.spread) / (weight + others)
            level += group.level
            weight = SHRINKAGE
    shape = min(max(shape_of(spread), LEAST_SHAPE), MOST_SHAPE)
    return shape, shape / exp(mean_log + spread), exp(level)


@part
def belief_of(groups, page):  # type: ignore[no-untyped-def]
    """Shape and exposure of what is believed of a page, and its level: rates are in changes a day at level one."""
    shape, exposure, level = prior_of(groups, page)
    return max(shape + page.shape, 0.2 * shape), max(exposure + page.exposure, 0.2 * exposure), level


@part
def end_of(age):  # type: ignore[no-untyped-def]
    """Where a span of ages ends, in days; the last has no end."""
    return FIRST_AGE * LONGER**age if age < AGES - 1 else inf


@part
def counted(groups, page, at):  # type: ignore[no-untyped-def]
    """The days from the last look to an instant, each as many times as the factor of the page's age says."""
    since, until = (page.seen - page.since) / DAY_S, (at - page.since) / DAY_S
    total = low = 0.0
    for age in range(AGES):
        high = end_of(age)
        span = min(until, high) - max(since, low)
        if span > 0.0:
            total += span * exp(groups[1 + page.way * AGES + age].level)
        low = high
    return total


@part
def reached(groups, page, days):  # type: ignore[no-untyped-def]
    """How many days after the last look so many days are counted."""
    since = (page.seen - page.since) / DAY_S
    place, left = since, days
    for age in range(AGES):
        high, factor = end_of(age), exp(groups[1 + page.way * AGES + age].level)
        if high > place:
            if factor * (high - place) >= left:
                return place + left / factor - since
            left -= factor * (high - place)
            place = high
    return inf


@part
def worth(groups, page, shape, exposure, level, days):  # type: ignore[no-untyped-def]
    """The expected value of a fetch so many days after the last look, in days."""
    passed = level * counted(groups, page, page.seen + days * DAY_S)
    return expected_value(shape, exposure, passed) * days / passed if passed > 0.0 else 0.0


@part
def days_to_worth(groups, page, shape, exposure, level, price):  # type: ignore[no-untyped-def]
    """After how many days a fetch is worth a price; infinite if it never is (bisection: values rise)."""
    low, high = log(SHORTEST_GAP), log(LONGEST_GAP)
    if worth(groups, page, shape, exposure, level, LONGEST_GAP) <= price:
        return inf
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        if worth(groups, page, shape, exposure, level, exp(middle)) < price:
            low = middle
        else:
            high = middle
    return exp(high)


@part
def take_back(groups, page):  # type: ignore[no-untyped-def]
    """The vote of a page leaves its groups."""
    slot = one_i64(page.group)
    while slot >= 0 and page.vote > 0.0:
        groups[slot].pages -= 1
        groups[slot].votes -= page.vote
        groups[slot].log_votes -= page.log_vote
        slot = groups[slot].parent
    page.vote = 0.0
    page.log_vote = 0.0


@part
def found_out(group):  # type: ignore[no-untyped-def]
    """How unlike its pages are follows from their votes, a step with each.

    Beliefs are still drawn to the prior that they were made with, so that a whole step goes too short a way.
    """
    pages = group.pages
    seen = max(log(max(group.votes, 1e-9) / pages) - group.log_votes / pages, LEAST_SPREAD)
    group.spread = min(max(group.spread * exp(OVERSTEP / pages * log(seen / group.spread)), LEAST_SPREAD), MOST_SPREAD)


@part
def vote(groups, page, mean, mean_log):  # type: ignore[no-untyped-def]
    """A page says how often it changes, to all its groups."""
    take_back(groups, page)
    page.vote = mean
    page.log_vote = mean_log
    slot = one_i64(page.group)
    while slot >= 0:
        groups[slot].pages += 1
        groups[slot].votes += page.vote
        groups[slot].log_votes += page.log_vote
        if groups[slot].pages >= FEWEST:
            found_out(groups[slot])
        slot = groups[slot].parent


@part
def move_ages(groups, page, belief, days, at, changed, wrong_looks):  # type: ignore[no-untyped-def]
    """The factors of all ages that a page went through since its last look."""
    shape, exposure, level = belief
    since, until = (page.seen - page.since) / DAY_S, (at - page.since) / DAY_S
    low = 0.0
    for age in range(AGES):
        high = end_of(age)
        span = min(until, high) - max(since, low)
        low = high
        if span > 0.0:
            group = groups[1 + page.way * AGES + age]
            share = span * exp(group.level) / days
            group.doubt = min(group.doubt + AGE_WANDER, AGE_DOUBT)
            move_level(group, shape, exposure, level * days, changed, wrong_looks, share)


@part
def wander(group, at):  # type: ignore[no-untyped-def]
    """The level of a group may have moved since it was last heard of."""
    days = max(at - group.at, 0.0) / DAY_S if group.at > 0.0 else 1.0
    group.doubt = min(group.doubt + WANDER * days, MOST_DOUBT)
    group.at = max(group.at, at)


@part
def move_level(group, shape, exposure, gap, changed, wrong_looks, share):  # type: ignore[no-untyped-def]
    """A Kalman step of the logarithm of a group's level: more changed than was expected, or less.

    `share` is how much of the gap the level counts for.
    """
    false_alarm, miss = wrong_looks
    same = chance_unchanged(shape, exposure, gap)
    heard = 1.0 - false_alarm - miss
    chance = false_alarm + heard * (1.0 - same)
    slope = share * heard * same * shape * gap / (exposure + gap)  # of the chance, by the logarithm of the level
    surprise = slope / chance if changed else -slope / (1.0 - chance)
    known = slope * slope / (chance * (1.0 - chance))
    group.doubt /= 1.0 + group.doubt * known
    group.level = min(max(group.level + group.doubt * surprise, -5.0), 5.0)


@part
def wrong(everything, terms):  # type: ignore[no-untyped-def]
    """The chances that an unchanged page looks changed, and the other way round."""
    false_alarm = (everything.alarms + ASSUMED * terms.false_alarm) / (everything.calm + ASSUMED)
    miss = (everything.misses + ASSUMED * terms.miss) / (everything.moved + ASSUMED)
    return min(false_alarm, MOST_WRONG), min(miss, MOST_WRONG)


@part
def count_wrong(everything, same, changed, false_alarm, miss):  # type: ignore[no-untyped-def]
    """How likely this look was wrong counts as so much of a wrong look (expectation maximisation, fading)."""
    everything.alarms *= KEPT
    everything.calm *= KEPT
    everything.misses *= KEPT
    everything.moved *= KEPT
    if changed:
        calm = false_alarm * same / max(false_alarm * same + (1.0 - miss) * (1.0 - same), 1e-12)
        everything.alarms += calm
    else:
        calm = (1.0 - false_alarm) * same / max((1.0 - false_alarm) * same + miss * (1.0 - same), 1e-12)
        everything.misses += 1.0 - calm
    everything.calm += calm
    everything.moved += 1.0 - calm


@part
def is_new(groups, page, at):  # type: ignore[no-untyped-def]
    """Whether the site of a page was known for some time when it was found; its widest groups learn that it is."""
    slot = groups[page.group].parent if groups[page.group].parent > 0 else one_i64(page.group)
    new = groups[slot].began > 0.0 and at - groups[slot].began > NEW_AFTER * DAY_S
    if groups[slot].began <= 0.0:
        groups[slot].began = at
    return new


@kernel(nothing(PAGES, GROUPS, i64s, f64s, i64s))
def begin(pages, groups, rows, at, group):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        take_back(groups, page)
        page.group = group[number]
        if page.seen == 0:
            page.seen = second(at[number])
            page.since = page.seen
            page.way = NEW if is_new(groups, page, at[number]) else QUIET
            page.shape = 0.0
            page.exposure = 0.0
            page.looks = 0


@kernel(nothing(PAGES, GROUPS, i64s, f64s, bools, TERMS))
def observe(pages, groups, rows, at, changed, terms):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        days = (at[number] - page.seen) / DAY_S
        if page.seen == 0 or days < LEAST_GAP:
            page.seen = max(page.seen, second(at[number]))
            continue
        belief = belief_of(groups, page)
        shape, exposure, level = belief
        days_counted = counted(groups, page, at[number])
        gap = level * days_counted
        first_shape, first_exposure, _ = prior_of(groups, page)
        wrong_looks = wrong(groups[0], terms)
        false_alarm, miss = wrong_looks
        count_wrong(groups[0], chance_unchanged(shape, exposure, gap), changed[number], false_alarm, miss)
        slot = one_i64(page.group)
        while slot >= 0:
            wander(groups[slot], at[number])
            move_level(groups[slot], shape, exposure, gap, changed[number], wrong_looks, 1.0)
            slot = groups[slot].parent
        move_ages(groups, page, belief, days_counted, at[number], changed[number], wrong_looks)
        after, exposed, mean_log = believed(shape, exposure, gap, changed[number], false_alarm, miss)
        kept = exp(-days / terms.memory_days)
        page.shape = kept * (after - first_shape)
        page.exposure = kept * (exposed - first_exposure)
        page.seen = second(at[number])
        if changed[number]:
            page.since = page.seen
            page.way = EDITED
        page.looks = min(page.looks + 1, 255)
        vote(groups, page, after / exposed, mean_log)


@kernel(nothing(PAGES, GROUPS, i64s))
def forget(pages, groups, rows):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        take_back(groups, page)
        page.seen = 0
        page.shape = 0.0
        page.exposure = 0.0
        page.looks = 0
        page.gone = 0


@kernel(nothing(PAGES, GROUPS, i64s, f64s, f64s, f64s))
def values_of(pages, groups, rows, at, weight, out):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        shape, exposure, level = belief_of(groups, page)
        days = max(at[number] - page.seen, 0.0) / DAY_S if page.seen > 0 else LONGEST_GAP
        out[number] = weight[number] * worth(groups, page, shape, exposure, level, days)


@kernel(nothing(PAGES, GROUPS, i64s, f64s, f64s, f64s))
def due_of(pages, groups, rows, weight, price, out):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        shape, exposure, level = belief_of(groups, page)
        if weight[number] <= 0.0:
            out[number] = inf
        else:
            days = days_to_worth(groups, page, shape, exposure, level, price[number] / weight[number])
            out[number] = page.seen + days * DAY_S


@kernel(nothing(PAGES, GROUPS, i64s, f64s, f64s))
def chances_of(pages, groups, rows, at, out):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        shape, exposure, level = belief_of(groups, page)
        gap = level * counted(groups, page, max(at[number], page.seen))
        out[number] = 1.0 - chance_unchanged(shape, exposure, gap) if page.seen > 0 else 1.0


@kernel(nothing(PAGES, GROUPS, i64s, one_f64, f64s))
def chances_reached(pages, groups, rows, chance, out):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        shape, exposure, level = belief_of(groups, page)
        days = reached(groups, page, exposure * expm1(-log1p(-chance) / shape) / level)
        out[number] = page.seen + days * DAY_S


@kernel(nothing(PAGES, i64s, f64s, one_f64))
def hinted(pages, rows, per_day, looks):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        pages[rows[number]].shape += looks
        pages[rows[number]].exposure += looks / per_day[number]


@kernel(nothing(PAGES, GROUPS, i64s, f64s))
def rates_of(pages, groups, rows, out):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        page = pages[rows[number]]
        shape, exposure, level = belief_of(groups, page)
        rate = level * shape / exposure
        days = min(max(1.0 / rate, 1.0), MONTH)
        out[number] = rate * counted(groups, page, page.seen + days * DAY_S) / days
