"""A URL is with one crawler until it is told, released or expired."""

from __future__ import annotations

from crawlguide import Guide
from crawlguide.core.clock import iso
from crawlguide.testing import ManualClock
from tests.guide.common import LEASE_S, A, stats
from tests.support import ask, asked, fetched, tell


def test_a_released_url_is_given_to_another_crawler_at_once(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1")
    ack = tell(unpaced, {"url": A, "error": "released"}, crawler_id="c-1")
    assert ack["results"] == [{"url": A, "status": "ok"}]
    assert asked(unpaced, "c-2") == [A]


def test_a_release_is_neither_a_fetch_nor_a_failure(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    tell(unpaced, {"url": A, "error": "released"})
    assert (stats(unpaced)["fetches"], stats(unpaced)["failed"]) == (0, 0)


def test_releasing_what_nobody_holds_is_a_skip(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    assert tell(unpaced, {"url": A, "error": "released"})["results"][0]["status"] == "skip"


def test_a_crawler_cannot_release_what_another_holds(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1")
    clock.advance(LEASE_S)
    assert asked(unpaced, "c-2") == [A]
    tell(unpaced, {"url": A, "error": "released"}, crawler_id="c-1")  # too late: its lease has ended
    assert asked(unpaced, "c-3") == []


def test_the_answer_says_when_the_lease_ends(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", [A])
    given_out = ask(guide, timeout_ms=100_000)["assigned_urls"][0]
    assert given_out["lease_expires"] == iso(clock.now() + 125.0)


def test_a_lease_lasts_for_the_timeout_and_a_quarter_more(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1", timeout_ms=100_000)
    clock.advance(124.999)
    assert asked(unpaced, "c-2") == []


def test_an_expired_url_is_given_to_another_crawler(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1", timeout_ms=100_000)
    clock.advance(125.0)
    assert asked(unpaced, "c-2") == [A]


def test_without_a_timeout_a_lease_lasts_for_150_seconds(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1")
    clock.advance(LEASE_S - 0.001)
    assert asked(unpaced, "c-2") == []
    clock.advance(0.001)
    assert asked(unpaced, "c-2") == [A]


def test_a_fetch_told_after_its_lease_ended_still_counts(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    clock.advance(LEASE_S + 1.0)
    tell(unpaced, fetched(A))
    assert asked(unpaced) == []


def test_times_that_a_crawler_writes_never_drive_leases(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [A])
    asked(unpaced, "c-1", request_timestamp="2099-01-01T00:00:00Z")
    clock.advance(LEASE_S)
    assert asked(unpaced, "c-2", request_timestamp="1999-01-01T00:00:00Z") == [A]
