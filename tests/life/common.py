"""What tests of a crawl that runs share."""

from __future__ import annotations

from typing import Any

from crawlguide import Guide
from tests.guide.common import UNPACED

A, B = "https://a.org/", "https://b.org/"


def pages(count: int, host: str = A) -> list[str]:
    return [f"{host}{number}" for number in range(count)]


def numbers(guide: Guide) -> dict[str, Any]:
    found: dict[str, Any] = guide.stats("default")["crawls"]["default"]
    return found


def policy(guide: Guide, **more: Any) -> None:
    guide.define("default", {"policy": UNPACED | more})
