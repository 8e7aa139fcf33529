"""What counts as a change of a page."""

from __future__ import annotations

from typing import Any

import pytest

from crawlguide.core.messages import Fetch
from crawlguide.guide.recrawl.looks import CHANGED, FAILED, GONE, SAME, UNKNOWN, Held, fresh_for_s, held_in, look

TEXT = "the quick brown fox jumps over the lazy dog while seven wizards quietly juggle boxes of liquor jugs " * 5


def looked(before: dict[str, Any], now: dict[str, Any]) -> int:
    first, second = (Fetch("https://a.org/", **{"status": 200, **said}) for said in (before, now))
    return look(second, held_in(first), held_in(second))


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ({"content_hash": "a"}, {"content_hash": "a"}, SAME),
        ({"content_hash": "a"}, {"content_hash": "b"}, CHANGED),
        ({"content_hash": "a", "text": TEXT}, {"content_hash": "b", "text": TEXT}, CHANGED),
        ({"text": TEXT + "3 March 2024"}, {"text": TEXT + "19 November 2025"}, SAME),
        ({"text": TEXT}, {"text": TEXT[::-1]}, CHANGED),
        ({"etag": '"a"'}, {"etag": 'W/"a"'}, SAME),
        ({"etag": '"a"'}, {"etag": '"b"'}, CHANGED),
        (
            {"last_modified": "Mon, 03 Nov 2025 14:19:41 GMT"},
            {"last_modified": "Mon, 03 Nov 2025 14:19:42 GMT"},
            CHANGED,
        ),
        ({"last_modified": "Mon, 03 Nov 2025 14:19:41 GMT"}, {"last_modified": "no date"}, UNKNOWN),
        ({"content_hash": "a"}, {"unchanged": True}, SAME),
        ({"content_hash": "a"}, {"unchanged": False, "content_hash": "a"}, CHANGED),
        ({}, {"status": 304}, SAME),
        ({}, {}, UNKNOWN),
        ({"content_hash": "a"}, {"status": 404}, GONE),
        ({"content_hash": "a"}, {"status": 410, "content_hash": "b"}, GONE),
        ({"content_hash": "a"}, {"status": 503, "content_hash": "b"}, FAILED),
        ({"content_hash": "a"}, {"status": None, "error": "timeout"}, FAILED),
        ({"content_hash": "a"}, {"status": 403}, GONE),
        ({"content_hash": "a"}, {"status": 429}, FAILED),
        ({"content_hash": "a"}, {"status": 301}, UNKNOWN),
    ],
)
def test_what_a_fetch_says(before: dict[str, Any], now: dict[str, Any], kind: int) -> None:
    assert looked(before, now) == kind


def test_nothing_is_known_of_what_nobody_told() -> None:
    assert held_in(Fetch("https://a.org/", status=200))[:3] == Held()[:3]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("max-age=600", 600),
        ("public, max-age=600, s-maxage=30", 600),
        ("max-age=99999999", 86_400),
        ("no-cache, max-age=600", 0),
        ("max-age=600, no-store", 0),
        ("max-age=-5", 0),
        ("x-max-age=7", 0),
    ],
)
def test_how_long_a_server_says_that_a_copy_stays_fresh(header: str | None, seconds: float) -> None:
    assert fresh_for_s(header) == seconds
