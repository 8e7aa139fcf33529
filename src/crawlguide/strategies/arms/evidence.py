"""How what was found and fetched becomes evidence: O(links of a page), whatever is known already."""

from __future__ import annotations

import numpy as np

from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_f64, one_i64, records, u8s
from crawlguide.strategies.arms.records import ARM, CRAWL, DONE, GIVEN, URL, WAITING

URLS, ARMS, CRAWLS = records(URL), records(ARM), records(CRAWL)
DEEPEST = 255


@kernel(nothing(URLS, i64s, i64s, i64s))
def made_known(urls, rows, parents, pages):  # type: ignore[no-untyped-def]
    """New links: on which page they were found (`parents`: which of `pages`, -1: a seed), and how far from a seed."""
    for number in range(len(rows)):
        url, parent = urls[rows[number]], parents[number]
        url.page = -1 if parent < 0 else pages[parent]
        url.depth = 0 if parent < 0 else min(urls[pages[parent]].depth + 1, DEEPEST)


@kernel(nothing(URLS, i64s, i64s, f64s, one_i64))
def link(urls, rows, parents, worth, counted):  # type: ignore[no-untyped-def]
    """Each page counts once for a URL it links to. A seed counts as linked from a page that was worth 1."""
    for number in range(len(rows)):
        url, parent = urls[rows[number]], parents[number]
        mark = np.uint32(counted + parent + 2)
        if url.counted == mark:
            continue
        url.counted = mark
        paid = 1.0 if parent < 0 else worth[parent]
        url.parents += 1.0
        url.total += paid
        url.best = max(url.best, paid)


@kernel(nothing(URLS, ARMS, CRAWLS, i64s, f64s, u8s, u8s, one_f64))
def credit(urls, arms, crawls, rows, reward, failed, late, memory):  # type: ignore[no-untyped-def]
    """What fetches were worth goes to their arms and to the pages that made them known; NaN: nobody says.

    Late feedback takes the place of what was said before.
    """
    for number in range(len(rows)):
        url, paid = urls[rows[number]], reward[number]
        if np.isnan(paid):
            continue
        before = url.worth if late[number] and not np.isnan(url.worth) else np.nan
        again = not np.isnan(before)
        change = paid - before if again else paid
        url.worth = paid
        if url.arm >= 0:
            arm = arms[url.arm]
            if arm.fetches == 0:
                crawls[0].tried += 1.0
                crawls[0].paid += paid
            if not again:
                arm.plays, arm.reward, arm.failed = memory * arm.plays + 1.0, memory * arm.reward, memory * arm.failed
                arm.fetches += 1
            arm.reward += change
            arm.failed += failed[number]
        if url.page >= 0:
            page = urls[url.page]
            page.tried += 0.0 if again else 1.0
            page.paid += change


@kernel(nothing(URLS, i64s, one_i64))
def mark(urls, rows, state):  # type: ignore[no-untyped-def]
    """A new state; what is given or done no longer stands in front."""
    for row in rows:
        if row >= 0 and not (state == GIVEN and urls[row].state == DONE):
            urls[row].state = state
            if state != WAITING:
                urls[row].front = 0
