"""The records that are kept of a crawl: one for each URL, page, place and example, and one for the crawl itself.

Names of fields and sheets are stored on disk with the data, so they stay as they are even where the code says it in
another word: `luck` is the recent hit rate, the sheet `taste` holds the profile, the sheet `told` the ask signals.

A *place* is a group of URLs that begin alike: a host, one of its folders, or the names in a folder that begin with the
same letters. Rewards are numbers in 0…1; a page with at least 0.5 is a *hit*. A *late* reward comes after its fetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import f32s, named_tuple, one_i64, records
from crawlguide.strategies.layered.trust import TRUSTS

if TYPE_CHECKING:
    from crawlguide.core.tables import F32

WORDS = 24  # hashed words kept of a link, of its anchor and of its address
ANCHOR_WORDS = 10
VOCABULARY = 1 << 16
MEANING = 64  # leading dimensions of the embedding of a link
PARENTS = 4  # pages linking to a URL that are remembered one by one
LEVELS = 5  # of places: the host, the three innermost folders, and the leading letters of the last name
COLUMNS = 32  # room for features
SEED, NO_PAGE = -1, -2  # instead of the page where a link was found: none, and one without a record

WAITING, ASSIGNED, DONE = 0, 1, 2
VISITED, FAILED = 3, 4  # fetched, but its reward is not known yet; no answer, so another try may still succeed

LINK = np.dtype(
    [
        ("id", np.uint64),
        ("places", np.int32, LEVELS),  # rows of the places it lies in, from the host to the innermost
        ("finder", np.int32),  # page that it was found on first, or `SEED`, or `NO_PAGE`
        ("page", np.int32),  # its row among the pages, -1: not fetched yet
        ("parents", np.int32, PARENTS),  # the newest pages that link here; -1: none
        ("count", np.float32),  # older pages that link here
        ("sum", np.float32),  # of their rewards
        ("best", np.float32),  # of their rewards
        ("label", np.float32),  # its own reward, once fetched
        ("anchor", np.float32),  # similarity of the goal and its anchor
        ("address", np.float32),  # and the words of its URL
        ("said", np.float32),  # share of the goal's words in the anchor
        ("named", np.float32),  # and in the URL
        ("outside", np.float32),  # log-odds that the ask signals give it
        ("cash", np.float32),  # authority that pages linking here passed on (OPIC)
        ("words", np.uint16, WORDS),
        ("meaning", np.int8, MEANING),
        ("levels", np.uint8),  # how many places it has
        ("spoken", np.uint8),  # how many words it has
        ("depth", np.uint8),  # links from a seed
        ("path", np.uint8),  # folders in its URL
        ("query", np.uint8),
        ("folder", np.uint8),  # its URL ends in a folder
        ("distance", np.uint8),  # links from the nearest hit on the way here
        ("state", np.uint8),
        ("abroad", np.uint8),  # on another host than the page it was found on
        (
            "chosen",
            np.uint8,
        ),  # the year in its address, from 1900 on; 0 and 1, as in older records: none
    ],
    align=True,
)

PAGE = np.dtype(
    [
        ("link", np.int32),  # its row among the links
        ("first", np.int32),  # row of the first link that was found here first; the others follow it
        ("found", np.int32),  # how many they are
        ("waiting", np.int32),  # and how many of them wait
        ("label", np.float32),  # its reward, NaN: not known yet
        ("good", np.float32),  # rewards of fetched pages it links to, newer ones count more
        ("tried", np.float32),
        ("title", np.float32),  # similarity of the goal and its title
        ("distance", np.uint8),
        ("depth", np.uint8),
    ],
    align=True,
)

PLACE = np.dtype(
    [
        ("key", np.uint64),
        ("fetched", np.int32),
        ("alive", np.int32),  # fetches that answered
        ("named", np.int32),
        ("waiting", np.int32),
        ("pending", np.int32),  # assigned, and not told yet
        ("good", np.float32),  # rewards of fetches, newer ones count more
        ("tried", np.float32),  # the fetches, decayed likewise
        ("failed", np.float32),
        ("total", np.float32),  # rewards of all fetches, without decay
        ("weight", np.float32),  # what the place itself adds to log-odds
        ("square", np.float32),
        ("fresh", np.float32),  # new links found on its pages, newer pages count more
        ("opened", np.float32),  # pages whose links were counted, newer ones count more
        ("banned", np.float32),  # of a host: fetches refused (403, 429, `blocked`), newer ones count more
        ("history", np.float32),  # of a host: log-odds that crawlers' `historical_yield` gives its domain
    ],
    align=True,
)

EXAMPLE = np.dtype(
    [("link", np.int32), ("label", np.float32), ("columns", np.float32, COLUMNS)],
    align=True,
)

WEIGHT = np.dtype([("weight", np.float32), ("square", np.float32)], align=True)

COVARIANCE = np.dtype([("of", np.float32, COLUMNS)])  # of the weight of one column with those of all

PROFILE = np.dtype([("count", np.float32), ("sum", np.float32, MEANING)], align=True)  # of hits, and of other pages
VECTOR = np.dtype([("key", np.uint64), ("kind", np.int64), ("vector", np.float32, MEANING)])  # of a page that was read

TUNING = np.dtype(
    [
        ("use", np.float32, COLUMNS),  # 0 where a column shall not count
        ("doubt", np.float64),  # variance of the weight of a column before anything was learned
        ("word_step", np.float64),
        ("place_step", np.float64),
        ("meaning_step", np.float64),
        ("hub_step", np.float64),
        ("calibration_step", np.float64),
        ("replays", np.int64),  # earlier fetches that are learned again with each fetch
        ("host_bonus", np.float64),  # what a link of an unknown host may be worth, as a share of what the crawl pays
        ("near_host_bonus", np.float64),  # more, where the words of the link are near to the goal
        ("decline_bonus", np.float64),  # how much the hit rate that was lost since the peak adds to that rate
        ("lead", np.float64),  # for pages with many new links, before the first hit
        ("boldness", np.float64),  # how much likely links are preferred on hosts with few fetches
        ("seed_value", np.float64),  # the least explore value of a seed
        ("decay", np.float64),  # of what is known of a place or page, with each newer fetch there
        ("crawl_decay", np.float64),
        ("few_parents", np.float64),  # weight of the crawl's rate, in parents
        ("few_children", np.float64),  # in children of a page
        ("few_fetches", np.float64),  # in fetches of a place
        ("pending", np.float64),  # an assigned URL counts as so much of a fetch without reward
    ],
    align=True,
)

CRAWL = np.dtype(
    [
        ("draws", np.int64),  # random numbers used so far
        ("examples", np.int64),
        ("good", np.float64),  # rewards, newer ones count more
        ("tried", np.float64),
        ("hits", np.float64),  # sum of all rewards
        ("fetched", np.int64),
        ("pages", np.int64),  # records of pages that were made
        ("forgotten", np.int64),  # records of URLs that were used again for others
        ("luck", np.float64),  # recent hit rate
        ("fresh", np.float64),  # new links found on pages, newer pages count more
        ("opened", np.float64),
        ("best", np.float64),  # the highest recent reward rate so far, which decays
        ("first_good", np.float64),  # rewards of the first fetch of each host that is not a seed's
        ("first_tried", np.float64),
        ("first_failed", np.float64),
        ("steepness", np.float64),  # calibration: probability = sigmoid(steepness · log-odds + offset)
        ("offset", np.float64),
        ("steep_square", np.float64),
        ("offset_square", np.float64),
        ("seen", np.float64, 3),  # similarities so far: of anchors, URLs, titles
        ("mean", np.float64, 3),
        ("spread", np.float64, 3),
    ],
    align=True,
)

LINKS, PAGES, PLACES = records(LINK), records(PAGE), records(PLACE)
CRAWLS, TUNINGS, EXAMPLES, WEIGHTS = records(CRAWL), records(TUNING), records(EXAMPLE), records(WEIGHT)
Records = np.ndarray[Any, Any]


class Tables(NamedTuple):
    """All that kernels read and write, as one argument; `LayeredMemory.tables` makes it for each call.

    Never keep one: sheets grow, and then these are no longer their arrays.
    """

    links: Records
    pages: Records
    places: Records
    crawl: Records  # one record
    tuning: Records  # one record
    examples: Records
    weights: Records  # of the columns, and behind them of the dimensions of the meaning
    covariance: Records  # of the weights of columns
    word_weights: Records
    hub_weights: Records
    hub_word_weights: Records
    answer_weights: Records  # of the traits of a link, and behind them of its words
    trust: Records  # one record
    profile: F32
    links_used: int


TABLES = named_tuple(
    Tables, LINKS, PAGES, PLACES, CRAWLS, TUNINGS, EXAMPLES, WEIGHTS, records(COVARIANCE), WEIGHTS,
    WEIGHTS, WEIGHTS, WEIGHTS, TRUSTS, f32s, one_i64,
)  # fmt: skip
