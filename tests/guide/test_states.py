"""Running, waiting, exhausted, paused, finished: the states of a crawl and the limits that end it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from crawlguide import Guide
from crawlguide.core.clock import iso
from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.core.errors import MalformedRequest, NotFound
from crawlguide.testing import ManualClock
from tests.guide.common import HOSTS, UNPACED, A, crawl_state, pages, stats
from tests.support import ask, asked, fetched, tell


def test_an_unknown_crawl_is_exhausted(guide: Guide) -> None:
    assert crawl_state(guide) == "exhausted"


def test_a_crawl_that_gives_something_is_running(guide: Guide) -> None:
    guide.seed("default", [A])
    assert crawl_state(guide) == "running"


def test_a_crawl_whose_urls_are_all_leased_is_waiting(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    assert crawl_state(unpaced) == "waiting"


def test_a_crawl_whose_host_has_to_rest_is_waiting(guide: Guide) -> None:
    guide.define("default", {"policy": {"default_delay_s": 100}})
    guide.seed("default", list(pages(2)))
    tell(guide, fetched(asked(guide)[0]))
    assert crawl_state(guide) == "waiting"


def test_a_crawl_whose_url_is_to_be_tried_again_is_waiting(unpaced: Guide) -> None:
    tell(unpaced, fetched(A, error="timeout"))
    assert crawl_state(unpaced) == "waiting"


def test_a_crawl_with_nothing_left_is_exhausted(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    tell(unpaced, fetched(asked(unpaced)[0]))
    assert crawl_state(unpaced) == "exhausted"


def test_stats_tell_the_same_state(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    states = [stats(unpaced)["state"]]
    asked(unpaced)
    states.append(stats(unpaced)["state"])
    tell(unpaced, fetched(A))
    states.append(stats(unpaced)["state"])
    assert states == ["running", "waiting", "exhausted"]


def test_an_empty_answer_says_when_to_come_back(unpaced: Guide) -> None:
    unpaced.seed("default", [A])
    asked(unpaced)
    assert ask(unpaced)["retry_after_ms"] > 0


def test_an_answer_with_urls_says_to_come_back_at_once(guide: Guide) -> None:
    guide.seed("default", [A])
    assert ask(guide)["retry_after_ms"] == 0


def test_coming_back_when_told_to_is_not_in_vain(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"policy": {"default_delay_s": 40}})
    guide.seed("default", list(pages(2)))
    tell(guide, fetched(asked(guide)[0]))
    waited = 0
    while not (answer := ask(guide))["assigned_urls"]:
        waited += answer["retry_after_ms"]
        clock.advance(answer["retry_after_ms"] / 1_000)
    assert waited <= 41_000


def test_no_more_than_max_pages_are_given(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 3}})
    guide.seed("default", list(pages(10)))
    assert len(asked(guide, "c-1", 2)) == 2
    assert len(asked(guide, "c-2", 2)) == 1
    assert asked(guide, "c-3", 2) == []


def test_a_crawl_with_all_its_pages_is_finished(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 3}})
    guide.seed("default", list(pages(10)))
    for url in asked(guide):
        tell(guide, fetched(url))
    assert (asked(guide), crawl_state(guide)) == ([], "finished")


def test_a_crawl_whose_last_pages_are_on_their_way_is_waiting(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 3}})
    guide.seed("default", list(pages(10)))
    asked(guide)
    assert crawl_state(guide) == "waiting"


def test_a_page_that_failed_is_not_one_of_max_pages(guide: Guide) -> None:
    guide.define("default", {"policy": UNPACED, "limits": {"max_pages": 1}})
    guide.seed("default", list(pages(2)))
    tell(guide, fetched(asked(guide)[0], status=404))
    assert len(asked(guide)) == 1


def test_until_then_a_crawl_gives(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"limits": {"until": iso(clock.now() + 100.0)}})
    guide.seed("default", list(HOSTS))
    clock.advance(99.0)
    assert len(asked(guide, max_urls=3)) == 3


def test_after_until_a_crawl_is_finished(guide: Guide, clock: ManualClock) -> None:
    guide.define("default", {"limits": {"until": iso(clock.now() + 100.0)}})
    guide.seed("default", list(HOSTS))
    clock.advance(100.0)
    assert (asked(guide), crawl_state(guide)) == ([], "finished")


def test_until_is_read_with_its_zone(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", list(HOSTS))
    guide.define("default", {"limits": {"until": "2023-11-14T23:13:20+01:00"}})  # the very instant of the clock
    assert crawl_state(guide) == "finished"


def test_until_without_a_zone_means_utc_wherever_the_machine_stands(
    guide: Guide, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide.seed("default", list(HOSTS))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        until = datetime.fromtimestamp(clock.now() + 60.0, UTC).replace(tzinfo=None).isoformat()
        guide.define("default", {"limits": {"until": until}})
        assert crawl_state(guide) == "running"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_an_until_that_is_no_instant_is_refused_by_name(guide: Guide) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        guide.define("default", {"limits": {"until": "tomorrow"}})
    assert refusal.value.field == "limits.until"


def test_a_paused_crawl_gives_nothing_and_says_so(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    assert (asked(guide), crawl_state(guide)) == ([], "paused")


def test_a_paused_crawl_still_listens(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    assert tell(guide, fetched(A, A + "1"))["discovered"] == 1


def test_a_resumed_crawl_goes_on(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    guide.resume("default")
    assert asked(guide) == [A]


def test_a_new_definition_does_not_wake_a_paused_crawl(guide: Guide) -> None:
    guide.seed("default", [A])
    guide.pause("default")
    guide.define("default", {"policy": UNPACED})
    assert crawl_state(guide) == "paused"


def test_a_crawl_that_nobody_defined_is_not_found_if_the_operator_says_so() -> None:
    config = Config(crawls=CrawlsOptions(auto_create=False))
    with Guide.open(":memory:", clock=ManualClock(), config=config) as guide:
        for call in (lambda: ask(guide), lambda: tell(guide, fetched(A)), lambda: guide.seed("default", [A])):
            with pytest.raises(NotFound) as refusal:
                call()
            assert refusal.value.field == "crawl_id"


def test_a_crawl_that_somebody_defined_is_found_whatever_the_operator_says() -> None:
    config = Config(crawls=CrawlsOptions(auto_create=False))
    with Guide.open(":memory:", clock=ManualClock(), config=config) as guide:
        guide.define("default", {})
        guide.seed("default", [A])
        assert asked(guide) == [A]
