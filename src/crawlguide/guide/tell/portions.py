"""A long report in portions, each taken whole: recorded, discovered, learned from and ranked before the next one.

How a report is cut depends on what it says and never on the time it takes, so that one history teaches one lesson.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.messages import MAX_OUTLINKS, Ack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crawlguide.core.messages import Fetch

MOST_COST = 300  # of a portion, in links: some 15 ms
FILE = "/robots.txt"
FETCH_COST, JUDGED_COST = 2, 6  # the second where the guide has to judge a page by itself


def portions(fetches: Sequence[Fetch], report_id: str | None) -> Iterator[Sequence[Fetch]]:
    """All fetches in their order. An ordinary report is one portion, and so is a page with however many links.

    While more than one portion's work is done, others are served, and what they write is written with half of it: a
    server that ends then has taken some of the report and does not know it, so its fetches are recognised one by one.
    """
    first, spent = 0, 0
    for number, fetch in enumerate(fetches):
        added = cost(fetch)
        if spent + added > MOST_COST and number > first:
            yield _told_once(fetches[first:number], first, report_id)
            first, spent = number, 0
        spent += added
    is_short = first == 0 and cost_in_group(fetches) < MOST_COST
    yield fetches if is_short else _told_once(fetches[first:], first, report_id)


def cost(fetch: Fetch) -> int:
    """In links."""
    judged = fetch.relevance is None and (fetch.title or fetch.text)
    return min(len(fetch.outlinks or ()), MAX_OUTLINKS) + (JUDGED_COST if judged else FETCH_COST)


def cost_in_group(fetches: Sequence[Fetch]) -> int:
    """Between robots.txt files others are served, so they go alone."""
    return MOST_COST if any(FILE in fetch.url for fetch in fetches) else sum(map(cost, fetches))


def _told_once(fetches: Sequence[Fetch], first: int, report_id: str | None) -> Sequence[Fetch]:
    """Fetches that are recognised one by one when the report is told again."""
    if report_id is None:
        return fetches
    names = (f"{report_id} {number}" for number in range(first, first + len(fetches)))
    return [
        msgspec.structs.replace(fetch, fetch_time=fetch.fetch_time or name)
        for fetch, name in zip(fetches, names, strict=True)
    ]


def joined(acks: Sequence[Ack]) -> Ack:
    """What is said of all portions together."""
    return Ack(
        sum(ack.accepted for ack in acks),
        sum(ack.discovered for ack in acks),
        sum(ack.truncated for ack in acks),
        [result for ack in acks for result in ack.results],
    )
