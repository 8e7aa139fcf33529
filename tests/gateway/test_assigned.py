"""What subscriptions and streams hold, over all crawls."""

from __future__ import annotations

import time

from crawlguide.core.messages import Fetch
from crawlguide.core.types import Crawl
from crawlguide.gateway.assigned import AssignedUrls, Holder


def test_what_is_held_of_other_crawls_is_not_looked_through() -> None:
    """A thousand releases beside a hundred thousand URLs, and none of them is left when all are given up."""
    assigned, freed = AssignedUrls(), list[str]()
    many = Holder(Crawl("a", "large"), "c-1", assigned, lambda: freed.append("large"))
    few = Holder(Crawl("b", "small"), "c-1", assigned, lambda: freed.append("small"))
    assigned.note(many, [f"https://a.org/{number}" for number in range(100_000)])
    began = time.monotonic()
    for _ in range(1_000):
        assigned.note(few, ["https://b.org/"])
        assigned.released(few.crawl, "c-1")
        assigned.reported(few.crawl, [Fetch("https://a.org/1", 200)])
        assigned.forget(few, ["https://b.org/"])
    assert time.monotonic() - began < 2.0
    assert freed == ["small"] * 1_000
    assigned.deleted(many.crawl)
    assigned.forget(many, [f"https://a.org/{number}" for number in range(100_000)])
    assert not assigned._holders
