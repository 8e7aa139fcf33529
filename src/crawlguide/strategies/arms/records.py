"""What strategies with arms store: a record for each URL, one for each arm, and one for the crawl."""

from __future__ import annotations

import numpy as np

UNREAD, WAITING, ASSIGNED, DONE, DROPPED = 0, 1, 2, 3, 4  # UNREAD: fetched, but never seen as a link

URL = np.dtype(
    [
        ("id", np.uint64),
        ("key", np.float64),  # its place within its arm: the largest goes first
        ("arm", np.int32),  # -1: none, it was never seen as a link
        ("page", np.int32),  # row of the page on which it was found first, -1: a seed
        ("parents", np.float32),  # pages that link here
        ("total", np.float32),  # sum of their rewards
        ("best", np.float32),  # the largest of their rewards
        ("words", np.float32),  # share of the goal's words in its address and anchor
        ("worth", np.float32),  # its reward, once fetched; NaN: not judged
        ("tried", np.float32),  # fetches of URLs that were found first on this page
        ("paid", np.float32),  # and the sum of their rewards
        ("counted", np.uint32),  # number of the last page that was counted among its parents
        ("depth", np.uint8),  # links from a seed
        ("folders", np.uint8),  # in its URL
        ("query", np.uint8),
        ("near", np.uint8),  # on the host of the page on which it was found first
        ("state", np.uint8),
        ("front", np.uint8),  # 1: goes before all others, to explore its arm
    ],
    align=True,
)

ARM = np.dtype(
    [
        ("id", np.uint64),  # hash of its name
        ("plays", np.float64),  # fetches, decayed
        ("reward", np.float64),  # sum of their rewards, decayed
        ("failed", np.float64),  # failed fetches, decayed
        ("value", np.float64),  # expected reward of its next URL
        ("floor", np.float64),  # URLs with at least this key are active
        ("fetches", np.int64),
    ],
    align=True,
)

CRAWL = np.dtype(
    [
        ("draws", np.int64),  # random draws so far
        ("pages", np.int64),  # fetched
        ("counted", np.int64),  # pages whose links were counted
        ("updates", np.int64),  # fetches learned from
        ("plays", np.float64),
        ("reward", np.float64),
        ("tried", np.float64),  # arms of which anything was fetched
        ("paid", np.float64),  # sum of the rewards of their first fetches
        ("state", np.int64),
        ("epsilon", np.float64),
        ("cursor", np.int64),  # where the round through the arms stands
    ],
    align=True,
)
