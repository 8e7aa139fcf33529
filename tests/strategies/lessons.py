"""Lessons as a guide makes them, for a learner that stands alone."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.definition import Reward
from crawlguide.core.messages import Fetch
from crawlguide.core.types import Lesson, Seed
from crawlguide.features.rewards import Rewards
from crawlguide.guide.crawl.active_crawl import relevance_of
from crawlguide.guide.tell.intake import IntakeRules, no_fetches, reported, seeded
from tests.support import CRAWL, NOW

RULES = IntakeRules(judge=lambda fetch: relevance_of(fetch, None), verdict=lambda _: None)


def seeds(*found: str) -> Lesson:
    links, nobody = seeded([Seed(url) for url in found], RULES), texts([])
    return Lesson(NOW, no_fetches(), nobody, nobody, links, np.ones(len(links), np.bool_))


def told(*fetches: dict[str, Any]) -> Lesson:
    messages = msgspec.convert(list(fetches), list[Fetch])
    report = asyncio.run(reported(messages, CRAWL, "c-1", NOW, RULES))
    title, text = texts([one.title or "" for one in messages]), texts([one.text or "" for one in messages])
    worth = Rewards(Reward()).hear(report.fetches)
    return Lesson(NOW, report.fetches, title, text, report.links, np.ones(len(report.links), np.bool_), *worth)


def ids(*found: str) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([urls.identity(urls.canonical(url)) for url in found], np.uint64)
