"""What speaks for a link, one function for each column. Rates are told as differences of log-odds to the crawl's own.

Every function looks at the link's record and at those of the pages and places around it, and at nothing else, so a
column is the same online, in a replay and in an explanation.
"""

import numpy as np

from crawlguide.core.kernels import part, summing_part
from crawlguide.strategies.layered.records import COLUMNS, DONE, FAILED, MEANING, PARENTS

FEW_NEIGHBOURS = 1.0
ANCHOR, ADDRESS, TITLE = 0, 1, 2
REACH = 3  # neighbours on either side
CREDULOUS = 5.0  # pages of worth, before their likeness counts in full


@part
def rate(crawl):  # type: ignore[no-untyped-def]
    """The worth of a page, as things stand."""
    return min(max((crawl.good + 0.3) / (crawl.tried + 6.0), 0.004), 0.6)


@part
def odds(chance):  # type: ignore[no-untyped-def]
    chance = min(max(chance, 1e-4), 1.0 - 1e-4)
    return np.log(chance / (1.0 - chance))


@part
def share(link, usual, tuning):  # type: ignore[no-untyped-def]
    """worth of all fetched pages that link here"""
    return odds((link.sum + tuning.few_parents * usual) / (link.count + tuning.few_parents)) - odds(usual)


@part
def page_yield(page, usual, tuning):  # type: ignore[no-untyped-def]
    return (page.good + tuning.few_children * usual) / (page.tried + tuning.few_children)


@part
def yields(link, pages, usual, tuning):  # type: ignore[no-untyped-def]
    """What links of the same pages paid: on the mean, and on the best of them."""
    total, best, known = 0.0, 0.0, 0
    for number in range(PARENTS):
        parent = link.parents[number]
        if parent >= 0:
            paid = page_yield(pages[parent], usual, tuning)
            total += paid
            best = max(best, paid)
            known += 1
    if known == 0:
        return 0.0, 0.0
    return odds(total / known) - odds(usual), odds(best) - odds(usual)


@part
def neighbours(row, links, used, usual):  # type: ignore[no-untyped-def]
    """The worth of links that stand beside it on the page that made it known, nearer ones count more."""
    good, weight, finder = FEW_NEIGHBOURS * usual, FEW_NEIGHBOURS, links[row].finder
    for step in range(1, REACH + 1):
        for other in (row - step, row + step):
            if 0 <= other < used and links[other].finder == finder and links[other].state in (DONE, FAILED):
                good += links[other].label / step
                weight += 1.0 / step
    return odds(good / weight) - odds(usual) if weight > FEW_NEIGHBOURS else 0.0


@part
def place_rate(place, above, tuning):  # type: ignore[no-untyped-def]
    """What a place pays, drawn to what the place around it pays; what is under way counts as half a failure."""
    return (place.good + tuning.few_fetches * above) / (
        place.tried + tuning.pending * place.pending + tuning.few_fetches
    )


@part
def place_rates(link, places, usual, tuning):  # type: ignore[no-untyped-def]
    """What the host pays, and what the smallest place pays.

    Each place is drawn to what the rest of the place around it pays: what was fetched here counts here alone, or the
    same few fetches would speak once at every level.
    """
    host = place_rate(places[link.places[0]], usual, tuning)
    known = usual
    for level in range(link.levels):
        place = places[link.places[level]]
        good, tried = place.good, place.tried + tuning.pending * place.pending
        if level + 1 < link.levels:
            inner = places[link.places[level + 1]]
            tried = max(tried - inner.tried - tuning.pending * inner.pending, 0.0)
            good = min(max(good - inner.good, 0.0), tried)
        known = (good + tuning.few_fetches * known) / (tried + tuning.few_fetches)
    return odds(host) - odds(usual), odds(known) - odds(usual)


@part
def failing(host, crawl):  # type: ignore[no-untyped-def]
    """How likely a host fails: by itself, and as hosts do that are new."""
    usual = (crawl.first_failed + 0.3) / (crawl.first_tried + 1.0)
    return (host.failed + usual) / (host.tried + 1.0)


@part
def reachable(link, places, crawl):  # type: ignore[no-untyped-def]
    """How likely it answers at all, as a logarithm, by host and place."""
    host, place = places[link.places[0]], places[link.places[link.levels - 1]]
    lost = (place.failed + 2.0 * failing(host, crawl)) / (place.tried + 2.0)
    return np.log(max(1.0 - lost, 0.01))


@part
def likeness(value, kind, crawl):  # type: ignore[no-untyped-def]
    """How far a likeness stands out among all seen so far."""
    count = crawl.seen[kind] + 20.0
    mean = (crawl.mean[kind] + 20.0 * 0.1) / count
    spread = np.sqrt(max((crawl.spread[kind] + 20.0 * (0.01 + 0.0064)) / count - mean * mean, 0.0))
    return min(max((value - mean) / max(spread, 0.03), -2.0), 4.0)


@part
def title_likeness(link, pages, crawl):  # type: ignore[no-untyped-def]
    total, known = 0.0, 0
    for number in range(PARENTS):
        if link.parents[number] >= 0:
            total += pages[link.parents[number]].title
            known += 1
    return likeness(total / known, TITLE, crawl) if known else 0.0


@part
def liking(link, taste, crawl):  # type: ignore[no-untyped-def]
    """How alike the link is to pages of worth, less how alike to the others."""
    total, size = alike(link, taste)
    return 4.0 * total / np.sqrt(size + 1e-9) * min(1.0, crawl.hits / CREDULOUS)


@summing_part
def alike(link, taste):  # type: ignore[no-untyped-def]
    """The product of a link's meaning and the taste, and of the meaning and itself."""
    total, size = 0.0, 0
    for at in range(MEANING):
        total += link.meaning[at] * taste[at]
        size += link.meaning[at] * link.meaning[at]
    return total, size


@part
def describe_evidence(row, links, used, pages, places, usual, tuning, columns):  # type: ignore[no-untyped-def]
    """What is known of the pages that lead here, of the links beside it, and of its places."""
    link = links[row]
    shared = share(link, usual, tuning)
    mean_yield, best_yield = yields(link, pages, usual, tuning)
    columns[1] = shared
    columns[2] = link.best
    columns[3] = np.log1p(link.sum)
    columns[4] = np.log1p(max(link.count - link.sum, 0.0))
    columns[5] = mean_yield
    columns[6] = best_yield
    columns[7] = neighbours(row, links, used, usual)
    columns[8], columns[9] = place_rates(link, places, usual, tuning)
    columns[18] = pages[link.finder].label if link.finder >= 0 else 0.0
    columns[24] = shared * mean_yield / 4.0
    columns[25] = 1.0 / (1.0 + link.distance)


@part
def describe_shape(link, places, crawl, columns):  # type: ignore[no-untyped-def]
    """Where it lies, and how well that is known."""
    host, place = places[link.places[0]], places[link.places[link.levels - 1]]
    columns[12] = host.fetched == 0
    columns[13] = reachable(link, places, crawl)
    columns[14] = 1.0 / (1.0 + place.fetched)
    columns[15] = min(link.depth, 10) / 10.0
    columns[16] = min(link.path, 10) / 10.0
    columns[17] = link.abroad
    columns[26] = 1.0 / np.sqrt(1.0 + host.fetched) if host.alive else 0.0
    columns[27] = link.query
    columns[28] = link.outside
    columns[29] = host.history
    columns[30] = turned_away(host)


@part
def authority(link, used):  # type: ignore[no-untyped-def]
    """What pages passed on to it, against what a link has on the mean (OPIC); a logarithm, at most 1."""
    return min(np.log1p(link.cash * used), 5.0) / 5.0


@part
def turned_away(host):  # type: ignore[no-untyped-def]
    """How often a host turns us away (403, 429, `blocked`)."""
    return host.banned / (host.tried + 1.0)


@part
def describe_meaning(link, pages, crawl, taste, columns):  # type: ignore[no-untyped-def]
    """What its words say of the goal."""
    anchor, address = likeness(link.anchor, ANCHOR, crawl), likeness(link.address, ADDRESS, crawl)
    columns[10] = link.said
    columns[11] = link.named
    columns[19] = anchor
    columns[20] = address
    columns[21] = max(anchor, address, 0.0)
    columns[22] = title_likeness(link, pages, crawl)
    columns[23] = liking(link, taste, crawl)


@part
def describe(row, links, used, pages, places, crawl, taste, tuning, columns):  # type: ignore[no-untyped-def]
    """All columns of a link."""
    columns[0] = 1.0
    describe_evidence(row, links, used, pages, places, rate(crawl), tuning, columns)
    describe_shape(links[row], places, crawl, columns)
    columns[31] = authority(links[row], used)
    describe_meaning(links[row], pages, crawl, taste, columns)
    columns *= tuning.use


NAMES = (
    "always", "parents", "best parent", "good parents", "bad parents", "mean yield", "best yield", "neighbours",
    "host", "place", "words in anchor", "words in address", "unknown host", "answers", "new place", "depth", "path",
    "abroad", "finder", "anchor meaning", "address meaning", "best meaning", "title meaning", "liking",
    "parents and yield", "near worth", "little known host", "query", "told", "history", "turned away", "authority",
)  # fmt: skip
PRIOR = np.zeros(COLUMNS, np.float32)
PRIOR[: len(NAMES)] = (
    0.0, 0.6, 0.3, 0.3, -0.1, 0.4, 0.2, 0.4, 0.3, 0.5, 1.5, 1.0, -0.5, 1.0, 0.0, -0.2, 0.0, -0.3, 0.2,
    0.4, 0.3, 0.6, 0.3, 0.4, 0.0, 0.2, 0.0, -0.2, 1.0, 0.5, -1.0, 0.5,
)  # fmt: skip
