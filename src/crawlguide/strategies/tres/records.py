"""What is stored: URLs, nodes and leaves of the tree, their samples, domains, transitions and the network."""

from __future__ import annotations

import numpy as np

FEATURES = (
    "depth",
    "domain_relevance",
    "domain_count",
    "domain_failure_rate",
    "parent_score",
    "anchor_similarity",
    "sibling_score",
    "path_depth",
    "has_query",
    "domain_weight",
    "round_discovered",
)
X = len(FEATURES)
HIDDEN = (30, 15)
WEIGHTS = X * HIDDEN[0] + HIDDEN[0] + HIDDEN[0] * HIDDEN[1] + HIDDEN[1] + HIDDEN[1] + 1

QUEUE = 4_096  # URLs in the queue of a leaf; of more it holds an even sample
SAMPLES = 128  # newest fetches by which a leaf is split
MOST_LEAVES = 1_024  # so that an ask costs no more, however long a crawl
MOST_LINKS = 1 << 19
RECENT = 1 << 16  # URLs assigned or fetched last, whose features and reward are still kept
NEXT = 8  # links of a page that stand for all that can be done next

MOST_MISSES = 8  # a URL that was drawn so often in vain is forgotten
READMITTED = 8  # URLs that an ask takes back into the queues of leaves

FREE, WAITING, ASSIGNED, DONE = 0, 1, 2, 3

LINK = np.dtype(
    [
        ("id", np.uint64),
        ("reward", np.float32),  # once it is done
        ("depth", np.float32),  # links from a seed
        ("x", np.float32, X),
        ("state", np.uint8),
        ("missed", np.uint8),  # times in a row that it was drawn in vain
    ],
    align=True,
)

NODE = np.dtype(  # a leaf has no feature: -1
    [
        ("feature", np.int32),
        ("threshold", np.float32),  # at most that goes left
        ("left", np.int32),
        ("right", np.int32),
        ("leaf", np.int32),
    ],
    align=True,
)

LEAF = np.dtype(
    [
        ("node", np.int32),
        ("depth", np.int32),
        ("waiting", np.int32),  # URLs in its queue
        ("offered", np.int64),  # URLs that ever came to its queue
        ("heard", np.int64),  # fetches that ended in this leaf
        ("total", np.float64),  # sum of their rewards
    ],
    align=True,
)

SAMPLE = np.dtype([("reward", np.float32), ("x", np.float32, X)], align=True)

DOMAIN = np.dtype(
    [
        ("key", np.uint64),  # hash of the registrable domain
        ("fetched", np.float64),
        ("failed", np.float64),
        ("judged", np.float64),  # rewards, also those that came late
        ("score", np.float64),  # and their sum
    ]
)
DOMAIN_BEFORE = np.dtype(  # version 0.1.0: by host, and without `judged`
    [("key", np.uint64), ("fetched", np.float64), ("failed", np.float64), ("score", np.float64)]
)

TRANSITION = np.dtype(
    [
        ("reward", np.float32),
        ("ways", np.int32),  # how many next links are stored
        ("x", np.float32, X),
        ("next", np.float32, (NEXT, X)),
    ],
    align=True,
)

ONLINE, TARGET, MEAN, SQUARE = 0, 1, 2, 3
NETWORK = np.dtype([("weights", np.float32, WEIGHTS)])

CRAWL = np.dtype(
    [
        ("draws", np.int64),  # random draws so far
        ("transitions", np.int64),
        ("trained", np.int64),  # steps of Adam
        ("taught", np.int64),  # 1: the network came trained
        ("gone", np.int64),  # URLs ever assigned
        ("largest", np.float64),  # largest priority of a transition so far
        ("reward", np.float64),  # sum of all transitions
        ("limits", np.float64, 3),  # domain_max_pages, slow_domain_ms, unreliable_threshold as learned so far
    ],
    align=True,
)
