"""robots.txt in the guide: who fetches it, what waits for it, what it forbids, and what if it cannot be had."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, StoreOptions
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import open_guide
from crawlguide.guide.local import LocalGuide
from crawlguide.guide.robots.outgoing import Answer
from crawlguide.store import memory
from crawlguide.testing import ManualClock
from tests.support import ask, asked, fetched, state_of, tell

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT = Crawl("default", "default")
FILE = "https://a.org/robots.txt"
FORBIDS = "User-agent: *\nDisallow: /private\n"
HOUR = 3_600.0


class Web:
    """Answers with the robots.txt files that were laid there; a host without one does not answer."""

    def __init__(self) -> None:
        self.files: dict[str, Answer] = {}
        self.asked: list[tuple[str, str]] = []

    async def get(self, url: str, agent: str, most_bytes: int) -> Answer:
        self.asked.append((url, agent))
        return self.files.get(url, Answer(problem="nobody answers"))


def crawler_mode(guide: Guide, **policy: Any) -> None:
    guide.define("default", {"policy": {"robots": "crawler", "default_delay_s": 0, **policy}})


# crawlers are sent for it


def test_crawlers_are_sent_for_robots_txt_before_any_page_of_its_host(guide: Guide) -> None:
    crawler_mode(guide)
    guide.seed("default", ["https://a.org/x", "https://a.org/private/y", "https://b.org/z"])
    answer = ask(guide)
    assert [(given["url"], given["kind"]) for given in answer["assigned_urls"]] == [
        ("https://a.org/robots.txt", "robots"),
        ("https://b.org/robots.txt", "robots"),
    ]
    assert {held["reason"] for held in answer["deferred"]} == {"robots"}
    assert answer["metadata"]["degraded"] is None
    assert asked(guide) == []
    tell(guide, {"url": FILE, "status": 200, "text": FORBIDS})
    answer = ask(guide)
    assert [(given["url"], given["kind"]) for given in answer["assigned_urls"]] == [("https://a.org/x", "page")]
    assert answer["metadata"]["dropped"] == {"robots": 1}
    assert "robots_ok" in answer["metadata"]["filters_applied"]
    assert state_of(guide, "https://a.org/private/y") == "dropped"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"error": "dns"}, "dns"),
        ({"status": 200}, "the crawler reported it without `text`"),
        ({"status": 503}, "status 503"),
    ],
)
def test_a_robots_txt_that_a_crawler_could_not_read_is_logged(
    guide: Guide, caplog: pytest.LogCaptureFixture, answer: dict[str, Any], problem: str
) -> None:
    """Its URLs wait, and for a crawl of one host that looks as if nothing happened."""
    crawler_mode(guide)
    guide.seed("default", ["https://a.org/x", "https://b.org/x"])
    asked(guide)
    with caplog.at_level("INFO", "crawlguide"):
        tell(guide, {"url": FILE, **answer}, {"url": "https://b.org/robots.txt", "status": 404})
    assert [record.message for record in caplog.records] == [
        f"robots.txt of https://a.org could not be read: {problem}; its URLs wait, and it is tried again"
    ]


def test_the_first_robots_txt_that_could_not_be_read_warns(guide: Guide, caplog: pytest.LogCaptureFixture) -> None:
    crawler_mode(guide)
    guide.seed("default", ["https://a.org/x", "https://b.org/x"])
    asked(guide)
    with caplog.at_level("INFO", "crawlguide"):
        tell(guide, {"url": FILE, "error": "dns"}, {"url": "https://b.org/robots.txt", "error": "dns"})
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_every_origin_has_a_file_of_its_own(guide: Guide) -> None:
    crawler_mode(guide)
    guide.seed("default", ["https://a.org/1", "http://a.org/2", "https://a.org:8443/3"])
    files = {"https://a.org/robots.txt", "http://a.org/robots.txt", "https://a.org:8443/robots.txt"}
    assert set(asked(guide)) == files
    tell(guide, {"url": "http://a.org/robots.txt", "status": 404})
    assert asked(guide) == ["http://a.org/2"]


def test_a_robots_txt_that_was_found_as_a_link_still_comes_first(guide: Guide) -> None:
    crawler_mode(guide, max_per_host=1)
    pages = [f"https://a.org/{number}" for number in range(5)]
    tell(guide, fetched("https://b.org/", *pages, FILE), fetched("https://c.org/", *pages))
    assert asked(guide) == [FILE]


def test_a_file_that_forbids_itself_is_fetched_again_nevertheless(guide: Guide, clock: ManualClock) -> None:
    crawler_mode(guide)
    guide.seed("default", ["https://a.org/x"])
    tell(guide, {"url": "https://a.org/robots.txt", "status": 200, "text": "User-agent: *\nDisallow: /robots.txt"})
    tell(guide, fetched("https://b.org/", FILE))
    clock.advance(13 * HOUR)
    assert [given["kind"] for given in ask(guide)["assigned_urls"]] == ["robots", "page"]
    assert state_of(guide, FILE) == "leased"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_file_that_is_not_there_permits_everything(guide: Guide, status: int) -> None:
    crawler_mode(guide)
    guide.seed("default", ["https://a.org/private"])
    asked(guide)
    tell(guide, {"url": FILE, "status": status, "text": "User-agent: *\nDisallow: /"})
    assert asked(guide) == ["https://a.org/private"]


@pytest.mark.parametrize(
    "told", [{"status": 503}, {"status": 429}, {"error": "timeout"}, {"error": "dns"}, {"status": 200}]
)
def test_a_file_that_cannot_be_had_forbids_everything_and_is_tried_again(
    guide: Guide, clock: ManualClock, told: dict[str, Any]
) -> None:
    crawler_mode(guide, max_retries=0)
    guide.seed("default", ["https://a.org/x"])
    assert asked(guide) == [FILE]
    tell(guide, {"url": FILE, **told})
    answer = ask(guide)
    assert answer["assigned_urls"] == []
    assert answer["deferred"][0]["reason"] == "robots"
    assert state_of(guide, "https://a.org/x") == "queued"
    clock.advance(60.0)
    assert asked(guide) == [FILE]
    tell(guide, {"url": FILE, "status": 200, "text": FORBIDS})
    assert asked(guide) == ["https://a.org/x"]


def test_an_old_copy_stands_in_for_a_while(guide: Guide, clock: ManualClock) -> None:
    crawler_mode(guide, max_retries=0)
    guide.seed("default", [f"https://a.org/{number}" for number in range(9)])
    asked(guide)
    tell(guide, {"url": FILE, "status": 200, "text": FORBIDS})
    clock.advance(20 * HOUR)
    answer = ask(guide, max_urls=2)
    assert [given["kind"] for given in answer["assigned_urls"]] == ["robots", "page"]  # due, and still good
    assert answer["metadata"]["degraded"] is None
    tell(guide, {"url": FILE, "status": 503})
    answer = ask(guide, max_urls=1)
    assert [given["kind"] for given in answer["assigned_urls"]] == ["page"]
    assert answer["metadata"]["degraded"] == "stale_robots"
    clock.advance(29 * HOUR)
    assert [given["kind"] for given in ask(guide, max_urls=5)["assigned_urls"]] == ["robots"]


# crawlers tell of one by themselves


def test_a_file_that_a_crawler_tells_of_counts_in_every_mode_but_ignore(guide: Guide) -> None:
    for mode, dropped in (("obey", "dropped"), ("crawler", "dropped"), ("ignore", "queued")):
        guide.define(mode, {"policy": {"robots": mode}})
        tell(guide, {"url": FILE, "status": 200, "text": FORBIDS}, crawl_id=mode)
        tell(guide, fetched("https://a.org/", "https://a.org/private/1", "https://a.org/2"), crawl_id=mode)
        assert state_of(guide, "https://a.org/private/1", mode) == dropped
        assert state_of(guide, "https://a.org/2", mode) == "queued"


def test_a_guide_in_a_program_makes_no_requests_and_says_what_it_did_not_check(guide: Guide) -> None:
    guide.seed("default", ["https://a.org/x", "https://b.org/y"])
    answer = ask(guide, max_urls=1)
    assert answer["metadata"]["degraded"] == "robots_unchecked"
    tell(guide, {"url": FILE, "status": 404}, {"url": "https://b.org/robots.txt", "status": 404})
    assert ask(guide, max_urls=1)["metadata"]["degraded"] is None


def test_what_a_new_file_permits_is_queued_when_it_is_found_again(guide: Guide) -> None:
    crawler_mode(guide)
    tell(guide, {"url": FILE, "status": 200, "text": FORBIDS})
    tell(guide, fetched("https://a.org/", "https://a.org/private/1"))
    assert state_of(guide, "https://a.org/private/1") == "dropped"
    tell(guide, {"url": FILE, "status": 200, "text": "User-agent: *\nDisallow: /other", "fetch_time": "2"})
    tell(guide, fetched("https://a.org/more", "https://a.org/private/1"))
    assert state_of(guide, "https://a.org/private/1") == "queued"


def test_a_url_that_waits_is_judged_by_the_file_as_it_is_when_it_would_leave(guide: Guide) -> None:
    crawler_mode(guide)
    tell(guide, {"url": FILE, "status": 404})
    guide.seed("default", ["https://a.org/private/1", "https://a.org/2"])
    tell(guide, {"url": FILE, "status": 200, "text": FORBIDS, "fetch_time": "2"})
    assert asked(guide) == ["https://a.org/2"]


def test_an_agent_is_judged_by_what_is_said_to_it(guide: Guide) -> None:
    text = "User-agent: examplebot\nDisallow: /\n\nUser-agent: *\nDisallow:\n"
    for name, agent in (("one", "examplebot/1.0"), ("two", "crawlguide")):
        guide.define(name, {"policy": {"robots": "crawler", "user_agent": agent, "default_delay_s": 0}})
        guide.seed(name, ["https://a.org/x"])
    tell(guide, {"url": FILE, "status": 200, "text": text}, crawl_id="one")
    assert asked(guide, crawl_id="one") == []
    assert asked(guide, crawl_id="two") == ["https://a.org/x"]


def test_a_crawl_that_ceases_to_ignore_is_held_to_the_files(guide: Guide) -> None:
    guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0}})
    tell(guide, {"url": FILE, "status": 200, "text": FORBIDS})
    guide.seed("default", ["https://a.org/private/1", "https://a.org/private/2"])
    assert len(asked(guide, max_urls=1)) == 1
    crawler_mode(guide)
    assert asked(guide) == []
    guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0}})
    assert len(asked(guide)) == 1


def test_a_domain_may_be_an_exception(guide: Guide) -> None:
    crawler_mode(guide, robots_exceptions=["a.org"])
    guide.seed("default", ["https://www.a.org/private", "https://b.org/"])
    tell(guide, {"url": "https://www.a.org/robots.txt", "status": 200, "text": FORBIDS})
    assert set(asked(guide)) == {"https://www.a.org/private", "https://b.org/robots.txt"}
    (why,) = [
        each["why"]
        for each in guide.explain("default", "https://www.a.org/private")["filters"]
        if each["name"] == "robots"
    ]
    assert why == "policy.robots_exceptions names its domain"


def test_whoever_ignores_robots_txt_is_named_in_the_log(guide: Guide, caplog: pytest.LogCaptureFixture) -> None:
    guide.define("free", {"policy": {"robots": "ignore"}})
    crawler_mode(guide)
    crawler_mode(guide, robots_exceptions=["a.org"])
    said = [record.message for record in caplog.records if record.__dict__.get("event") == "robots_ignored"]
    assert said == ["crawl free ignores robots.txt: everywhere", "crawl default ignores robots.txt: a.org"]


# what else a file says


def test_a_crawl_delay_is_the_delay_of_its_host(guide: Guide) -> None:
    crawler_mode(guide, default_delay_s=1.0, horizon_s=60.0, max_per_host=0)
    guide.seed("default", [f"https://a.org/{number}" for number in range(3)])
    asked(guide)
    tell(guide, {"url": FILE, "status": 200, "text": "User-agent: *\nCrawl-delay: 10"})
    waits = [given["not_before_ms"] for given in ask(guide)["assigned_urls"]]
    assert [later - sooner for sooner, later in pairwise(waits)] == [10_000, 10_000]


def test_a_crawl_that_comes_later_is_held_to_the_delay_as_well(guide: Guide) -> None:
    guide.define("rude", {"policy": {"robots": "ignore"}})
    tell(guide, {"url": FILE, "status": 200, "text": "User-agent: *\nCrawl-delay: 10"}, crawl_id="rude")
    crawler_mode(guide, horizon_s=60.0)
    guide.seed("default", [f"https://a.org/{number}" for number in range(3)])
    waits = [given["not_before_ms"] for given in ask(guide)["assigned_urls"]]
    assert [later - sooner for sooner, later in pairwise(waits)] == [10_000, 10_000]


def test_a_short_crawl_delay_does_not_hurry_a_crawl(guide: Guide) -> None:
    crawler_mode(guide, default_delay_s=2.0, horizon_s=60.0)
    guide.seed("default", [f"https://a.org/{number}" for number in range(3)])
    asked(guide)
    tell(guide, {"url": FILE, "status": 200, "text": "User-agent: *\nCrawl-delay: 0.1"})
    waits = [given["not_before_ms"] for given in ask(guide)["assigned_urls"]]
    assert [later - sooner for sooner, later in pairwise(waits)] == [2_000, 2_000]


@pytest.mark.parametrize("meta", [["nofollow"], ["NOINDEX, NoFollow"], ["none"]])
def test_links_of_a_page_that_forbids_it_are_not_followed(guide: Guide, meta: list[str]) -> None:
    tell(guide, fetched("https://a.org/", "https://a.org/1", robots_meta=meta))
    assert state_of(guide, "https://a.org/1") == "unknown"
    guide.define("free", {"policy": {"robots": "ignore"}})
    tell(guide, fetched("https://a.org/", "https://a.org/1", robots_meta=meta), crawl_id="free")
    assert state_of(guide, "https://a.org/1", "free") == "queued"


ABOUT = {"title": "Pottery", "text": "pottery and clay " * 20}


def paid(guide: Guide, url: str) -> float:
    """What the pages of its host were worth in all."""
    return float(guide.explain("default", url)["features"]["host_relevance_sum"])


@pytest.mark.parametrize("meta", [["noindex"], ["NOINDEX, NoFollow"], ["none"]])
def test_a_page_that_may_not_be_kept_is_judged_worthless(guide: Guide, meta: list[str]) -> None:
    guide.define("default", {"goal": {"topic": "pottery"}})
    tell(guide, fetched("https://a.org/", **ABOUT), fetched("https://b.org/", robots_meta=meta, **ABOUT))
    tell(guide, fetched("https://c.org/", robots_meta=meta, relevance=0.9, **ABOUT))
    assert paid(guide, "https://a.org/") > 0.1
    assert paid(guide, "https://b.org/") == 0.0
    assert paid(guide, "https://c.org/") == pytest.approx(0.9)  # the crawler knows better


def test_a_page_that_robots_txt_says_is_not_to_be_kept_is_judged_worthless(guide: Guide) -> None:
    guide.define("default", {"goal": {"topic": "pottery"}})
    tell(guide, {"url": FILE, "status": 200, "text": "User-agent: *\nNoindex: /old"})
    tell(guide, fetched("https://a.org/old/1", **ABOUT))
    assert paid(guide, "https://a.org/old/1") == 0.0
    tell(guide, fetched("https://a.org/1", **ABOUT))
    assert paid(guide, "https://a.org/1") > 0.1


def test_links_of_pages_that_robots_txt_says_are_not_to_be_followed_are_not(guide: Guide) -> None:
    tell(guide, {"url": FILE, "status": 200, "text": "User-agent: *\nNofollow: /hub"})
    tell(guide, fetched("https://a.org/hub/1", "https://a.org/1"), fetched("https://a.org/", "https://a.org/2"))
    assert state_of(guide, "https://a.org/1") == "unknown"
    assert state_of(guide, "https://a.org/2") == "queued"


def test_a_robots_txt_says_nothing_about_how_relevant_its_host_is(guide: Guide) -> None:
    guide.define("default", {"goal": {"topic": "sql"}, "policy": {"robots": "crawler"}})
    tell(guide, {"url": FILE, "status": 200, "text": "sql sql sql"})
    assert guide.explain("default", FILE)["features"]["host_judged"] == 0


def test_explain_names_the_rule(guide: Guide) -> None:
    crawler_mode(guide)
    guide.seed("default", ["https://a.org/private/1", "https://b.org/"])
    tell(guide, {"url": FILE, "status": 200, "text": FORBIDS})

    def verdict(url: str) -> dict[str, Any]:
        filters = guide.explain("default", url)["filters"]
        return next(each for each in filters if each["name"] == "robots")

    assert verdict("https://a.org/private/1") == {"name": "robots", "verdict": "forbid", "why": "Disallow: /private"}
    assert verdict("https://b.org/")["verdict"] == "defer"
    assert "could not be read yet" in verdict("https://b.org/")["why"]


def test_files_survive_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        crawler_mode(guide)
        guide.seed("default", ["https://a.org/x", "https://a.org/private"])
        asked(guide)
        tell(guide, {"url": FILE, "status": 200, "text": FORBIDS})
        before = guide.stats()["crawls"]
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        assert guide.stats()["crawls"] == before
        assert asked(guide) == ["https://a.org/x"]


def test_a_large_file_is_read_as_well(guide: Guide) -> None:
    crawler_mode(guide)
    text = "User-agent: *\n" + "".join(f"Disallow: /{number}/\n" for number in range(20_000))
    guide.seed("default", ["https://a.org/19999/", "https://a.org/x"])
    asked(guide)
    tell(guide, {"url": FILE, "status": 200, "text": text})
    assert asked(guide) == ["https://a.org/x"]


# the guide fetches it itself


@pytest.fixture
def web() -> Web:
    return Web()


@pytest.fixture
def local(clock: ManualClock) -> LocalGuide:
    guide = open_guide(":memory:", Config(), clock)
    guide.robots.cache.fetched = True
    return guide


async def wanting(guide: LocalGuide, *urls: str, **policy: Any) -> None:
    policy = {"default_delay_s": 0, **policy}
    await guide.define(DEFAULT, Definition(policy=Policy(**policy)))
    await guide.seed(DEFAULT, SeedsMessage(list(urls)))


async def given(guide: LocalGuide, max_urls: int = 10) -> tuple[list[str], list[str], str | None]:
    """URLs, reasons of what was deferred, and what stood in."""
    answer = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(max_urls)))
    urls = [one.url for one in answer.assigned_urls]
    return urls, [held.reason for held in answer.deferred], answer.metadata.degraded


async def test_a_guide_that_obeys_fetches_the_file_while_its_urls_wait(local: LocalGuide, web: Web) -> None:
    await wanting(local, "https://a.org/x", "https://a.org/private", user_agent="examplebot")
    web.files[FILE] = Answer(200, FORBIDS.encode())
    assert await given(local) == ([], ["robots", "robots"], None)
    await local.robots.errand(web)
    assert web.asked == [(FILE, "examplebot")]
    assert await given(local) == (["https://a.org/x"], [], None)


async def test_hosts_whose_files_came_from_one_address_share_their_slots_where_that_is_wanted(
    web: Web, clock: ManualClock
) -> None:
    store = memory.build(StoreOptions(politeness_queue="ip"))
    guide = LocalGuide(store, Config(), clock)
    guide.robots.cache.fetched = True
    for host in ("a.org", "b.org"):
        web.files[f"https://{host}/robots.txt"] = Answer(200, b"", address="192.0.2.1")
    await wanting(guide, "https://a.org/1", "https://b.org/1", default_delay_s=2.0)
    assert (await given(guide))[0] == []
    for _ in range(2):
        await guide.robots.errand(web)
    clock.advance(3)
    message = AskMessage(VERSION, "c-1", BudgetMessage(10))
    assert sorted(one.not_before_ms for one in (await guide.ask(message)).assigned_urls) == [0, 2_000]


async def test_a_file_is_fetched_once_for_all_who_want_it(local: LocalGuide, web: Web) -> None:
    await wanting(local, "https://a.org/x", "https://a.org/y")
    await given(local)
    await given(local)
    await local.robots.errand(web)
    assert local.robots.idle
    assert len(web.asked) == 1


async def test_a_host_that_does_not_answer_is_asked_again_later_and_later(
    local: LocalGuide, web: Web, clock: ManualClock
) -> None:
    await wanting(local, "https://a.org/x")
    began, tries = clock.now(), []
    for _ in range(100):
        await given(local)
        if not local.robots.idle:
            await local.robots.errand(web)
            tries.append(clock.now() - began)
        clock.advance(1.0)
    assert tries == [0, 5, 15, 35, 75]
    clock.advance(HOUR)
    web.files[FILE] = Answer(404)
    await given(local)
    await local.robots.errand(web)
    assert await given(local) == (["https://a.org/x"], [], None)


async def test_pages_wait_a_delay_after_the_file_was_fetched(local: LocalGuide, web: Web, clock: ManualClock) -> None:
    await wanting(local, "https://a.org/x", default_delay_s=2.0)
    web.files[FILE] = Answer(404)
    await given(local)
    clock.advance(0.5)
    await local.robots.errand(web)
    clock.advance(0.5)
    answer = await local.ask(AskMessage(VERSION, "c-1", BudgetMessage(1)))
    assert [(one.url, one.not_before_ms) for one in answer.assigned_urls] == [("https://a.org/x", 1_500)]


async def test_whoever_has_to_wait_for_a_file_is_told_to_come_back_soon(local: LocalGuide) -> None:
    await wanting(local, "https://a.org/x")
    answer = await local.ask(AskMessage(VERSION, "c-1", BudgetMessage(1)))
    assert (answer.retry_after_ms, answer.metadata.crawl_state) == (1_000, "waiting")


async def test_what_a_new_file_permits_waits_again_after_upkeep(
    local: LocalGuide, web: Web, clock: ManualClock
) -> None:
    await wanting(local, *(f"https://a.org/private/{number}" for number in range(3)), "https://a.org/x")
    web.files[FILE] = Answer(200, FORBIDS.encode())
    await given(local)
    await local.robots.errand(web)
    assert (await given(local))[0] == ["https://a.org/x"]
    clock.advance(13 * HOUR)
    await local.seed(DEFAULT, SeedsMessage(["https://a.org/y"]))
    web.files[FILE] = Answer(200, b"")
    assert "https://a.org/y" in (await given(local))[0]  # the old copy stands while a new one is fetched
    await local.robots.errand(web)
    await local.upkeep()
    assert len((await given(local))[0]) == 3


async def test_unknown_hosts_do_not_stand_in_the_way_of_known_ones(local: LocalGuide, web: Web) -> None:
    slow = [f"https://slow{number}.org/{page}" for number in range(100) for page in range(5)]
    await wanting(local, *slow, "https://a.org/x")
    web.files[FILE] = Answer(404)
    found = []
    for _ in range(200):
        found += (await given(local))[0]
        if not local.robots.idle:
            await local.robots.errand(web)
    assert found == ["https://a.org/x"]
