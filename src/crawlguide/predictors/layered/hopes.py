"""What a host that is little known may hold.

A hope is added to the chance itself, not to its log-odds: a few failures speak at once as bad parents, bad words and a
bad place, and in log-odds nothing would bring such a host back. It is measured by what the crawl has paid so far, and
it shrinks with each fetch of the host and of the place, so it goes on to the next, also within one answer.
"""

import numpy as np

from crawlguide.core.kernels import F64, I64, kernel, nothing, one_i64, part
from crawlguide.predictors.layered.columns import NAMES
from crawlguide.predictors.layered.evidence import LINKS, PLACES

BEST_MEANING, ANSWERS = NAMES.index("best meaning"), NAMES.index("answers")
NEAREST = 4.0  # the most that a likeness stands out


@part
def known(place):  # type: ignore[no-untyped-def]
    """Fetches of a place, also those under way."""
    return 1.0 + place.fetched + place.pending


@part
def hope_for(link, columns, places, crawl, tuning):  # type: ignore[no-untyped-def]
    """For a link to a host where nothing was fetched: more where its words are near to the goal."""
    paid = (crawl.hits + 0.5) / (crawl.fetched + 5.0)
    words = tuning.hope + tuning.near_hope * max(columns[BEST_MEANING], 0.0) / NEAREST
    place = places[link.places[link.levels - 1]]
    return paid * words * np.exp(columns[ANSWERS]) / np.sqrt(known(place))


@part
def left(hope, host, more):  # type: ignore[no-untyped-def]
    """Of a hope after all fetches of the host and some more."""
    return hope / np.sqrt(known(host) + more)


@kernel(nothing(I64, F64, F64, LINKS, PLACES, one_i64, F64))
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
