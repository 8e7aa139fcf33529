"""New links get their records and find their places; links that stand side by side mostly lie in the same ones."""

import numpy as np

from crawlguide.core.kernels import I64, U64, kernel, nothing, one_i64
from crawlguide.predictors.layered.evidence import FAR, LINKS, PLACES
from crawlguide.predictors.layered.records import LEVELS, LINK, SEED

BLANK = np.zeros(1, LINK)  # what is known of a link to begin with
BLANK["parents"], BLANK["finder"], BLANK["page"], BLANK["distance"] = -1, SEED, -1, FAR


@kernel(nothing(I64, I64, U64, LINKS, LINKS))
def begin(rows, fresh, ids, blank, links):  # type: ignore[no-untyped-def]
    """New links (`fresh` is 1) of which nothing is known yet; `blank` is what all of them begin with."""
    for number in range(len(rows)):
        if fresh[number]:
            links[rows[number]] = blank[0]
            links[rows[number]].id = ids[number]


@kernel(one_i64(U64, U64, I64))
def differing(keys, asked, at):  # type: ignore[no-untyped-def]
    """The keys that are not those of the link before go to `asked`, in their order; returns how many they are.

    `keys` holds `LEVELS` for each link, 0 where there is no place; `at` gets where each key stands in `asked`, -1: it
    is none. Every link has a host.
    """
    count = 0
    for number in range(len(keys)):
        if number % LEVELS == 0:
            keys[number] |= np.uint64(1)
        if keys[number] == 0:
            at[number] = -1
        elif number >= LEVELS and keys[number] == keys[number - LEVELS]:
            at[number] = at[number - LEVELS]
        else:
            asked[count], at[number] = keys[number], count
            count += 1
    return count


@kernel(nothing(I64, I64, I64, LINKS, PLACES))
def settle(rows, at, found, links, places):  # type: ignore[no-untyped-def]
    """`found` are the places that were asked for, -1 where there was no room; a smaller one is not told then."""
    for number in range(len(rows)):
        link, level = links[rows[number]], 0
        while level < LEVELS:
            asked = at[number * LEVELS + level]
            place = found[asked] if asked >= 0 else -1
            if level == 0:
                place = max(place, 0)
            if place < 0:
                break
            link.places[level] = place
            places[place].waiting += 1
            level += 1
        link.levels = level
