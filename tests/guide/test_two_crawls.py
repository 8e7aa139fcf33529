"""Two crawls never see each other."""

from __future__ import annotations

from crawlguide import Guide
from tests.guide.common import UNPACED, A, stats
from tests.support import asked, fetched, tell


def test_a_url_of_one_crawl_is_unknown_to_another(guide: Guide) -> None:
    guide.seed("one", [A])
    assert asked(guide, crawl_id="two") == []


def test_a_page_done_in_one_crawl_is_still_given_in_another(unpaced: Guide) -> None:
    tell(unpaced, fetched(A), crawl_id="one")
    unpaced.seed("two", [A])
    assert asked(unpaced, crawl_id="two") == [A]


def test_a_lease_of_one_crawl_is_no_lease_of_another(guide: Guide) -> None:
    for crawl in ("one", "two"):
        guide.define(crawl, {"policy": UNPACED})
        guide.seed(crawl, [A])
    assert asked(guide, crawl_id="one") == asked(guide, crawl_id="two") == [A]


def test_every_crawl_has_its_own_numbers(guide: Guide) -> None:
    tell(guide, fetched(A, A + "1"), crawl_id="one")
    guide.seed("two", [A])
    assert (stats(guide, "one")["fetches"], stats(guide, "two")["fetches"]) == (1, 0)


def test_every_crawl_has_its_own_definition(guide: Guide) -> None:
    guide.define("one", {"strategy": {"kind": "random"}})
    guide.seed("two", [A])
    assert (stats(guide, "one")["strategy"], stats(guide, "two")["strategy"]) == ("random", "layered")
