"""What a link is worth beyond its chance, because little is known of where it leads: one rule, on one scale.

    explore value = chance + answers · lead
                  + doubt · (answers · hope · novelty + boldness · chance · (1 - chance))

`doubt` is 1 for a host where nothing was fetched, and falls with each page of it. `hope` is what the links of an
unknown host may be worth: a share of what the crawl pays, more where the link's words are near to the goal, and more
when the crawl pays less than it did. `novelty` is 1 where nothing was fetched from the link's folder and place.
The last term prefers what is likely on hosts of which more is to be learned. `lead` is for the time before the first
hit: then pages with many new links count by themselves, since the more links are known, the better is the best of them.

It is added to the chance, not to its log-odds: a few failures count at once as bad parents, bad words and a bad place,
and in log-odds nothing would bring a host back.
"""

import numpy as np

from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_i64, part
from crawlguide.strategies.layered.columns import AT
from crawlguide.strategies.layered.evidence import recent_rate
from crawlguide.strategies.layered.records import TABLES
from crawlguide.strategies.layered.steps import adagrad_step

CLOSEST = 4.0  # the most that a similarity stands out
TOLERATED = 0.85  # of the peak rate: a smaller loss is none
FEW_PAGES = 4.0  # that say little of the rest of a host: often they only lead on
FEW_IN_FOLDER = 2.0  # fetches of a folder that halve its novelty
MOST_HOPE = 0.5


@part
def decline(crawl):  # type: ignore[no-untyped-def]
    """By how much the recent reward rate lies below its peak."""
    return max(TOLERATED * crawl.best - recent_rate(crawl), 0.0)


@part
def hope(columns, crawl, tuning):  # type: ignore[no-untyped-def]
    """What a link of an unknown host may be worth: a share of what the crawl pays, by how near its words are."""
    paid = (crawl.hits + 0.5) / (crawl.fetched + 5.0) + tuning.decline_bonus * decline(crawl)
    words = tuning.host_bonus + tuning.near_host_bonus * max(columns[AT.best_meaning], 0.0) / CLOSEST
    return min(paid * words, MOST_HOPE)


@part
def fetches(place):  # type: ignore[no-untyped-def]
    return 1.0 + place.fetched + place.pending


@part
def novelty(link, places):  # type: ignore[no-untyped-def]
    """1 for a place and a folder where nothing was fetched; less with every fetch in either."""
    share = 1.0 / np.sqrt(fetches(places[link.places[link.levels - 1]]))
    if link.levels > 2:
        share *= FEW_IN_FOLDER / (FEW_IN_FOLDER - 1.0 + fetches(places[link.places[link.levels - 2]]))
    return share


@part
def bonus_of(link, chance, answers, columns, tables):  # type: ignore[no-untyped-def]
    """The bonus for a link, as if nothing had been fetched from its host."""
    tuning = tables.tuning[0]
    hoped = answers * hope(columns, tables.crawl[0], tuning) * novelty(link, tables.places)
    return hoped + tuning.boldness * chance * (1.0 - chance)


@part
def bonus_left(bonus, host, more):  # type: ignore[no-untyped-def]
    """After all pages of the host and some more; what did not answer says nothing of the others."""
    return bonus / np.sqrt(1.0 + (1.0 + host.alive + host.pending + more) / FEW_PAGES)


@kernel(nothing(i64s, f64s, f64s, TABLES, one_i64, f64s))
def spread_over_hosts(rows, explore_value, bonus, tables, wanted, change):  # type: ignore[no-untyped-def]
    """Choose the best rows one after the other: each choice takes some of the bonus from other rows of its host.

    `change` gets what is taken, as negative numbers.
    """
    worth, more = explore_value + change, np.zeros(len(rows))
    here = np.full(len(rows), -1, np.int64)  # the host of a row that may lose some of its bonus
    for number in range(len(rows)):
        if bonus[number] > 0.0:
            here[number] = tables.links[rows[number]].places[0]
    for _ in range(min(wanted, len(rows))):
        best = worth.argmax()
        at, worth[best], here[best] = here[best], -np.inf, -1
        if at < 0:
            continue
        host = tables.places[at]
        for number in range(len(rows)):
            if here[number] == at:
                before = bonus_left(bonus[number], host, more[number])
                more[number] += 1.0
                change[number] += bonus_left(bonus[number], host, more[number]) - before
                worth[number] = explore_value[number] + change[number]


# Hubs: how many new links a page is likely to have, learned by place, by the shape of a URL and by word. Only the lead
# asks for it, so it is learned as long as there is one.

FEW_OPENED, FIRST_NEWNESS = 3.0, 0.3  # so many pages weigh as much as the rate before any page was opened
TRAITS = 6  # of a link, by which a hub is recognised
NEWNESS = 1  # the trait that has a first weight
FIRST_HITS, PATIENCE = 0.5, 200.0  # hits, and pages of any kind, until the lead is halved
SMALL = 0.01  # of the lead: no more of it matters


@part
def newness(found):  # type: ignore[no-untyped-def]
    """Of a page: 0 if none of its links was new, 1 if a hundred were."""
    return min(np.log1p(found) / np.log(101.0), 1.5)


@part
def expected_newness(link, places, crawl):  # type: ignore[no-untyped-def]
    """The mean of pages of its places, each place drawn to the one around it."""
    usual = (crawl.fresh + FEW_OPENED * FIRST_NEWNESS) / (crawl.opened + FEW_OPENED)
    for level in range(link.levels):
        place = places[link.places[level]]
        usual = (place.fresh + FEW_OPENED * usual) / (place.opened + FEW_OPENED)
    return usual


@part
def traits(link, places, crawl):  # type: ignore[no-untyped-def]
    return (
        1.0,
        expected_newness(link, places, crawl),
        np.float64(link.folder),
        min(link.path, 10) / 10.0,
        np.float64(link.query),
        np.float64(link.abroad),
    )


@part
def hub_score(link, tables):  # type: ignore[no-untyped-def]
    """The newness to be expected."""
    total, mine = 0.0, traits(link, tables.places, tables.crawl[0])
    for number in range(TRAITS):
        total += tables.hub_weights[number].weight * mine[number]
    words = 0.0
    for number in range(link.spoken):
        words += tables.hub_word_weights[link.words[number]].weight
    return min(max(total + words / np.sqrt(max(link.spoken, 1.0)), 0.0), 1.5)


@part
def cold(crawl):  # type: ignore[no-untyped-def]
    """1 for a crawl that begins, less with each hit and each page; 0 when it is so little that hubs do not matter."""
    share = FIRST_HITS / (FIRST_HITS + crawl.hits) * PATIENCE / (PATIENCE + crawl.fetched)
    return share if share > SMALL else 0.0


@part
def lead(link, tables):  # type: ignore[no-untyped-def]
    share = cold(tables.crawl[0])
    return tables.tuning[0].lead * share * hub_score(link, tables) if share > 0.0 else 0.0


@part
def count_newness(counter, new, decay):  # type: ignore[no-untyped-def]
    counter.fresh = decay * counter.fresh + new
    counter.opened = decay * counter.opened + 1.0


@kernel(nothing(i64s, TABLES))
def learn_hubs(opened, tables):  # type: ignore[no-untyped-def]
    """The links of these pages are known now: learn how many of them were new, as long as it matters."""
    crawl, tuning = tables.crawl[0], tables.tuning[0]
    for number in opened:
        if number < 0 or cold(crawl) == 0.0:
            continue
        page = tables.pages[number]
        link, new = tables.links[page.link], newness(page.found)
        error = hub_score(link, tables) - new
        mine = traits(link, tables.places, crawl)
        for at in range(TRAITS):
            adagrad_step(tables.hub_weights[at], error * mine[at], tuning.hub_step)
        for at in range(link.spoken):
            adagrad_step(tables.hub_word_weights[link.words[at]], error / np.sqrt(link.spoken), tuning.hub_step)
        for level in range(link.levels):
            count_newness(tables.places[link.places[level]], new, tuning.decay)
        count_newness(crawl, new, tuning.crawl_decay)
