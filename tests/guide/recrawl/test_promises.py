"""Promises about the age of copies: kept where they can be, called impossible before they break where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide.core.errors import MalformedRequest
from tests.guide.common import stats
from tests.guide.recrawl.web import DAY_S, NEVER_PACED, ChangingWeb, addresses, crawl
from tests.support import tell

if TYPE_CHECKING:
    from crawlguide import Guide
    from crawlguide.testing import ManualClock

SIX_HOURS = 21_600.0


def begin(guide: Guide, urls: list[str], *promises: dict[str, Any], **policy: Any) -> None:
    monitored = {"recrawl": "monitor", "promises": list(promises)}
    guide.define("default", {"policy": NEVER_PACED | monitored | policy})
    guide.seed("default", urls)


def promised(guide: Guide, number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = stats(guide)["freshness"]["promises"][number]
    return found


def test_a_promise_that_can_be_kept_is_kept_whatever_changes(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(100)
    web = ChangingWeb(urls, np.full(100, 0.01), clock)
    begin(guide, urls, {"max_age_s": SIX_HOURS})
    crawl(guide, web, 1, 100, 1_800.0)
    young = []
    for _ in range(24):
        crawl(guide, web, 1 / 8, 100, 1_800.0)
        young.append(np.mean(web.age_s() <= SIX_HOURS))
        assert promised(guide)["kept"]
        assert promised(guide)["possible"]
    assert min(young) >= 0.9


def test_a_promise_beyond_the_budget_is_called_impossible_before_a_copy_is_too_old(
    guide: Guide, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    urls = addresses(100)
    web = ChangingWeb(urls, np.full(100, 0.01), clock)
    begin(guide, urls, {"max_age_s": SIX_HOURS}, recrawl_per_day=100)
    crawl(guide, web, 1 / 24, 100, 600.0)
    state = promised(guide)
    assert float(web.age_s().max()) < SIX_HOURS
    assert (state["kept"], state["possible"], state["needs_per_day"], state["has_per_day"]) == (True, False, 360, 100)
    assert "it costs 360 fetches a day, and its budget for fetching again has 100; 260 more" in state["words"]
    assert [one.__dict__["event"] for one in caplog.records if "promise" in one.message] == ["promise_impossible"]


def test_the_pauses_of_a_host_make_a_promise_impossible(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(100, hosts=1)
    web = ChangingWeb(urls, np.full(100, 0.01), clock)
    begin(guide, urls, {"max_age_s": 600.0, "share": 1.0}, default_delay_s=10.0, horizon_s=60)
    tell(guide, *map(web.fetch, urls))
    crawl(guide, web, 120 / DAY_S, 100, 10.0)
    assert float(web.age_s().max()) < 600
    state = promised(guide)
    assert state["possible"] is False
    assert "a pause of 10 s between two fetches of a host" in state["words"]


def test_the_first_promise_that_matches_counts(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(60)
    web = ChangingWeb(urls, np.full(60, 0.001), clock)
    begin(guide, urls, {"max_age_s": DAY_S, "patterns": [r"/pages/[0-9]\.html"]}, {"max_age_s": 10 * DAY_S})
    crawl(guide, web, 20, 60, DAY_S / 8)
    assert (promised(guide)["pages"], promised(guide, 1)["pages"]) == (10, 50)
    assert min(web.fetched[url] for url in urls[:10]) > 15
    assert max(web.fetched[url] for url in urls[10:]) < 10


def test_new_promises_hold_for_pages_that_were_fetched_before(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(50)
    web = ChangingWeb(urls, np.full(50, 0.001), clock)
    begin(guide, urls, recrawl="refresh", promises=[])
    crawl(guide, web, 10, 50, DAY_S / 4)
    before = sum(web.fetched.values())
    begin(guide, [], {"max_age_s": DAY_S, "share": 1.0})
    crawl(guide, web, 10, 50, DAY_S / 8)
    assert sum(web.fetched.values()) - before > 8 * 50
    assert promised(guide)["kept"]


def test_a_wrong_promise_is_refused_by_name(guide: Guide) -> None:
    for promise, words in (
        ({"max_age_s": 5}, r"policy\.promises\[0\]\.max_age_s: expected a number from 60"),
        ({"share": 0.5}, r"max_age_s"),
        ({"max_age_s": 600, "share": 2}, r"policy\.promises\[0\]\.share: expected a number above 0, up to 1"),
        ({"max_age_s": 600, "patterns": ["("]}, r"policy\.promises\[0\]\.patterns\[0\]"),
    ):
        with pytest.raises(MalformedRequest, match=words):
            begin(guide, [], promise)


def test_ages_of_copies_are_counted(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(30)
    web = ChangingWeb(urls, np.full(30, 0.3), clock)
    begin(guide, urls)
    crawl(guide, web, 3, 30, DAY_S / 8)
    facts = stats(guide)["freshness"]
    assert facts["pages"] == sum(facts["ages"].values()) == 30
    assert facts["median_age_s"] == pytest.approx(float(np.median(web.age_s())), abs=2.0)
    assert facts["current_share"] == pytest.approx(float(web.current().mean()), abs=0.3)
