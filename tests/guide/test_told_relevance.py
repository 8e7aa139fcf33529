"""The acknowledgement says how relevant each page is: as it was reported, or as the guide judges it."""

from __future__ import annotations

from typing import Any

from crawlguide import Guide
from tests.support import tell

A = "https://a.example/"


def results(guide: Guide, *fetches: dict[str, Any]) -> list[dict[str, Any]]:
    return list(tell(guide, *fetches)["results"])


def test_a_reported_relevance_comes_back(guide: Guide) -> None:
    assert results(guide, {"url": A, "status": 200, "relevance": 0.9})[0]["relevance"] == 0.9


def test_a_page_that_is_judged_by_its_text_says_so(guide: Guide) -> None:
    guide.define("default", {"goal": {"topic": "sourdough bread", "keywords": ["sourdough"]}})
    good, other = results(
        guide,
        {"url": f"{A}1", "status": 200, "title": "Sourdough bread", "text": "How to bake sourdough bread at home."},
        {"url": f"{A}2", "status": 200, "title": "Tax law", "text": "The taxation of companies in three countries."},
    )
    assert good["relevance"] > 0.5 > other["relevance"]


def test_where_nobody_knows_nothing_is_said(guide: Guide) -> None:
    assert results(guide, {"url": A, "status": 200}) == [{"url": A, "status": "ok"}]


def test_a_fetch_that_is_told_again_is_known_with_its_relevance(guide: Guide) -> None:
    fetch = {"url": A, "status": 200, "relevance": 0.9, "fetch_time": "2026-01-01T00:00:00Z"}
    results(guide, fetch)
    assert results(guide, fetch) == [{"url": A, "status": "skip", "reason": "duplicate", "relevance": 0.9}]
