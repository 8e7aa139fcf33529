"""What is kept: a record for each URL heard of, each page fetched, each place, each example, and one for the crawl."""

from __future__ import annotations

import numpy as np

WORDS = 24  # hashed words kept of a link, of its anchor and of its address
ANCHOR_WORDS = 10
VOCABULARY = 1 << 16
MEANING = 64  # leading dimensions of the embedding of a link
PARENTS = 4  # pages that link here and are remembered one by one
LEVELS = 5  # of places: the host, the three innermost folders, and how the last name begins
COLUMNS = 32  # room for dense features
SEED, UNKNOWN = -1, -2  # instead of the page where a link was found: nowhere, and on a page that teaches nothing yet

WAITING, GIVEN, DONE = 0, 1, 2
VISITED, FAILED = 3, 4  # fetched, and nobody said what it is worth; and what did not answer, and may at another time

LINK = np.dtype(
    [
        ("id", np.uint64),
        ("places", np.int32, LEVELS),  # it lies in, the host first, each around the next
        ("finder", np.int32),  # page it was found on, or `SEED`, or `UNKNOWN`
        ("page", np.int32),  # the page it turned out to be, -1: not fetched yet
        ("parents", np.int32, PARENTS),  # pages that link here, the newest; -1: none
        ("count", np.float32),  # fetched pages that link here
        ("sum", np.float32),  # of their worth
        ("best", np.float32),
        ("label", np.float32),  # what it was worth, once fetched
        ("anchor", np.float32),  # likeness of the goal and the words of the link
        ("address", np.float32),  # and the words of its address
        ("said", np.float32),  # share of the goal's words in the anchor
        ("named", np.float32),  # and in the address
        ("outside", np.float32),  # what crawlers told of it, weighed
        ("cash", np.float32),  # what pages that link here passed on to it
        ("words", np.uint16, WORDS),
        ("meaning", np.int8, MEANING),
        ("levels", np.uint8),  # how many places
        ("spoken", np.uint8),  # how many words
        ("depth", np.uint8),  # links from a seed
        ("path", np.uint8),  # folders in its address
        ("query", np.uint8),
        ("folder", np.uint8),  # its address ends in a folder
        ("distance", np.uint8),  # links from the last page of worth
        ("state", np.uint8),
        ("abroad", np.uint8),  # on another host than the page it was found on
        ("chosen", np.uint8),  # given out by a draw
    ],
    align=True,
)

PAGE = np.dtype(
    [
        ("link", np.int32),  # its own record
        ("first", np.int32),  # the URLs it made known, one behind the other
        ("found", np.int32),
        ("waiting", np.int32),  # of them
        ("label", np.float32),
        ("good", np.float32),  # worth of fetched pages it links to, newer ones count more
        ("tried", np.float32),
        ("title", np.float32),  # likeness of the goal and its title
        ("distance", np.uint8),
        ("depth", np.uint8),
    ],
    align=True,
)

PLACE = np.dtype(
    [
        ("key", np.uint64),
        ("fetched", np.int32),
        ("alive", np.int32),  # of those that answered
        ("named", np.int32),  # 1: it is a host with a record of its own
        ("waiting", np.int32),
        ("pending", np.int32),  # given out and not told yet
        ("good", np.float32),  # worth of fetched pages, newer ones count more
        ("tried", np.float32),
        ("failed", np.float32),
        ("total", np.float32),  # worth of all pages
        ("weight", np.float32),  # what it adds by itself
        ("square", np.float32),
        ("fresh", np.float32),  # new links of pages, newer pages count more
        ("opened", np.float32),  # pages whose links are known, newer ones count more
        ("banned", np.float32),  # of a host: fetches that it turned away, newer ones count more
        ("history", np.float32),  # of a host: what its domain yielded before, as a difference of log-odds
    ],
    align=True,
)

HOST = np.dtype([("place", np.int32), ("name", "S100")], align=True)

EXAMPLE = np.dtype(
    [("link", np.int32), ("label", np.float32), ("columns", np.float32, COLUMNS)],
    align=True,
)

WEIGHT = np.dtype([("weight", np.float32), ("square", np.float32)], align=True)

JUDGED = np.dtype(  # what was said of a link, as long as nothing was learned since; never written down
    [
        ("row", np.int64),
        ("turn", np.int64),
        ("value", np.float64),
        ("wish", np.float64),
        ("hope", np.float64),
    ],
    align=True,
)

TASTE = np.dtype([("count", np.float32), ("sum", np.float32, MEANING)], align=True)  # pages of worth, and the others

TUNING = np.dtype(
    [
        ("use", np.float32, COLUMNS),  # 0 where a column shall not count
        ("dense_step", np.float64),  # how fast weights of columns are learned
        ("word_step", np.float64),
        ("place_step", np.float64),
        ("meaning_step", np.float64),
        ("hub_step", np.float64),
        ("honest_step", np.float64),
        ("replays", np.int64),  # earlier fetches that are learned from again with each
        ("new_place", np.float64),  # what is added to log-odds for a place that is new
        ("little_known", np.float64),  # and for a host that answers and is little known
        ("hope", np.float64),  # for a host that is new, as a share of what the crawl has paid
        ("near_hope", np.float64),  # and for one whose words are near to the goal
        ("lost_hope", np.float64),  # and how much more for what the crawl pays less than at its best
        ("lead", np.float64),  # what a page that leads on is worth before anything else was
        ("seed", np.float64),  # what a seed is worth at least
        ("memory", np.float64),  # what a place or page paid counts so much less with each newer fetch there
        ("crawl_memory", np.float64),
        ("few_parents", np.float64),  # so many are as good as none
        ("few_children", np.float64),
        ("few_fetches", np.float64),
        ("pending", np.float64),  # what is under way counts as so much of a failure
        ("least_draws", np.float64),  # share of an answer that is drawn, when all goes well
        ("most_draws", np.float64),  # and what is added when nothing does
    ],
    align=True,
)

CRAWL = np.dtype(
    [
        ("draws", np.int64),  # how often chance was asked
        ("examples", np.int64),
        ("good", np.float64),  # worth of the pages of late
        ("tried", np.float64),
        ("hits", np.float64),  # all pages of worth
        ("fetched", np.int64),
        ("pages", np.int64),  # records of pages that were made
        ("forgotten", np.int64),  # records of URLs that were given to others
        ("luck", np.float64),  # share of worth among what was given out as the best, of late
        ("fresh", np.float64),  # new links of pages, of late
        ("opened", np.float64),
        ("best", np.float64),  # the most that pages of late were worth at any time
        ("first_good", np.float64),  # worth of the first page of a host that was found, not given as a seed
        ("first_tried", np.float64),
        ("first_failed", np.float64),
        ("steepness", np.float64),  # from a raw to an honest chance
        ("offset", np.float64),
        ("steep_square", np.float64),
        ("offset_square", np.float64),
        ("seen", np.float64, 3),  # likenesses so far: of anchors, addresses, titles
        ("mean", np.float64, 3),
        ("spread", np.float64, 3),
    ],
    align=True,
)
