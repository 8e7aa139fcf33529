"""Several ideas kept alive: some places of an answer go to hosts and pages drawn by what they paid.

An arm that paid well is drawn often, one that was hardly tried now and then, and one that is dry seldom (Thompson).
Of at most so many arms each gets a draw, whatever is known.
"""

import numpy as np

from crawlguide.core.kernels import i64s, kernel, one_f64, one_i64, part, records
from crawlguide.strategies.layered.columns import failing
from crawlguide.strategies.layered.evidence import CRAWLS, LINKS, LUCK_STEP, PAGES, PLACES
from crawlguide.strategies.layered.records import HOST, WAITING
from crawlguide.strategies.shared.draws import beta, uniform

DRAWN = 256
GOOD, BAD = 0.3, 2.0  # what an arm is thought to have paid before it was tried
OF_LATE = 1.0 / LUCK_STEP  # fetches that luck is about
HOSTS = records(HOST)


@part
def pulled(seed, crawl, good, tried):  # type: ignore[no-untyped-def]
    return beta(seed, crawl, GOOD + max(good, 0.0), BAD + max(tried - good, 0.0))


@part
def itself(seed, crawl):  # type: ignore[no-untyped-def]
    """What the crawl chooses without a draw is an arm too, or dry hosts would be drawn for want of better ones."""
    tried = min(float(crawl.fetched), OF_LATE)
    return pulled(seed, crawl, crawl.luck * tried, tried)


@part
def first(seed, crawl, count):  # type: ignore[no-untyped-def]
    crawl.draws += 1
    return np.int64(uniform(seed, crawl.draws - 1) * count)


@kernel(one_i64(one_i64, CRAWLS, PAGES, one_i64))
def draw_page(seed, crawls, pages, used):  # type: ignore[no-untyped-def]
    """A page whose links shall be tried; -1: none that pays better than no draw."""
    crawl, found = crawls[0], -1
    best = itself(seed, crawl)
    for _ in range(min(used, DRAWN)):
        number = first(seed, crawl, used)
        page = pages[number]
        if page.waiting > 0:
            paid = pulled(seed, crawl, page.good, page.tried)
            if paid > best:
                best, found = paid, number
    return found


@kernel(one_i64(one_i64, PAGES, LINKS, one_i64, i64s))
def waiting_on(number, pages, links, used, rows):  # type: ignore[no-untyped-def]
    """The first links that a page made known and that wait, as many as there is room for; returns how many."""
    page, count = pages[number], 0
    for row in range(page.first, min(page.first + page.found, used)):
        if count < len(rows) and links[row].state == WAITING and links[row].finder == number:
            rows[count] = row
            count += 1
    return count


@kernel(one_i64(one_i64, CRAWLS, HOSTS, one_i64, PLACES))
def draw_host(seed, crawls, hosts, used, places):  # type: ignore[no-untyped-def]
    """A host; all that were never tried are one arm, of which one is drawn. -1: none pays better."""
    crawl, found, untried = crawls[0], -1, False
    best = itself(seed, crawl)
    start = first(seed, crawl, used)
    for step in range(min(used, DRAWN)):
        number = (start + step) % used
        place = places[hosts[number].place]
        if place.waiting <= 0 or (place.fetched == 0 and untried):
            continue
        if place.fetched == 0:
            untried = True
            paid = pulled(seed, crawl, crawl.first_good, crawl.first_tried)
        else:
            paid = pulled(seed, crawl, place.good, place.tried)
        paid *= 1.0 - failing(place, crawl)
        if paid > best:
            best, found = paid, number
    return found


@kernel(one_i64(one_i64, CRAWLS, one_f64, one_i64))
def places_for_draws(seed, crawls, chance, wanted):  # type: ignore[no-untyped-def]
    """How many of an answer's places go to draws."""
    crawl, count = crawls[0], 0
    for _ in range(wanted):
        count += uniform(seed, crawl.draws) < chance
        crawl.draws += 1
    return count
