"""What a learner hears of a tell. Strategies that do not learn never come here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import among, first_of_each, texts
from crawlguide.core.types import Lesson
from crawlguide.guide.tell.intake import no_fetches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Learner
    from crawlguide.core.tables import U64, Mask
    from crawlguide.core.types import Discovery, Links, Report
    from crawlguide.features.rewards import Rewards

MOST_RELEARNED = 2_000
NOTHING: U64 = np.zeros(0, np.uint64)


def taught(learner: Learner, heard: Lesson) -> U64:
    """URLs to rank anew besides those that the lesson's links lead to: no more than one tell may pay for."""
    changed = learner.learn(heard)
    return NOTHING if changed is None else changed[:MOST_RELEARNED]


def lesson(
    report: Report,
    used: Mask,
    links: Links,
    discovery: Discovery,
    messages: Sequence[Fetch],
    rewards: Rewards | None,
) -> Lesson:
    """The accepted fetches with what was found on them; `links` are theirs, by their place in the report."""
    everything = bool(used.all())
    fetches = report.fetches if everything else report.fetches.take(used)
    worth, again = (fetches.relevance, used[used] & False) if rewards is None else rewards.hear(fetches)
    told = [messages[item] for item in report.fetches.item[used].tolist()]
    return Lesson(
        at=report.at,
        fetches=fetches,
        title=texts([fetch.title or "" for fetch in told]),
        text=texts([fetch.text or "" for fetch in told]),
        links=links if everything else links.attach(parent=(np.cumsum(used) - 1)[links.parent]),
        fresh=first_seen(links, discovery),
        worth=worth,
        again=again,
    )


def seed_lesson(links: Links, discovery: Discovery, at: float) -> Lesson:
    """Seeds are links that stand on no page."""
    nobody = texts([])
    return Lesson(at, no_fetches(), nobody, nobody, links, first_seen(links, discovery))


def first_seen(links: Links, discovery: Discovery) -> Mask:
    """Of several links to a new URL the first is the one that found it."""
    return among(links.id, discovery.fresh) & first_of_each(links.id)
