"""What a host that is little known may hold.

A hope is added to the chance itself, not to its log-odds: a few failures speak at once as bad parents, bad words and a
bad place, and in log-odds nothing would bring such a host back. It is measured by what the crawl has paid so far, and
more by what it pays less than at its best: where all that is known runs dry, what is unknown is worth looking for. It
shrinks with each page of the host, and with each fetch of the folder and the place, so it goes on to the next, also
within one answer.
"""

import numpy as np

from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_i64, part
from crawlguide.strategies.layered.columns import NAMES
from crawlguide.strategies.layered.evidence import LINKS, PLACES, of_late

BEST_MEANING, ANSWERS = NAMES.index("best meaning"), NAMES.index("answers")
NEAREST = 4.0  # the most that a likeness stands out
AS_GOOD = 0.85  # of its best: so much less is no loss
LITTLE = 4.0  # so many pages say little of the rest of a host: often they only lead on
FOLDER = 2.0  # so many fetches of a folder halve what is hoped for there


@part
def known(place):  # type: ignore[no-untyped-def]
    """Fetches of a place, also those under way."""
    return 1.0 + place.fetched + place.pending


@part
def lost(crawl):  # type: ignore[no-untyped-def]
    """What the crawl pays less, of late, than at its best."""
    return max(AS_GOOD * crawl.best - of_late(crawl), 0.0)


@part
def unseen(link, places):  # type: ignore[no-untyped-def]
    """1 for a place where nothing was fetched, in a folder where nothing was; less with every fetch in either."""
    share = 1.0 / np.sqrt(known(places[link.places[link.levels - 1]]))
    if link.levels > 2:
        share *= FOLDER / (FOLDER - 1.0 + known(places[link.places[link.levels - 2]]))
    return share


@part
def hope_for(link, columns, places, crawl, tuning):  # type: ignore[no-untyped-def]
    """For a link to a host where nothing was fetched: more where its words are near to the goal."""
    paid = (crawl.hits + 0.5) / (crawl.fetched + 5.0) + tuning.lost_hope * lost(crawl)
    words = tuning.hope + tuning.near_hope * max(columns[BEST_MEANING], 0.0) / NEAREST
    return paid * words * np.exp(columns[ANSWERS]) * unseen(link, places)


@part
def left(hope, host, more):  # type: ignore[no-untyped-def]
    """Of a hope after all pages of the host and some more; what did not answer says nothing of the others."""
    return hope / np.sqrt(1.0 + (1.0 + host.alive + host.pending + more) / LITTLE)


@kernel(nothing(i64s, f64s, f64s, LINKS, PLACES, one_i64, f64s))
def spread(rows, wish, hope, links, places, wanted, less):  # type: ignore[no-untyped-def]
    """How much less each row is worth when the best ones are chosen one after the other: what was chosen is known."""
    chosen, more = np.zeros(len(rows), np.bool_), np.zeros(len(rows))
    for _ in range(min(wanted, len(rows))):
        best = -1
        for number in range(len(rows)):
            if not chosen[number] and (best < 0 or wish[number] + less[number] > wish[best] + less[best]):
                best = number
        chosen[best] = True
        if hope[best] <= 0.0:
            continue
        here = links[rows[best]].places[0]
        for number in range(len(rows)):
            if hope[number] > 0.0 and not chosen[number] and links[rows[number]].places[0] == here:
                host = places[here]
                less[number] += left(hope[number], host, more[number] + 1.0) - left(hope[number], host, more[number])
                more[number] += 1.0
