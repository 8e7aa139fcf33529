"""Pages that lead on: how many new links to hope for, learned by place, by the shape of an address and by word.

Of a host that is little known such pages say more than others; and before anything of worth was found, the more links
are known the better is the best of them.
"""

import numpy as np

from crawlguide.core.kernels import i64s, kernel, nothing, part, records
from crawlguide.strategies.layered.evidence import CRAWLS, LINKS, PAGES, PLACES
from crawlguide.strategies.layered.records import TUNING, WEIGHT

WEIGHTS, TUNINGS = records(WEIGHT), records(TUNING)
FEW, HOPED = 3.0, 0.3  # so many pages are as good as none; what is hoped for before any was opened
TRAITS = 6  # of a link, by which it is known to lead on
FIRST_HITS, PATIENCE = 0.5, 200.0  # pages of worth, and pages of any kind, until leading on is worth half as much


@part
def nudge(weight, slope, step):  # type: ignore[no-untyped-def]
    """AdaGrad."""
    weight.square += slope * slope
    weight.weight -= step * slope / np.sqrt(weight.square)


@part
def newness(found):  # type: ignore[no-untyped-def]
    """Of a page: 0 if none of its links was new, 1 if a hundred were."""
    return min(np.log1p(found) / np.log(101.0), 1.5)


@part
def expected_newness(link, places, crawl):  # type: ignore[no-untyped-def]
    """What pages of its places brought, each place drawn to the one around it."""
    usual = (crawl.fresh + FEW * HOPED) / (crawl.opened + FEW)
    for level in range(link.levels):
        place = places[link.places[level]]
        usual = (place.fresh + FEW * usual) / (place.opened + FEW)
    return usual


@part
def traits(link, places, crawl):  # type: ignore[no-untyped-def]
    """By its places, and by the shape of its address."""
    return (
        1.0,
        expected_newness(link, places, crawl),
        np.float64(link.folder),
        min(link.path, 10) / 10.0,
        np.float64(link.query),
        np.float64(link.abroad),
    )


@part
def lead(opening, crawl, tuning):  # type: ignore[no-untyped-def]
    """What it is worth to see more links, until something of worth is found, or until that was tried for long."""
    cold = FIRST_HITS / (FIRST_HITS + crawl.hits) * PATIENCE / (PATIENCE + crawl.fetched)
    return tuning.lead * opening * cold


@part
def hub_score(link, places, crawl, hub, hub_words):  # type: ignore[no-untyped-def]
    """How many new links to hope for."""
    total, mine = 0.0, traits(link, places, crawl)
    for number in range(TRAITS):
        total += hub[number].weight * mine[number]
    spoken = 0.0
    for at in range(link.spoken):
        spoken += hub_words[link.words[at]].weight
    return min(max(total + spoken / np.sqrt(max(link.spoken, 1.0)), 0.0), 1.5)


@kernel(nothing(i64s, LINKS, PAGES, PLACES, CRAWLS, WEIGHTS, WEIGHTS, TUNINGS))
def open_pages(opened, links, pages, places, crawls, hub, hub_words, tunings):  # type: ignore[no-untyped-def]
    """The links of these pages are known now: how many of them were new is learned."""
    crawl, tuning = crawls[0], tunings[0]
    for number in opened:
        if number < 0:
            continue
        page = pages[number]
        link, new = links[page.link], newness(page.found)
        wrong = hub_score(link, places, crawl, hub, hub_words) - new
        mine = traits(link, places, crawl)
        for at in range(TRAITS):
            nudge(hub[at], wrong * mine[at], tuning.hub_step)
        for at in range(link.spoken):
            nudge(hub_words[link.words[at]], wrong / np.sqrt(link.spoken), tuning.hub_step)
        for level in range(link.levels):
            place = places[link.places[level]]
            place.fresh = tuning.memory * place.fresh + new
            place.opened = tuning.memory * place.opened + 1.0
        crawl.fresh = tuning.crawl_memory * crawl.fresh + new
        crawl.opened = tuning.crawl_memory * crawl.opened + 1.0
