"""A process that is killed loses no schedule: what lies in the folder at any moment goes on as if nothing had been."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.guide.recrawl.web import DAY_S, NEVER_PACED, ChangingWeb, addresses, crawl
from tests.support import asked, tell

if TYPE_CHECKING:
    from pathlib import Path


def known(guide: Guide, urls: list[str]) -> list[dict[str, Any]]:
    names = ("changes_per_day", "seen", "chance_changed", "refresh_value", "refresh_price")
    return [{name: guide.explain("default", url)["features"].get(name) for name in names} for url in urls]


def test_what_is_told_is_in_the_folder_with_all_that_follows_from_it(tmp_path: Path) -> None:
    clock = ManualClock(1e9)
    web, killed = ChangingWeb(addresses(40), np.linspace(0.05, 2.0, 40), clock), tmp_path / "killed"
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        guide.define("default", {"policy": NEVER_PACED | {"recrawl": "refresh", "recrawl_per_day": 20}})
        guide.seed("default", web.urls)
        crawl(guide, web, 12, 40, DAY_S / 8)
        tell(guide, *map(web.fetch, asked(guide, max_urls=40)))  # acknowledged: on the disk
        shutil.copytree(tmp_path / "data", killed, ignore=shutil.ignore_patterns("LOCK", "lock"))
        before = known(guide, web.urls)
        clock.advance(2 * DAY_S)
        goes_on = sorted(asked(guide, max_urls=40))
    with Guide.open(killed, clock=ManualClock(clock.now() - 2 * DAY_S)) as guide:
        assert known(guide, web.urls) == before
    with Guide.open(killed, clock=clock) as guide:
        assert sorted(asked(guide, max_urls=40)) == goes_on


def test_no_page_is_lost_from_the_schedule_by_being_killed_at_any_step(tmp_path: Path) -> None:
    """Each ask takes what is due out of the schedule: whatever is on the disk, every page is fetched again some day."""
    clock = ManualClock(1e9)
    web, folder = ChangingWeb(addresses(30), np.full(30, 1.0), clock), tmp_path / "0"
    with Guide.open(folder, clock=clock) as guide:
        guide.define("default", {"policy": NEVER_PACED | {"recrawl": "refresh"}})
        guide.seed("default", web.urls)
        crawl(guide, web, 2, 30, DAY_S / 4)
    for time in range(1, 9):
        after = tmp_path / str(time)
        with Guide.open(folder, clock=clock) as guide:
            clock.advance(DAY_S / 2)
            asked(guide, max_urls=3 + time)  # handed out, and never told
            shutil.copytree(folder, after, ignore=shutil.ignore_patterns("LOCK", "lock"))
        folder = after
    before = dict(web.fetched)
    with Guide.open(folder, clock=clock) as guide:
        crawl(guide, web, 40, 30, DAY_S / 4)
    assert all(web.fetched[url] > before[url] for url in web.urls)
