"""How what was found and fetched becomes evidence: O(links of a page), whatever is known already."""

from __future__ import annotations

import numpy as np

from crawlguide.core.kernels import f32s, i64s, kernel, nothing, one_f64, one_i64, part, records, u8s
from crawlguide.strategies.layered.records import (
    CRAWL,
    DONE,
    FAILED,
    GIVEN,
    LINK,
    PAGE,
    PARENTS,
    PLACE,
    SEED,
    VISITED,
    WAITING,
)

FAR = 250
LUCK_STEP = 0.02
FEW_PAGES = 6.0
LINKS, PAGES, PLACES, CRAWLS = records(LINK), records(PAGE), records(PLACE), records(CRAWL)


@part
def add_parent(link, page, parent):  # type: ignore[no-untyped-def]
    """Count a page that links here, once; the newest few are remembered by number."""
    for number in range(PARENTS):
        if link.parents[number] == parent:
            return False
    for number in range(PARENTS - 1, 0, -1):
        link.parents[number] = link.parents[number - 1]
    link.parents[0] = parent
    link.count += 1.0
    link.sum += page.label
    link.best = max(link.best, page.label)
    return True


@kernel(nothing(i64s, i64s, u8s, LINKS, PAGES))
def find(rows, parents, fresh, links, pages):  # type: ignore[no-untyped-def]
    """Links found on pages, or given as seeds. A link that is new takes from its page where it stands."""
    for number in range(len(rows)):
        link, parent = links[rows[number]], parents[number]
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
                link.abroad = link.places[0] != links[page.link].places[0]
        if parent >= 0:
            add_parent(link, pages[parent], parent)
            link.distance = min(link.distance, pages[parent].distance + 1, FAR)
            link.depth = min(link.depth, pages[parent].depth + 1)


@part
def credit(counter, label, memory):  # type: ignore[no-untyped-def]
    counter.good = memory * counter.good + label
    counter.tried = memory * counter.tried + 1.0


@part
def pay_places(link, places, label, answered, memory):  # type: ignore[no-untyped-def]
    for level in range(link.levels):
        place = places[link.places[level]]
        credit(place, label, memory)
        place.failed = memory * place.failed + (0.0 if answered else 1.0)
        place.fetched += 1
        place.alive += answered
        place.total += label


@part
def leave(link, pages, places, pending):  # type: ignore[no-untyped-def]
    """A link that waited does no longer; `pending`: 1 if it is under way now."""
    for level in range(link.levels):
        places[link.places[level]].waiting -= 1
        places[link.places[level]].pending += pending
    if link.finder >= 0:
        pages[link.finder].waiting -= 1


@kernel(nothing(i64s, LINKS, PAGES, PLACES))
def give(rows, links, pages, places):  # type: ignore[no-untyped-def]
    for row in rows:
        if row >= 0 and links[row].state == WAITING:
            links[row].state = GIVEN
            leave(links[row], pages, places, 1)


@kernel(nothing(one_i64, LINKS, PAGES, PLACES))
def give_back(row, links, pages, places):  # type: ignore[no-untyped-def]
    """A lease that came back unused: the link waits again."""
    link = links[row]
    if link.state == GIVEN:
        link.state = WAITING
        for level in range(link.levels):
            places[link.places[level]].waiting += 1
            places[link.places[level]].pending -= 1
        if link.finder >= 0:
            pages[link.finder].waiting += 1


@part
def stop_waiting(link, pages, places):  # type: ignore[no-untyped-def]
    """Whether it waited or was under way, it is fetched now."""
    if link.state == WAITING:
        leave(link, pages, places, 0)
    elif link.state == GIVEN:
        for level in range(link.levels):
            places[link.places[level]].pending -= 1


@kernel(nothing(i64s, LINKS, PAGES, PLACES))
def visit(rows, links, pages, places):  # type: ignore[no-untyped-def]
    """Fetched, and nobody said what it is worth: these links neither wait nor are under way, and teach nothing yet."""
    for row in rows:
        stop_waiting(links[row], pages, places)
        if links[row].state != DONE:
            links[row].state = VISITED


@part
def of_late(crawl):  # type: ignore[no-untyped-def]
    """What pages of late were worth; of a few nothing can be said."""
    return crawl.good / (crawl.tried + FEW_PAGES)


@part
def pay_crawl(link, places, label, answered, crawl, tuning):  # type: ignore[no-untyped-def]
    """What the crawl as a whole learns: what pages pay, what new hosts do, how well it chooses.

    Of hosts that were found somewhere seeds say nothing: somebody knew that they answer.
    """
    if places[link.places[0]].fetched == 0 and link.finder != SEED:
        crawl.first_good += label
        crawl.first_tried += 1.0
        crawl.first_failed += 0.0 if answered else 1.0
    if link.chosen == 0:
        crawl.luck += LUCK_STEP * (label - crawl.luck)
    crawl.good = tuning.crawl_memory * crawl.good + label
    crawl.tried = tuning.crawl_memory * crawl.tried + 1.0
    crawl.best = max(crawl.best, of_late(crawl))
    crawl.hits += label
    crawl.fetched += 1


@part
def arrive(row, page, label, answered, title, links, pages, places, crawl, tuning):  # type: ignore[no-untyped-def]
    """A link turns out to be a page of so much worth."""
    link, here = links[row], pages[page]
    stop_waiting(link, pages, places)
    again = link.state == DONE
    link.state, link.label, link.page = DONE if answered else FAILED, label, page
    here.link, here.label, here.title, here.depth = row, label, title, link.depth
    here.distance = 0 if label >= 0.5 else link.distance
    if not again:
        pay_crawl(link, places, label, answered, crawl, tuning)
        pay_places(link, places, label, answered, tuning.memory)
        for number in range(PARENTS):
            if link.parents[number] >= 0:
                credit(pages[link.parents[number]], label, tuning.memory)


@kernel(nothing(one_i64, one_f64, LINKS, one_i64, PAGES, PLACES, CRAWLS))
def amend(row, label, links, used, pages, places, crawls):  # type: ignore[no-untyped-def]
    """A page turns out to be worth more or less than was told: so do its places, and the links it made known."""
    link, more = links[row], label - links[row].label
    page = pages[link.page]
    link.label = page.label = label
    crawls[0].hits += more
    for level in range(link.levels):
        places[link.places[level]].good = max(places[link.places[level]].good + more, 0.0)
        places[link.places[level]].total += more
    for number in range(page.first, min(page.first + page.found, used)):
        child = links[number]
        if child.finder == link.page:
            child.sum = max(child.sum + more, 0.0)
            child.best = max(child.best, label) if child.count > 1.0 else label


@kernel(nothing(f32s, one_i64, CRAWLS))
def notice(values, kind, crawls):  # type: ignore[no-untyped-def]
    """Likenesses as they come: what is usual among them."""
    crawl = crawls[0]
    for value in values:
        crawl.seen[kind] += 1.0
        crawl.mean[kind] += value
        crawl.spread[kind] += value * value


# Authority as it comes: pages pass on what they hold to the URLs they link to, each once (OPIC).


@kernel(nothing(i64s, i64s, LINKS, PAGES))
def spend(rows, parents, links, pages):  # type: ignore[no-untyped-def]
    """A page gives all it has to its links; seeds share 1, and a page that is not known has nothing.

    Links of one page lie one behind the other.
    """
    start = 0
    while start < len(rows):
        end, parent = start, parents[start]
        while end < len(rows) and parents[end] == parent:
            end += 1
        cash = np.float32(1.0 if parent == SEED else 0.0)
        if parent >= 0:
            page = links[pages[parent].link]
            cash, page.cash = page.cash, np.float32(0.0)
        for number in range(start, end):
            links[rows[number]].cash += cash / (end - start)
        start = end
