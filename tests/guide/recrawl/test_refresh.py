"""Pages are fetched again as often as they change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from tests.guide.common import A, stats
from tests.guide.recrawl.web import DAY_S, NEVER_PACED, ChangingWeb, addresses, crawl
from tests.support import ask, asked, tell

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.testing import ManualClock


def begin(guide: Guide, urls: list[str], **policy: Any) -> None:
    guide.define("default", {"policy": NEVER_PACED | {"recrawl": "refresh"} | policy})
    guide.seed("default", urls)


@pytest.mark.parametrize("off", [False, "off"])
def test_nothing_is_fetched_again_where_nobody_wants_it(guide: Guide, clock: ManualClock, off: Any) -> None:
    begin(guide, [A], recrawl=off)
    tell(guide, {"url": A, "status": 200})
    clock.advance(400 * DAY_S)
    assert asked(guide) == []


def test_a_wrong_word_is_refused_with_the_words_there_are(guide: Guide) -> None:
    with pytest.raises(
        MalformedRequest, match=r'policy\.recrawl: expected true or false or one of off, refresh, monitor, got "often"'
    ):
        guide.define("default", {"policy": {"recrawl": "often"}})


def test_pages_that_change_often_are_fetched_more_often(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(60)
    web = ChangingWeb(urls, np.where(np.arange(60) % 2, 1.0, 0.02), clock)
    begin(guide, urls)
    crawl(guide, web, 60, 60, DAY_S / 4)
    lively, calm = ([web.fetched[url] for url in urls[first::2]] for first in (1, 0))
    assert min(lively) > 3 * max(calm)
    assert min(calm) >= 2


def test_the_budget_for_fetching_again_is_kept_and_used(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(200)
    web = ChangingWeb(urls, np.full(200, 0.5), clock)
    begin(guide, urls, recrawl_per_day=20)
    crawl(guide, web, 3, 200, DAY_S / 8)
    before = sum(web.fetched.values())
    crawl(guide, web, 30, 200, DAY_S / 8)
    assert sum(web.fetched.values()) - before == pytest.approx(600, rel=0.1)


def test_a_share_of_what_is_given_out_is_for_fetching_again(guide: Guide, clock: ManualClock) -> None:
    old, new = addresses(100), [f"https://new{number % 20}.org/{number}" for number in range(20_000)]
    web = ChangingWeb(old + new, np.full(20_100, 1.0), clock)
    begin(guide, old, recrawl_share=0.25)
    crawl(guide, web, 1, 100, DAY_S / 24)
    guide.seed("default", new[:10_000])
    crawl(guide, web, 2, 40, DAY_S / 24)
    before = sum(web.fetched[url] for url in old)
    again = sum(count - 1 for count in web.fetched.values() if count)
    total = sum(web.fetched.values())
    crawl(guide, web, 5, 40, DAY_S / 24)
    share = (sum(count - 1 for count in web.fetched.values() if count) - again) / (sum(web.fetched.values()) - total)
    assert before > 100
    assert share == pytest.approx(0.25, abs=0.06)


def test_learned_rates_come_near_the_optimum_through_asks_and_tells(guide: Guide, clock: ManualClock) -> None:
    from crawlguide.freshness import periodic_optimum

    rng, urls = np.random.default_rng(4), addresses(400)
    of_host = np.exp(1.2 * rng.standard_normal(20))
    per_day = 0.15 * of_host[np.arange(400) % 20] * np.exp(0.4 * rng.standard_normal(400))
    web = ChangingWeb(urls, per_day, clock)
    begin(guide, urls, recrawl_per_day=80)
    crawl(guide, web, 30, 400, DAY_S / 24)
    current = crawl(guide, web, 30, 400, DAY_S / 24)
    best = periodic_optimum(per_day, np.ones(400), 80.0).freshness
    assert np.mean(current) >= 0.95 * best


def test_pages_that_are_gone_are_asked_for_ever_more_rarely_and_then_no_more(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(2)
    web = ChangingWeb(urls, np.full(2, 1.0), clock)
    begin(guide, urls)
    crawl(guide, web, 5, 10, DAY_S / 4)
    web.gone.add(urls[0])
    before = web.fetched[urls[0]]
    crawl(guide, web, 365, 10, DAY_S)
    assert 3 <= web.fetched[urls[0]] - before <= 8
    assert web.fetched[urls[1]] > 100


def test_a_page_that_comes_back_is_fetched_as_before(guide: Guide, clock: ManualClock) -> None:
    urls = addresses(1)
    web = ChangingWeb(urls, np.full(1, 1.0), clock)
    begin(guide, urls)
    crawl(guide, web, 5, 10, DAY_S / 4)
    web.gone.add(urls[0])
    crawl(guide, web, 3, 10, DAY_S / 4)
    web.gone.clear()
    before = web.fetched[urls[0]]
    crawl(guide, web, 30, 10, DAY_S / 4)
    assert web.fetched[urls[0]] - before > 15


def test_what_a_page_is_asked_for_again_with(guide: Guide, clock: ManualClock) -> None:
    begin(guide, [A])
    first = ask(guide)["assigned_urls"][0]
    assert "if_none_match" not in first
    modified = "Mon, 03 Nov 2025 14:19:41 GMT"
    tell(guide, {"url": A, "status": 200, "etag": 'W/"é1"', "last_modified": modified, "text": "one two three"})
    clock.advance(30 * DAY_S)
    again = ask(guide)["assigned_urls"][0]
    assert (again["if_none_match"], again["if_modified_since"]) == ('W/"é1"', modified)
    tell(guide, {"url": A, "status": 304})
    clock.advance(60 * DAY_S)
    assert ask(guide)["assigned_urls"][0]["if_none_match"] == 'W/"é1"'


def test_a_page_says_unchanged_in_one_field(guide: Guide, clock: ManualClock) -> None:
    begin(guide, [A])
    for _ in range(5):
        tell(guide, {"url": A, "status": 200, "unchanged": True})
        clock.advance(DAY_S)
    assert guide.explain("default", A)["features"]["changes_per_day"] < 0.15


def test_explain_says_in_words_how_often_a_page_changes(guide: Guide, clock: ManualClock) -> None:
    begin(guide, [A])
    for day in range(12):
        tell(guide, {"url": A, "status": 200, "content_hash": str(day // 3)})
        clock.advance(DAY_S)
    clock.advance(4 * DAY_S)
    explained = guide.explain("default", A)
    assert re.search(
        r"changes about every 3 days; last seen 5 days ago; \d\d % likely to have changed", explained["words"]
    )
    assert explained["terms"]["freshness"] > 0


def test_a_page_on_which_only_the_date_changed_is_unchanged(guide: Guide, clock: ManualClock) -> None:
    text = "Today is {} and this page has been read {} times. " + " ".join(
        f"word{chr(97 + n % 26)}{'x' * (n % 7)}" for n in range(200)
    )
    begin(guide, [A])
    for day in range(8):
        tell(guide, {"url": A, "status": 200, "text": text.format(f"{day + 1} March", 1_000 + day)})
        clock.advance(DAY_S)
    assert guide.explain("default", A)["features"]["changes_per_day"] < 0.12


def test_what_is_due_is_known_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    urls = addresses(30)
    web = ChangingWeb(urls, np.full(30, 0.5), clock)
    with Guide.open(tmp_path, clock=clock) as guide:
        begin(guide, urls)
        crawl(guide, web, 10, 30, DAY_S / 4)
        explained = guide.explain("default", urls[0])["features"]
    with Guide.open(tmp_path, clock=clock) as guide:
        after = guide.explain("default", urls[0])["features"]
        assert after["changes_per_day"] == explained["changes_per_day"]
        before = sum(web.fetched.values())
        crawl(guide, web, 10, 30, DAY_S / 4)
        assert sum(web.fetched.values()) - before > 30


def test_a_restart_changes_nothing_of_what_is_fetched_when(tmp_path: Path) -> None:
    from crawlguide.testing import ManualClock

    told = []
    for times in (1, 3):
        clock = ManualClock(1e9)
        web, folder = ChangingWeb(addresses(30), np.linspace(0.05, 2.0, 30), clock), tmp_path / str(times)
        for part in range(times):
            with Guide.open(folder, clock=clock) as guide:
                if part == 0:
                    begin(guide, web.urls, recrawl_per_day=15)
                crawl(guide, web, 18 / times, 30, DAY_S / 4)
        told.append(dict(web.fetched))
    assert told[0] == told[1]


def test_a_crawl_that_was_fetched_before_goes_on_with_learning(guide: Guide, clock: ManualClock) -> None:
    begin(guide, [A], recrawl=True, recrawl_after_s=DAY_S)
    tell(guide, {"url": A, "status": 200})
    begin(guide, [], recrawl="refresh")
    clock.advance(2 * DAY_S)
    assert asked(guide) == [A]
    tell(guide, {"url": A, "status": 200})
    begin(guide, [], recrawl=True, recrawl_after_s=DAY_S)
    clock.advance(60 * DAY_S)
    assert asked(guide) == [A]


def test_a_lease_that_ends_is_given_out_again(guide: Guide, clock: ManualClock) -> None:
    begin(guide, [A])
    tell(guide, {"url": A, "status": 200})
    clock.advance(60 * DAY_S)
    assert asked(guide) == [A]
    clock.advance(1_000.0)
    assert asked(guide, "another") == [A]
    assert stats(guide)["leased"] == 1
