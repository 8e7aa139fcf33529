"""What strategies with arms keep: a record for each URL heard of, one for each arm, and one for the crawl."""

from __future__ import annotations

import numpy as np

UNREAD, WAITING, GIVEN, DONE, AWAY = 0, 1, 2, 3, 4  # AWAY: dropped when it was found

URL = np.dtype(
    [
        ("id", np.uint64),
        ("key", np.float64),  # its place within its arm: the larger, the sooner
        ("arm", np.int32),  # -1: none, nobody has read it
        ("page", np.int32),  # row of the page that made it known, -1: a seed
        ("parents", np.float32),  # pages that link here
        ("total", np.float32),  # of what they were worth
        ("best", np.float32),
        ("words", np.float32),  # share of the goal's words in its address and anchor
        ("worth", np.float32),  # what it was worth, once fetched; NaN: nobody said
        ("tried", np.float32),  # URLs it made known that were fetched
        ("paid", np.float32),  # and what they were worth
        ("counted", np.uint32),  # number of the newest page that was counted among its parents
        ("depth", np.uint8),  # links from a seed
        ("folders", np.uint8),  # in its address
        ("query", np.uint8),
        ("near", np.uint8),  # on the host of the page that made it known
        ("state", np.uint8),
        ("front", np.uint8),  # before all others, to find out more about its arm
    ],
    align=True,
)

ARM = np.dtype(
    [
        ("id", np.uint64),  # hash of its name
        ("plays", np.float64),  # fetches, newer ones count more
        ("reward", np.float64),  # and what they were worth
        ("failed", np.float64),
        ("value", np.float64),  # what its next URL is thought to be worth
        ("floor", np.float64),  # URLs of this key and above stand in line
        ("fetches", np.int64),
    ],
    align=True,
)

CRAWL = np.dtype(
    [
        ("draws", np.int64),  # numbers of chance used so far
        ("pages", np.int64),  # fetched
        ("counted", np.int64),  # pages whose links were counted
        ("updates", np.int64),  # of what is learned
        ("plays", np.float64),
        ("reward", np.float64),
        ("tried", np.float64),  # arms of which anything was fetched
        ("paid", np.float64),  # and what the first fetch of each was worth
        ("state", np.int64),
        ("epsilon", np.float64),
        ("cursor", np.int64),  # where a round through the arms has come to
    ],
    align=True,
)
