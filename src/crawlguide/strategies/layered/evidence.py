"""How links, assignments and fetches become evidence: counters of pages, places and the crawl.

Each event costs O(links of a page), however large the crawl is.
"""

from __future__ import annotations

import numpy as np

from crawlguide.core.kernels import f32s, i64s, kernel, nothing, one_f64, one_i64, part, u8s
from crawlguide.strategies.layered.records import (
    ASSIGNED,
    CRAWLS,
    DONE,
    FAILED,
    PARENTS,
    SEED,
    TABLES,
    VISITED,
    WAITING,
)
from crawlguide.strategies.shared.cash import pass_on_cash

FAR = 250  # a distance that stands for "no hit on the way here"
HIT_RATE_STEP = 0.02
FEW_PAGES = 6.0
PEAK_DECAY = 0.9997  # of the peak rate with each fetch: half of it is forgotten after 2 300

# Links are found.


@part
def parent_rewards(link, pages):  # type: ignore[no-untyped-def]
    """How many pages with a known reward link here, the sum of their rewards, and the best of them.

    The newest are looked up, so that a late reward counts for all links of its page, whenever they were found.
    """
    count, total, best = np.float64(link.count), np.float64(link.sum), np.float64(link.best)
    for number in range(PARENTS):
        parent = link.parents[number]
        if parent >= 0 and not np.isnan(pages[parent].label):
            count += 1.0
            total += pages[parent].label
            best = max(best, np.float64(pages[parent].label))
    return count, total, best


@part
def add_parent(link, pages, parent):  # type: ignore[no-untyped-def]
    """The newest few are remembered by number; of older ones only the number and their rewards are kept."""
    for number in range(PARENTS):
        if link.parents[number] == parent:
            return
    oldest = link.parents[PARENTS - 1]
    if oldest >= 0 and not np.isnan(pages[oldest].label):
        link.count += 1.0
        link.sum += pages[oldest].label
        link.best = max(link.best, pages[oldest].label)
    for number in range(PARENTS - 1, 0, -1):
        link.parents[number] = link.parents[number - 1]
    link.parents[0] = parent


@kernel(nothing(i64s, i64s, u8s, TABLES))
def add_links(rows, parents, fresh, tables):  # type: ignore[no-untyped-def]
    """Links found on pages, or given as seeds; a new link gets its depth from the page where it stands."""
    pages = tables.pages
    for number in range(len(rows)):
        link, parent = tables.links[rows[number]], parents[number]
        if fresh[number]:
            link.finder, link.page, link.state = parent, -1, WAITING
            link.parents[:] = -1
            link.depth, link.distance = 0, FAR
            if parent >= 0:
                page = pages[parent]
                if page.found == 0 or rows[number] != page.first + page.found:
                    page.first, page.found = rows[number], 0  # it was fetched again, or old records serve again
                page.found += 1
                page.waiting += 1
                link.depth = min(page.depth + 1, FAR)
                link.abroad = link.places[0] != tables.links[page.link].places[0]
        if parent >= 0:
            add_parent(link, pages, parent)
            link.distance = min(link.distance, pages[parent].distance + 1, FAR)
            link.depth = min(link.depth, pages[parent].depth + 1)


@kernel(nothing(i64s, i64s, TABLES))
def pass_authority(rows, parents, tables):  # type: ignore[no-untyped-def]
    """OPIC: a page gives all the authority it has to its links; one without a record has none to give."""
    payers = parents.copy()
    for number in range(len(payers)):
        if parents[number] >= 0:
            payers[number] = tables.pages[parents[number]].link
    pass_on_cash(tables.links, rows, parents, payers)
    for payer in payers:
        if payer >= 0:
            tables.links[payer].cash = 0.0


@kernel(nothing(f32s, one_i64, CRAWLS))
def observe_similarities(values, kind, crawls):  # type: ignore[no-untyped-def]
    """Count similarities to the goal, so that a later one can be compared with the usual."""
    crawl = crawls[0]
    for value in values:
        crawl.seen[kind] += 1.0
        crawl.mean[kind] += value
        crawl.spread[kind] += value * value


# Links are assigned, released and visited.


@part
def stop_waiting(link, tables, pending):  # type: ignore[no-untyped-def]
    """A link waits no longer; `pending`: 1 if it is assigned now."""
    for level in range(link.levels):
        tables.places[link.places[level]].waiting -= 1
        tables.places[link.places[level]].pending += pending
    if link.finder >= 0:
        tables.pages[link.finder].waiting -= 1


@part
def leave_queue(link, tables):  # type: ignore[no-untyped-def]
    """A link is fetched, whether it was waiting or assigned."""
    if link.state == WAITING:
        stop_waiting(link, tables, 0)
    elif link.state == ASSIGNED:
        for level in range(link.levels):
            tables.places[link.places[level]].pending -= 1


@kernel(nothing(i64s, TABLES))
def assign(rows, tables):  # type: ignore[no-untyped-def]
    for row in rows:
        if tables.links[row].state == WAITING:
            tables.links[row].state = ASSIGNED
            stop_waiting(tables.links[row], tables, 1)


@kernel(nothing(i64s, TABLES))
def release(rows, tables):  # type: ignore[no-untyped-def]
    """Leases that came back unused: their links wait again."""
    for row in rows:
        link = tables.links[row]
        if link.state == ASSIGNED:
            link.state = WAITING
            for level in range(link.levels):
                tables.places[link.places[level]].waiting += 1
                tables.places[link.places[level]].pending -= 1
            if link.finder >= 0:
                tables.pages[link.finder].waiting += 1


@kernel(nothing(i64s, i64s, f32s, TABLES))
def visit(rows, page, title, tables):  # type: ignore[no-untyped-def]
    """Fetches without a reward: these links are no longer waiting or assigned, and their pages teach nothing yet."""
    for number in range(len(rows)):
        link, here = tables.links[rows[number]], tables.pages[page[number]]
        leave_queue(link, tables)
        if link.state != DONE:
            link.state, link.page = VISITED, page[number]
            here.link, here.label, here.title = rows[number], np.nan, title[number]
            here.depth, here.distance = link.depth, link.distance


# Rewards arrive.


@part
def count_reward(counter, label, decay):  # type: ignore[no-untyped-def]
    counter.good = decay * counter.good + label
    counter.tried = decay * counter.tried + 1.0


@part
def reward_places(link, places, label, answered, decay):  # type: ignore[no-untyped-def]
    for level in range(link.levels):
        place = places[link.places[level]]
        count_reward(place, label, decay)
        place.failed = decay * place.failed + (0.0 if answered else 1.0)
        place.fetched += 1
        place.alive += answered
        place.total += label


@part
def recent_rate(crawl):  # type: ignore[no-untyped-def]
    """The reward of recent pages on average, drawn to 0 while they are few."""
    return crawl.good / (crawl.tried + FEW_PAGES)


@part
def reward_crawl(link, label, answered, tables):  # type: ignore[no-untyped-def]
    """What the crawl as a whole learns: its reward rate, how new hosts fare, and its recent hit rate.

    Seeds say nothing of new hosts: somebody knew that they answer.
    """
    crawl, tuning = tables.crawl[0], tables.tuning[0]
    if tables.places[link.places[0]].fetched == 0 and link.finder != SEED:
        crawl.first_good += label
        crawl.first_tried += 1.0
        crawl.first_failed += 0.0 if answered else 1.0
    crawl.luck += HIT_RATE_STEP * (label - crawl.luck)
    count_reward(crawl, label, tuning.crawl_decay)
    crawl.best = max(PEAK_DECAY * crawl.best, recent_rate(crawl))
    crawl.hits += label
    crawl.fetched += 1


@part
def reward_link(row, page, label, answered, title, tables):  # type: ignore[no-untyped-def]
    """A fetched link becomes a page with a reward; its places, the pages linking to it and the crawl learn of it."""
    link, here, tuning = tables.links[row], tables.pages[page], tables.tuning[0]
    leave_queue(link, tables)
    again = link.state == DONE
    link.state, link.label, link.page = DONE if answered else FAILED, label, page
    here.link, here.label, here.title, here.depth = row, label, title, link.depth
    here.distance = 0 if label >= 0.5 else link.distance
    if not again:
        reward_crawl(link, label, answered, tables)
        reward_places(link, tables.places, label, answered, tuning.decay)
        for number in range(PARENTS):
            if link.parents[number] >= 0:
                count_reward(tables.pages[link.parents[number]], label, tuning.decay)


@kernel(nothing(one_i64, one_f64, TABLES))
def amend_reward(row, label, tables):  # type: ignore[no-untyped-def]
    """A late reward replaces the one that a page had, also where it was counted for places and for pages linking here.

    The links of the page look its reward up.
    """
    link, more = tables.links[row], label - tables.links[row].label
    page = tables.pages[link.page]
    link.label = page.label = label
    page.distance = 0 if label >= 0.5 else link.distance
    crawl = tables.crawl[0]
    crawl.hits += more
    crawl.good = min(max(crawl.good + more, 0.0), crawl.tried)
    for level in range(link.levels):
        place = tables.places[link.places[level]]
        place.good = min(max(place.good + more, 0.0), place.tried)
        place.total += more
    for number in range(PARENTS):
        if link.parents[number] >= 0:
            parent = tables.pages[link.parents[number]]
            parent.good = min(max(parent.good + more, 0.0), parent.tried)


@kernel(nothing(i64s, f32s, TABLES))
def count_refusals(rows, refused, tables):  # type: ignore[no-untyped-def]
    """How often each host refuses fetches, newer ones count more."""
    decay = np.float32(tables.tuning[0].decay)
    for number in range(len(rows)):
        host = tables.places[tables.links[rows[number]].places[0]]
        host.banned = decay * host.banned + refused[number]
