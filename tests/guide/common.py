"""What tests of the guide share: addresses, and looks into a crawl."""

from __future__ import annotations

from typing import Any

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.support import ask, asked

UNPACED = {"default_delay_s": 0, "max_per_host": 0}
LEASE_S = 150.0  # the default timeout of 120 s and a quarter more
A = "https://a.org/"
HOSTS = [f"https://host{number}.org/" for number in range(10)]


def pages(count: int, host: str = A) -> list[str]:
    return [f"{host}{number}" for number in range(count)]


def stats(guide: Guide, crawl_id: str = "default") -> dict[str, Any]:
    found: dict[str, Any] = guide.stats(crawl_id)["crawls"][crawl_id]
    return found


def crawl_state(guide: Guide) -> str:
    return str(ask(guide)["metadata"]["crawl_state"])


def seconds_until_given(guide: Guide, clock: ManualClock, url: str, most: int = 10_000) -> int:
    """Let the clock tick until the URL is given out; it is then leased."""
    for waited in range(most):
        if url in asked(guide):
            return waited
        clock.advance(1.0)
    raise AssertionError(f"{url} was not given within {most} s")
