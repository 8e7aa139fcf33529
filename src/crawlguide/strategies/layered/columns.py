"""The features of a link: one table that names them, and the functions that compute them.

Every function looks at the link's record, at those of the pages and places around it, and at nothing else, so a column
is the same online, in a replay and in an explanation. Rates are differences of log-odds to the crawl's own rate.
"""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import part, summing_part
from crawlguide.strategies.layered.evidence import parent_rewards
from crawlguide.strategies.layered.records import COLUMNS, DONE, FAILED, MEANING, PARENTS


class Column(NamedTuple):
    name: str
    first_weight: float
    meaning: str  # for the documentation
    parts: tuple[str, ...] = ()  # `without` one of them leaves the column out
    speaks_for: str = ""  # for `explain`, with the facts of `explain.facts` in braces; "": it never says anything
    speaks_against: str = ""  # if the weighted value is negative; "": the same words


PARENT_FACTS = "{parents_sum:.3g} of {parents:.0f} {pages} linking here paid"
HOST_FACTS = "{host_sum:.3g} of {host_fetched} pages fetched from this host paid"
PLACE_FACTS = "{place} paid {place_rate:.0%} of the time lately"
SIBLINGS, NO_SIBLINGS = "other links of the same pages paid", "other links of the same pages did not pay"
NEAR_GOAL, FAR_FROM_GOAL = "its words are near to the goal", "its words are far from the goal"

TABLE = (  # weights are stored by their number here: never move a column, add new ones at the end
    Column("always", 0.0, "1, whatever the link: what all have in common"),
    Column("parents", 0.6, "mean reward of all fetched pages that link here", ("parents",), PARENT_FACTS),
    Column("best parent", 0.3, "the highest reward of them", (), PARENT_FACTS),
    Column("good parents", 0.3, "the sum of their rewards (logarithm)", ("parents",), PARENT_FACTS),
    Column("bad parents", -0.1, "how many of them have no reward (logarithm)", ("parents",), PARENT_FACTS),
    Column("mean yield", 0.4, "rewards of other links of the same pages, as a mean over these pages", ("yield",),
           SIBLINGS, NO_SIBLINGS),
    Column("best yield", 0.2, "the same of the page whose links had the highest rewards", ("yield",),
           SIBLINGS, NO_SIBLINGS),
    Column("neighbours", 0.4, "rewards of links beside it, on the page where it was found; nearer ones count more",
           ("neighbours",), "links beside it paid", "links beside it did not pay"),
    Column("host", 0.3, "recent rewards of its host", ("places",), HOST_FACTS),
    Column("place", 0.5, "recent rewards of its innermost place, drawn to those of the places around it", ("places",),
           PLACE_FACTS),
    Column("words in anchor", 1.5, "share of the goal's words that the link's text has", ("words",),
           "its anchor has words of the goal", "its anchor has words of the goal, which misled"),
    Column("words in address", 1.0, "share of the goal's words that the URL has", ("words",),
           "its address has words of the goal", "its address has words of the goal, which misled"),
    Column("new host", -0.5, "1 if nothing was fetched from its host yet", (), "its host is new"),
    Column("answers", 1.0, "how likely it answers at all (logarithm); whatever the weight, it multiplies p", (),
           "it answers", "it may not answer"),
    Column("new place", 0.0, "1 / (1 + pages fetched from its innermost place)"),
    Column("depth", -0.2, "links from a seed, at most 10, divided by 10"),
    Column("path", 0.0, "folders in its URL, at most 10, divided by 10"),
    Column("other host", -0.3, "1 if it leads to another host than the page where it was found", (),
           "it leads to another host"),
    Column("finder", 0.2, "reward of the page where it was found first"),
    Column("anchor meaning", 0.4, "how near the link's text is to the goal, among all texts seen so far", ("meaning",),
           NEAR_GOAL, FAR_FROM_GOAL),
    Column("address meaning", 0.3, "how near the words of the URL are to the goal, among all URLs seen so far",
           ("meaning",), NEAR_GOAL, FAR_FROM_GOAL),
    Column("best meaning", 0.6, "the better of the two, if above the mean", ("meaning",), NEAR_GOAL, FAR_FROM_GOAL),
    Column("title meaning", 0.3, "how near the titles of pages that link here are to the goal, among all titles",
           ("meaning",), "titles that lead here are near to the goal", "titles that lead here are far from it"),
    Column("profile", 0.4, "how similar it is to pages that were hits, less how similar to the others", ("meaning",),
           "it is like pages that paid", "it is unlike pages that paid"),
    Column("parents and yield", 0.0, "`parents` times `mean yield`, divided by 4: good pages with good links",
           ("parents", "yield")),
    Column("near a hit", 0.2, "1 / (1 + links from the nearest hit on the way to it)", ("parents",),
           "a page that paid is near"),
    Column("little known host", 0.0, "1 / √(1 + pages fetched from its host), if the host answers"),
    Column("query", -0.2, "1 if the URL has a query"),
    Column("ask signals", 1.0, "the numbers of `external_features` that crawlers sent, each by a learned weight",
           ("told",), "what crawlers told of it speaks for it", "what crawlers told of it speaks against it"),
    Column("history", 0.5, "what its domain yielded before, as crawlers said in `historical_yield`", ("told",),
           "its domain yielded much before", "its domain yielded little before"),
    Column("refusals", -1.0, "how often its host refuses fetches (403, 429, `blocked`)", (),
           "its host turns crawlers away"),
    Column("authority", 0.5, "authority that pages passed on to it, against the mean of all links (OPIC; logarithm)"),
)  # fmt: skip
NAMES = tuple(column.name for column in TABLE)
AT: Any = namedtuple("AT", [name.replace(" ", "_") for name in NAMES])(*range(len(NAMES)))  # the number of each column
PRIOR = np.zeros(COLUMNS, np.float32)
PRIOR[: len(TABLE)] = [column.first_weight for column in TABLE]

FEW_NEIGHBOURS = 1.0
ANCHOR, ADDRESS, TITLE = 0, 1, 2  # kinds of similarity to the goal
REACH = 3  # neighbours on either side
ENOUGH_HITS = 5.0  # before the profile counts in full


@part
def rate(crawl):  # type: ignore[no-untyped-def]
    """The reward of a page to be expected in this crawl now."""
    return min(max((crawl.good + 0.3) / (crawl.tried + 6.0), 0.004), 0.6)


@part
def odds(chance):  # type: ignore[no-untyped-def]
    """Log-odds."""
    chance = min(max(chance, 1e-4), 1.0 - 1e-4)
    return np.log(chance / (1.0 - chance))


@part
def parents_rate(count, total, usual, tuning):  # type: ignore[no-untyped-def]
    return odds((total + tuning.few_parents * usual) / (count + tuning.few_parents)) - odds(usual)


@part
def hit_distance(link, pages):  # type: ignore[no-untyped-def]
    """Links from the nearest hit on the way here; a late reward may have made it shorter."""
    distance = np.int64(link.distance)
    for number in range(PARENTS):
        if link.parents[number] >= 0:
            distance = min(distance, np.int64(pages[link.parents[number]].distance) + 1)
    return distance


@part
def page_yield(page, usual, tuning):  # type: ignore[no-untyped-def]
    return (page.good + tuning.few_children * usual) / (page.tried + tuning.few_children)


@part
def yields(link, pages, usual, tuning):  # type: ignore[no-untyped-def]
    """Rewards of other links of the pages that link here: the mean over these pages, and the best of them."""
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
    """Rewards of links that stand beside it on the page where it was found, nearer ones count more.

    Seeds stand on no page, so they have no neighbours.
    """
    good, weight, finder = FEW_NEIGHBOURS * usual, FEW_NEIGHBOURS, links[row].finder
    if finder < 0:
        return 0.0
    for step in range(1, REACH + 1):
        for other in (row - step, row + step):
            if 0 <= other < used and links[other].finder == finder and links[other].state in (DONE, FAILED):
                good += links[other].label / step
                weight += 1.0 / step
    return odds(good / weight) - odds(usual) if weight > FEW_NEIGHBOURS else 0.0


@part
def place_rate(place, above, tuning):  # type: ignore[no-untyped-def]
    """The reward rate of a place, drawn to that of the place around it; what is assigned counts as half a failure."""
    return (place.good + tuning.few_fetches * above) / (
        place.tried + tuning.pending * place.pending + tuning.few_fetches
    )


@part
def place_rates(link, places, usual, tuning):  # type: ignore[no-untyped-def]
    """The reward rates of the host and of the innermost place.

    Each place is drawn to the rest of the place around it: what was fetched inside counts inside alone, or the same few
    fetches would count once at every level.
    """
    host = place_rate(places[link.places[0]], usual, tuning)
    inside = usual
    for level in range(link.levels):
        place = places[link.places[level]]
        good, tried = place.good, place.tried + tuning.pending * place.pending
        if level + 1 < link.levels:
            inner = places[link.places[level + 1]]
            tried = max(tried - inner.tried - tuning.pending * inner.pending, 0.0)
            good = min(max(good - inner.good, 0.0), tried)
        inside = (good + tuning.few_fetches * inside) / (tried + tuning.few_fetches)
    return odds(host) - odds(usual), odds(inside) - odds(usual)


@part
def refusals(host):  # type: ignore[no-untyped-def]
    return host.banned / (host.tried + 1.0)


@part
def authority(link, used):  # type: ignore[no-untyped-def]
    """Authority against the mean of all links; a logarithm, at most 1."""
    return min(np.log1p(link.cash * used), 5.0) / 5.0


@part
def similarity(value, kind, crawl):  # type: ignore[no-untyped-def]
    """How far a similarity to the goal stands out among all seen so far, in standard deviations."""
    count = crawl.seen[kind] + 20.0
    mean = (crawl.mean[kind] + 20.0 * 0.1) / count
    spread = np.sqrt(max((crawl.spread[kind] + 20.0 * (0.01 + 0.0064)) / count - mean * mean, 0.0))
    return min(max((value - mean) / max(spread, 0.03), -2.0), 4.0)


@part
def title_similarity(link, pages, crawl):  # type: ignore[no-untyped-def]
    total, known = 0.0, 0
    for number in range(PARENTS):
        if link.parents[number] >= 0:
            total += pages[link.parents[number]].title
            known += 1
    return similarity(total / known, TITLE, crawl) if known else 0.0


@part
def profile_similarity(link, profile, crawl):  # type: ignore[no-untyped-def]
    total, size = products(link, profile)
    return 4.0 * total / np.sqrt(size + 1e-9) * min(1.0, crawl.hits / ENOUGH_HITS)


@summing_part
def products(link, profile):  # type: ignore[no-untyped-def]
    """The product of a link's meaning and the profile, and of the meaning and itself."""
    total, size = 0.0, 0
    for at in range(MEANING):
        total += link.meaning[at] * profile[at]
        size += link.meaning[at] * link.meaning[at]
    return total, size


@part
def known_label(page):  # type: ignore[no-untyped-def]
    return 0.0 if np.isnan(page.label) else np.float64(page.label)


@part
def describe_evidence(row, tables, columns):  # type: ignore[no-untyped-def]
    """Rewards of the pages that link here, of the links beside it, and of its places."""
    link, pages, tuning, usual = tables.links[row], tables.pages, tables.tuning[0], rate(tables.crawl[0])
    count, total, best = parent_rewards(link, pages)
    shared = parents_rate(count, total, usual, tuning)
    mean_yield, best_yield = yields(link, pages, usual, tuning)
    columns[AT.parents] = shared
    columns[AT.best_parent] = best
    columns[AT.good_parents] = np.log1p(total)
    columns[AT.bad_parents] = np.log1p(max(count - total, 0.0))
    columns[AT.mean_yield] = mean_yield
    columns[AT.best_yield] = best_yield
    columns[AT.parents_and_yield] = shared * mean_yield / 4.0
    columns[AT.neighbours] = neighbours(row, tables.links, tables.links_used, usual)
    columns[AT.host], columns[AT.place] = place_rates(link, tables.places, usual, tuning)
    columns[AT.finder] = known_label(pages[link.finder]) if link.finder >= 0 else 0.0
    columns[AT.near_a_hit] = 1.0 / (1.0 + hit_distance(link, pages))


@part
def describe_url(link, tables, columns):  # type: ignore[no-untyped-def]
    """Where it lies, how much was fetched there, and what crawlers said of it."""
    host, place = tables.places[link.places[0]], tables.places[link.places[link.levels - 1]]
    columns[AT.new_host] = host.fetched == 0
    columns[AT.little_known_host] = 1.0 / np.sqrt(1.0 + host.fetched) if host.alive else 0.0
    columns[AT.new_place] = 1.0 / (1.0 + place.fetched)
    columns[AT.refusals] = refusals(host)
    columns[AT.depth] = min(link.depth, 10) / 10.0
    columns[AT.path] = min(link.path, 10) / 10.0
    columns[AT.query] = link.query
    columns[AT.other_host] = link.abroad
    columns[AT.ask_signals] = link.outside
    columns[AT.history] = host.history


@part
def describe_meaning(link, tables, columns):  # type: ignore[no-untyped-def]
    """How near its words are to the goal and to pages that were hits."""
    crawl = tables.crawl[0]
    anchor, address = similarity(link.anchor, ANCHOR, crawl), similarity(link.address, ADDRESS, crawl)
    columns[AT.words_in_anchor] = link.said
    columns[AT.words_in_address] = link.named
    columns[AT.anchor_meaning] = anchor
    columns[AT.address_meaning] = address
    columns[AT.best_meaning] = max(anchor, address, 0.0)
    columns[AT.title_meaning] = title_similarity(link, tables.pages, crawl)
    columns[AT.profile] = profile_similarity(link, tables.profile, crawl)


@part
def describe(row, tables, columns):  # type: ignore[no-untyped-def]
    """All columns of a link but `answers`, which is no evidence of what it is about (`answers.py`)."""
    link = tables.links[row]
    columns[AT.always] = 1.0
    describe_evidence(row, tables, columns)
    describe_url(link, tables, columns)
    describe_meaning(link, tables, columns)
    columns[AT.authority] = authority(link, tables.links_used)
    columns *= tables.tuning[0].use
