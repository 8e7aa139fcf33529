"""The parts of the Scrapy integration that need no crawl."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from scrapy import FormRequest, Request, Spider
from scrapy.http import HtmlResponse, Response, XmlResponse
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from crawlguide.core.errors import ConfigError
from crawlguide.core.messages import Fetch
from crawlguide.integrations.scrapy import reading, travel
from crawlguide.integrations.scrapy.middlewares import error_of
from crawlguide.integrations.scrapy.pace import Pace
from crawlguide.integrations.scrapy.plan import Plan, plan
from crawlguide.integrations.scrapy.scheduler import Scheduler

PAGE = "http://a.example/page"
ADDON = {"ADDONS": {"crawlguide.integrations.scrapy.Addon": 500}}


class Tried(Spider):
    name = "tried"

    def other(self, response: Response) -> None: ...

    def failed(self, failure: object) -> None: ...


def planned(**settings: Any) -> Plan:
    return plan(Settings(settings), Tried())


# settings


def test_without_settings_the_guide_is_in_memory_and_the_crawl_is_called_like_the_spider() -> None:
    found = planned()
    assert (found.url, found.data, found.crawl) == ("", ":memory:", "tried")


def test_a_job_keeps_its_guide_beside_scrapys_own_files(tmp_path: Path) -> None:
    assert planned(JOBDIR=str(tmp_path)).data == str(tmp_path / "crawlguide" / "guide")


def test_a_job_with_a_served_guide_keeps_its_crawlers_name(tmp_path: Path) -> None:
    names = {planned(JOBDIR=str(tmp_path), CRAWLGUIDE_URL="http://127.0.0.1:8080").crawler for _ in range(2)}
    assert len(names) == 1


def test_scrapys_words_for_politeness_become_the_policy_of_the_crawl() -> None:
    said = {"DOWNLOAD_DELAY": 2, "ROBOTSTXT_OBEY": True, "USER_AGENT": "Me/1.0 (+http://me.example)"}
    found = planned(**said, CONCURRENT_REQUESTS_PER_DOMAIN=3).definition
    assert found == {
        "policy": {"robots": "crawler", "default_delay_s": 2.0, "user_agent": "Me", "max_leases_per_host": 3}
    }


@pytest.mark.parametrize("agent", ["", " ", "/1.0"])
def test_a_user_agent_without_a_name_is_scrapys(agent: str) -> None:
    assert (planned(USER_AGENT=agent).definition or {})["policy"]["user_agent"] == "Scrapy"


def test_what_the_project_does_not_say_is_left_to_the_guide() -> None:
    assert (planned().definition or {})["policy"].keys() == {"robots", "user_agent"}


@pytest.mark.parametrize("goal", ["databases", '{"topic": "databases"}', {"topic": "databases"}])
def test_a_goal_is_words_or_a_dictionary_or_json(goal: object) -> None:
    assert (planned(CRAWLGUIDE_GOAL=goal).definition or {})["goal"] == {"topic": "databases"}


def test_a_definition_goes_over_what_scrapys_settings_say() -> None:
    found = planned(
        DOWNLOAD_DELAY=2, CRAWLGUIDE_DEFINITION={"policy": {"default_delay_s": 3}, "limits": {"max_pages": 9}}
    )
    assert (found.definition or {})["policy"]["default_delay_s"] == 3
    assert (found.definition or {})["limits"] == {"max_pages": 9}
    assert found.delay_s == 3


def test_a_served_crawl_of_which_nothing_is_said_is_left_as_it_is() -> None:
    assert planned(CRAWLGUIDE_URL="http://127.0.0.1:8080").definition is None


WRONG = [
    ({"CRAWLGUIDE_GAOL": "x"}, "unknown setting CRAWLGUIDE_GAOL; did you mean CRAWLGUIDE_GOAL?"),
    ({"CRAWLGUIDE_URL": "localhost:8080"}, "CRAWLGUIDE_URL: expected an address such as"),
    ({"CRAWLGUIDE_URL": "http://x", "CRAWLGUIDE_DATA": "y"}, "CRAWLGUIDE_URL and CRAWLGUIDE_DATA: expected one"),
    ({"CRAWLGUIDE_CRAWL": "a/b"}, "CRAWLGUIDE_CRAWL: crawl_id"),
    ({"CRAWLGUIDE_GOAL": 7}, "CRAWLGUIDE_GOAL: expected a dictionary or text, got 7"),
    ({"CRAWLGUIDE_DEFINITION": "fast"}, "CRAWLGUIDE_DEFINITION: expected a dictionary, got 'fast'"),
    ({"CRAWLGUIDE_DEFINITION": {"polcy": {}}}, "unknown field `polcy`"),
    ({"CRAWLGUIDE_GOAL": {"topics": "x"}}, r"unknown field `topics` - at `\$.goal`"),
    ({"CRAWLGUIDE_AHEAD": "many"}, "CRAWLGUIDE_AHEAD: expected an integer from 0, got 'many'"),
    ({"CRAWLGUIDE_DATA": 5}, "CRAWLGUIDE_DATA: expected text, got 5"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        planned(**settings)


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_the_add_on_names_a_wrong_setting_before_there_is_an_engine(settings: dict[str, Any], message: str) -> None:
    """An engine that fails while it opens says `Engine slot not assigned` last, and that is no help."""
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        get_crawler(Tried, ADDON | settings)  # applies them, and makes no engine


async def test_only_reports_that_are_written_are_said_to_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ours = ADDON | {"JOBDIR": str(tmp_path)}
    crawler = get_crawler(Tried, ours | {"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"})
    crawler.spider = crawler._create_spider()
    scheduler, file = Scheduler(crawler), tmp_path / "crawlguide" / "untold.jsonl"
    came, released = Fetch(url="http://a.example/1", status=200), Fetch(url="http://a.example/2", error="released")

    def said(reports: list[Fetch]) -> list[str]:
        caplog.clear()
        scheduler._remember(reports)
        return [record.getMessage() for record in caplog.records if "crawlguide" in record.name]

    (tmp_path / "crawlguide").mkdir(exist_ok=True)
    assert said([came, released]) == [f"crawlguide: 1 reports could not be told; they are in {file} for the next run"]
    assert len(file.read_text().splitlines()) == 1
    assert said([released]) == []
    assert not file.exists()
    (tmp_path / "crawlguide").rmdir()
    (tmp_path / "crawlguide").touch()
    cannot, lost = said([came])
    assert "cannot write" in cannot
    assert lost == "crawlguide: 1 reports could not be told"


# requests


def travelled(request: Request) -> Request:
    packed = travel.packed(request, spider := Tried())
    assert packed is not None
    return travel.unpacked(request.url, json.loads(json.dumps(packed)), spider)


def test_a_plain_request_needs_no_metadata() -> None:
    assert travel.packed(Request(PAGE), Tried()) == {}


def test_what_a_request_says_beyond_its_url_comes_back() -> None:
    spider = Tried()
    sent = Request(
        PAGE, spider.other, errback=spider.failed, headers={"X-Key": "ü"}, meta={"depth": 2},
        cb_kwargs={"n": 1}, flags=["f"], encoding="latin-1", dont_filter=True,
    )  # fmt: skip
    packed = travel.packed(sent, spider)
    assert packed is not None
    found = travel.unpacked(PAGE, packed, spider)
    assert found.to_dict(spider=spider) == sent.to_dict(spider=spider)


def test_what_we_put_into_a_request_does_not_travel() -> None:
    assert travelled(Request(PAGE, meta={"crawlguide": object(), "download_slot": "x", "own": 1})).meta == {"own": 1}


@pytest.mark.parametrize(
    "request_",
    [
        Request(PAGE, method="POST"),
        Request(PAGE, body="x"),
        Request(PAGE, callback=print),
        Request(PAGE, meta={"object": object()}),
        Request(PAGE, meta={"pair": (1, 2)}),
        Request(PAGE, meta={"long": "x" * 5_000}),
        FormRequest(PAGE, formdata={"a": "b"}),
    ],
    ids=["post", "body", "function", "object", "tuple", "long", "form"],
)
def test_what_no_guide_can_know_stays_here(request_: Request) -> None:
    assert travel.packed(request_, Tried()) is None


def test_a_method_that_this_spider_does_not_have_is_parse() -> None:
    assert travel.unpacked(PAGE, {"scrapy": {"callback": "nobody"}}, Tried()).callback is None


def test_metadata_of_other_crawlers_says_nothing() -> None:
    assert travel.unpacked(PAGE, {"scrapy": "ours?", "label": 7}, Tried()).meta == {}


# pace


def fetched(pace: Pace, slot: float, at: float) -> None:
    """It started at once where it was asked for, and was answered."""
    pace.started("a", slot, at)
    pace.answered("a", slot, at)


def test_a_late_start_pushes_back_the_next_one() -> None:
    pace = Pace(1.0)
    assert pace.earliest("a", 10.0) == 10.0
    fetched(pace, 10.0, 10.5)
    assert pace.earliest("a", 11.0) == 11.5
    assert pace.earliest("b", 11.0) == 11.0


def test_after_a_rest_nothing_is_pushed_back() -> None:
    pace = Pace(1.0)
    fetched(pace, 10.0, 10.0)
    fetched(pace, 11.0, 11.5)
    assert pace.earliest("a", 12.0) == 12.5
    assert pace.earliest("a", 20.0) == 20.0


def test_a_request_may_take_a_quarter_of_the_delay_to_arrive() -> None:
    pace = Pace(1.0)
    pace.started("a", 10.0, 10.0)
    assert pace.earliest("a", 11.0) == 11.25
    pace.answered("a", 10.0, 10.125)
    assert pace.earliest("a", 11.0) == 11.125
    pace.answered("a", 9.0, 10.0)  # an earlier one says nothing of it
    assert pace.earliest("a", 11.0) == 11.125


def test_what_the_guide_does_not_know_keeps_the_delay_both_ways() -> None:
    pace = Pace(1.0)
    fetched(pace, 10.0, 10.0)
    assert pace.earliest("a", None) == 11.0
    pace.started("a", None, 11.0)
    assert pace.earliest("a", 11.2) == 12.25


# pages


def html(body: str) -> HtmlResponse:
    return HtmlResponse(PAGE, body=body.encode(), encoding="utf-8")


def test_the_words_of_a_page_are_those_that_are_read() -> None:
    found = reading.words(
        html(
            "<html lang=en><title> A\n title</title><body><nav>menu</nav><script>x()</script><style>y</style>"
            "<h1>Head</h1><p>One <b>two</b> <a href=/>three</a></p><ul><li><a href=/m>menu</a></li></ul></body>"
        )
    )
    assert (found["title"], found["text"], found["language"]) == ("A title", "Head One two three", "en")


def test_menus_programs_and_remarks_are_no_words() -> None:
    found = reading.words(
        html(
            "<title>A<svg>b</title><body>one<!-- no --> two<nav>no<p>no<!-- no -->no</p></nav> three<?no?> four"
            "<li>five<a>no<b>six</b>no</a>seven</li><noscript>no<p>eight</p>no</noscript><br>nine</body>"
        )
    )
    assert (found["title"], found["text"]) == ("A<svg>b", "one two three four five six seven eight nine")


HOSTILE = {
    "remarks between words": b"<body>" + b" <!-- -->" * 60_000,
    "a title of remarks": b"<html><head><title>" + b" <!-- -->" * 60_000 + b"</title></head></html>",
    "links in links": b"<html>" + b"<a href='x'>" * 1_500 + b" <i/>" * 60_000 + b"</a>" * 1_500 + b"</html>",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", [HtmlResponse, XmlResponse])
def test_no_page_takes_long_to_read(name: str, kind: type[HtmlResponse | XmlResponse]) -> None:
    page = kind(PAGE, body=HOSTILE[name], encoding="utf-8")
    began = time.process_time()
    reading.words(page)
    reading.anchors(page)
    assert time.process_time() - began < 3.0


@pytest.mark.parametrize("body", ["", "<", "\0\0", "<html>" + "<div>" * 3_000, "<a href='http://['>x</a>"])
def test_what_is_no_page_breaks_nothing(body: str) -> None:
    assert reading.words(html(body)).keys() <= {"title", "text", "content_hash", "language"}
    assert reading.anchors(html(body)) == {}


def test_of_a_picture_only_its_hash_is_told() -> None:
    assert reading.words(Response(PAGE, body=b"\x89PNG")).keys() == {"content_hash"}


def test_links_are_found_by_their_canonical_url_with_their_text() -> None:
    found = reading.anchors(
        html('<base href="/x/"><a href="b#c"> the\n b </a><a href="/p" rel=nofollow><img alt=pic></a>')
    )
    assert found == {
        "http://a.example/x/b": reading.Anchor("the b", "", 0),
        "http://a.example/p": reading.Anchor("pic", "nofollow", 1),
    }


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("DownloadTimeoutError", "timeout"),
        ("TCPTimedOutError", "timeout"),
        ("CannotResolveHostError", "dns"),
        ("DNSLookupError", "dns"),
        ("DownloadConnectionRefusedError", "connect"),
        ("ResponseNeverReceived", "connect"),
        ("DownloadFailedError", "connect"),
        ("DownloadCancelledError", "too_large"),
        ("SSLError", "tls"),
        ("KeyError", "other"),
    ],
)
def test_every_failure_has_a_word_of_the_guide(name: str, error: str) -> None:
    assert error_of(type(name, (Exception,), {})()) == error
