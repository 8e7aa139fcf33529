"""Real Scrapy, guided, over webs on loopback: what it asks for, when, and what the guide knows afterwards."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import AsyncGuide, Client, Guide, lab
from tests.crawler.strangers import stranger
from tests.docs.blocks import of_page
from tests.gateway.conftest import serving
from tests.integrations.scrapy_runs import (
    SCRAPY,
    WITHIN_S,
    Crawled,
    TinyWeb,
    asked,
    command,
    environment,
    items,
    keeps_delay,
    run,
    site,
    spider,
    violations,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.lab.serving import Request
    from crawlguide.lab.synthetic import SyntheticWeb

pytestmark = pytest.mark.timeout(400)  # each crawl is a process that loads Scrapy and a guide

HOME = "http://a.example/"
FAST = {"DOWNLOAD_DELAY": 0, "CRAWLGUIDE_DEFINITION": {"policy": {"max_retries": 1}}}


# a project as `scrapy startproject` makes it


@dataclass(frozen=True)
class Project:
    """A crawl of it, and the project itself."""

    folder: Path
    web: SyntheticWeb
    log: list[Request]
    said: str
    items: list[dict[str, Any]]

    def scrapy(self, *words: str, proxy: int = 0) -> subprocess.CompletedProcess[str]:
        env = os.environ | ({"http_proxy": f"http://127.0.0.1:{proxy}"} if proxy else {})
        return subprocess.run(
            [SCRAPY, *words], cwd=self.folder, env=env, capture_output=True, text=True, timeout=WITHIN_S, check=False
        )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """What docs/scrapy.md says, word for word, with another place to start; and a spider with a contract."""
    folder = tmp_path_factory.mktemp("project")
    subprocess.run(
        [SCRAPY, "startproject", "garden", "."], cwd=folder, capture_output=True, check=True, timeout=WITHIN_S
    )
    told = {block.title: block.text for block in of_page("docs/scrapy.md", "python")}
    settings, plants = folder / "garden" / "settings.py", folder / "garden" / "spiders" / "plants.py"
    settings.write_text(settings.read_text().replace("ADDONS = {}", told["garden/settings.py"]))
    web = lab.synthetic.make(1, pages=300, hosts=6, robots=0.9, redirects=0.2, failing=1.0, failure_rate=0.1)
    start = [url for task in web.tasks()[:1] for url in task.seeds["portal"]]
    text = told["garden/spiders/plants.py"]
    plants.write_text(text.replace('["https://example.com/"]', repr(start)))
    contract = f'"""\n        @url {start[0]}\n        @returns items 1 1\n        """\n        yield'
    plants.with_name("checked.py").write_text(text.replace("yield", contract, 1).replace('"plants"', '"checked"'))
    with lab.served(web, slowest_s=0) as served:
        made = Project(folder, web, served.log, "", [])
        ended = made.scrapy("crawl", "plants", "-o", "items.jsonl", "-s", "CLOSESPIDER_PAGECOUNT=30", proxy=served.port)
    return Project(folder, web, list(served.log), ended.stderr, items(folder))


def test_a_new_project_with_one_line_changed_is_guided(project: Project) -> None:
    assert "finish_reason': 'closespider_pagecount'" in project.said
    assert "Traceback" not in project.said
    assert len(project.items) > 10


def test_it_asks_for_nothing_that_robots_forbids(project: Project) -> None:
    hosts = {one.url.split("/")[2] for one in project.log}
    robots = [one.url for one in project.log if one.url.endswith("/robots.txt")]
    assert violations(project.web, project.log) == []
    assert sorted(robots) == sorted(f"http://{host}/robots.txt" for host in hosts)  # each once
    assert any(project.web.forbidden(link.url) for url in asked(project.log) for link in project.web.fetch(url).links)


def test_it_keeps_the_delay_of_the_project(project: Project) -> None:
    assert keeps_delay(project.log, 1.0)


def test_the_shell_fetches_without_a_guide(project: Project) -> None:
    with lab.served(project.web, slowest_s=0) as served:
        said = project.scrapy("shell", "-c", "response.status", asked(project.log)[0], proxy=served.port)
    assert said.stdout.strip().endswith("200")
    assert "crawlguide: crawl" not in said.stderr


def test_check_works(project: Project) -> None:
    with lab.served(project.web, slowest_s=0) as served:
        ended = project.scrapy("check", proxy=served.port)
    assert ended.stderr.rstrip().endswith("OK")
    assert "Ran 1 contract" in ended.stderr


# one spider that does everything


PAGES: dict[str, Any] = {
    HOME: [f"{HOME}one", f"{HOME}moved", f"{HOME}gone", f"{HOME}broken", f"{HOME}raises", "http://off.example/x",
           f"{HOME}last", f"{HOME}urgent"],
    f"{HOME}one": [HOME, f"{HOME}leaves"],
    f"{HOME}leaves": [],
    f"{HOME}moved": f">{HOME}target",
    f"{HOME}target": [],
    f"{HOME}broken": 503,
    f"{HOME}raises": [f"{HOME}behind"],
    f"{HOME}behind": [],
    f"{HOME}last": [],
    f"{HOME}urgent": [],
    f"{HOME}again": [],
    f"{HOME}worded": [],
    "http://off.example/x": [],
    f"{HOME}away": ">http://off.example/y",
}  # fmt: skip
EVERYTHING = """
    handle_httpstatus_list = [405]

    def parse(self, response):
        yield {"url": response.url, "moved": response.meta.get("redirect_urls", []), "p": response.meta["crawlguide"].p}
        if response.url.endswith("/one"):
            response.meta["crawlguide"].relevance = 1.0
        for link in response.css("a::attr(href)").getall():
            priority = {"urgent": 10, "last": -10}.get(link.rpartition("/")[2], 0)
            yield response.follow(link, priority=priority, meta=response.meta, errback=self.failed)
        if response.url.endswith("/raises"):
            raise KeyError("on purpose")
        if response.url == self.start_urls[0]:
            yield response.follow("/form", method="POST", body="a=b", callback=self.posted)
            yield response.follow("/worded", callback=self.worded, cb_kwargs={"word": "kept"})
            yield response.follow("/again", callback=self.again)
            yield response.follow("/away")

    def posted(self, response):
        yield {"posted": response.status}

    def worded(self, response, word):
        yield {"word": word}

    def again(self, response, times=1):
        if times < 3:
            yield response.request.replace(dont_filter=True, cb_kwargs={"times": times + 1})

    def failed(self, failure):
        yield {"failed": failure.request.url}
"""


@dataclass(frozen=True)
class Done:
    crawled: Crawled
    log: list[Request]
    numbers: dict[str, Any]
    links: list[dict[str, Any]]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """AutoThrottle would take years, for the first request as well: no machine has been up for so long."""
    folder = tmp_path_factory.mktemp("done")
    years_s = 1_000_000_000
    slow = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": years_s, "AUTOTHROTTLE_MAX_DELAY": years_s}
    file = spider(folder, [HOME], EVERYTHING, allowed_domains=["a.example"])
    with lab.served(TinyWeb(PAGES), slowest_s=0) as served:
        crawled = run(file, served, CONCURRENT_REQUESTS=1, CRAWLGUIDE_DATA=str(folder / "data"), **FAST, **slow)
    with Guide.open(folder / "data") as guide:
        numbers = guide.stats("tried")["crawls"]["tried"]
        links = guide.explain("tried", f"{HOME}leaves")["links"]
    return Done(crawled, list(served.log), numbers, links)


def test_a_crawl_ends_when_nothing_is_left(done: Done) -> None:
    assert "finish_reason': 'finished'" in done.crawled.said
    assert (done.numbers["queued"], done.numbers["leased"]) == (0, 0)


def test_every_page_is_asked_for_once(done: Done) -> None:
    several = {f"{HOME}again": 3, f"{HOME}broken": 2}
    found = asked(done.log)
    assert {url: found.count(url) for url in found} == {
        url: several.get(url, 1) for url in [*PAGES, f"{HOME}gone"] if "off.example" not in url
    }


def test_a_redirect_is_two_assignments_and_the_callback_knows_where_it_came_from(done: Done) -> None:
    assert [one["moved"] for one in done.crawled.items if one.get("url") == f"{HOME}target"] == [[f"{HOME}moved"]]


def test_failures_are_tried_again_by_the_guide_and_heard_by_the_errback(done: Done) -> None:
    failed = [one["failed"] for one in done.crawled.items if "failed" in one]
    assert sorted(failed) == [f"{HOME}broken", f"{HOME}broken", f"{HOME}gone"]
    assert "retry/count" not in done.crawled.stats


def test_what_a_callback_yielded_before_it_raised_is_followed(done: Done) -> None:
    assert "KeyError: 'on purpose'" in done.crawled.said
    assert f"{HOME}behind" in asked(done.log)


def test_other_domains_are_never_asked_and_hold_no_lease(done: Done) -> None:
    assert not [url for url in asked(done.log) if "off.example" in url]
    assert "'offsite/filtered'" in done.crawled.stats


def test_a_post_is_sent_and_its_callback_called(done: Done) -> None:
    assert asked(done.log, "POST") == [f"{HOME}form"]
    assert {"posted": 405} in done.crawled.items


def test_callbacks_and_their_arguments_travel(done: Done) -> None:
    assert {"word": "kept"} in done.crawled.items


def test_priorities_go_before_and_behind_what_the_guide_thinks(done: Done) -> None:
    order = list(dict.fromkeys(asked(done.log)))
    assert order.index(f"{HOME}urgent") == 1
    assert order.index(f"{HOME}last") == len(order) - 1


def test_what_a_spider_says_of_a_page_counts(done: Done) -> None:
    assert done.numbers["relevant"] == 1


def test_the_guide_knows_the_words_of_links(done: Done) -> None:
    assert done.links == [{"url": f"{HOME}one", "anchor": f"about {HOME}leaves"}]


# served, and several at once


@pytest.fixture(scope="module")
def guide_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("guide")) as server:
        yield server.url
        assert server.stop() == 0


def started(folder: Path, served: Any, start: list[str], **settings: Any) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    file = spider(folder, start)
    words = command(file, settings)
    return subprocess.Popen(words, cwd=folder, env=environment(served, folder), stderr=subprocess.PIPE, text=True)


def test_two_spiders_share_a_served_crawl(guide_url: str, tmp_path: Path) -> None:
    """The second begins with nothing of its own."""
    pages = site("b.example", 30)
    told = {"CRAWLGUIDE_URL": guide_url, "CRAWLGUIDE_CRAWL": "shared", "CONCURRENT_REQUESTS": 2, "CRAWLGUIDE_AHEAD": 0}
    with Client(guide_url) as client, lab.served(TinyWeb(pages), slowest_s=0) as served:
        client.define("shared", {"policy": {"robots": "ignore", "default_delay_s": 0.1, "strict": True}})
        client.seed("shared", ["http://b.example/"])
        starts: list[list[str]] = [["http://b.example/"], []]
        both = [started(tmp_path / str(n), served, start, **told) for n, start in enumerate(starts)]
        said = [process.communicate(timeout=WITHIN_S)[1] for process in both]
        leased = client.stats("shared")["crawls"]["shared"]["leased"]
    found = [{one["url"] for one in items(tmp_path / str(n))} for n in range(2)]
    assert all("finish_reason': 'finished'" in one for one in said), said
    assert found[0] & found[1] == set()
    assert found[0] | found[1] == set(pages)  # whoever asks at the right moment gets the next one of this host
    assert sorted(asked(served)) == sorted(pages)
    assert keeps_delay(served.log, 0.1)
    assert leased == 0


def test_what_others_found_and_this_spider_may_not_visit_goes_back_unvisited(guide_url: str, tmp_path: Path) -> None:
    told = {"CRAWLGUIDE_URL": guide_url, "CRAWLGUIDE_CRAWL": "wide"}
    with Client(guide_url) as client, lab.served(TinyWeb(PAGES), slowest_s=0) as served:
        client.define("wide", {"policy": {"robots": "ignore", "default_delay_s": 0, "max_retries": 0}})
        client.seed("wide", ["http://off.example/x"])
        crawled = run(spider(tmp_path, [HOME], allowed_domains=["a.example"]), served, **told)
        counted = client.stats("wide")["crawls"]["wide"]
    assert "'crawlguide/blocked': 1" in crawled.stats
    assert not [url for url in asked(served) if "off.example" in url]
    assert (counted["leased"], counted["queued"]) == (0, 0)


def test_a_guide_that_is_not_there_is_named(tmp_path: Path) -> None:
    """It is tried for a minute, unless it can never be reached."""
    with lab.served(TinyWeb(PAGES), slowest_s=0) as served:
        other = f"http://127.0.0.1:{served.port}"  # which is no guide
        crawled = run(spider(tmp_path, [HOME]), served, CRAWLGUIDE_URL=other, CRAWLGUIDE_GOAL="x")
    assert f"the spider is closed: {other} is no crawlguide server" in crawled.said
    assert "takes a minute or more" not in crawled.said  # nothing is compiled here
    assert "'finish_reason': 'crawlguide_failed'" in crawled.stats


def until(served: Any, count: int) -> None:
    """So many pages were asked for."""
    end = time.monotonic() + WITHIN_S
    while len(asked(served)) < count and time.monotonic() < end:
        time.sleep(0.01)
    assert len(asked(served)) >= count


def test_ctrl_c_reports_what_was_fetched_and_gives_back_the_rest(guide_url: str, tmp_path: Path) -> None:
    pages = site("c.example", 200)
    told = {"CRAWLGUIDE_URL": guide_url, "CRAWLGUIDE_CRAWL": "stopped"}
    with Client(guide_url) as client, lab.served(TinyWeb(pages), slowest_s=0) as served:
        client.define("stopped", {"policy": {"robots": "ignore", "default_delay_s": 0.02}})
        process = started(tmp_path, served, ["http://c.example/"], **told)
        until(served, 10)
        process.send_signal(signal.SIGINT)
        assert "finish_reason': 'shutdown'" in process.communicate(timeout=WITHIN_S)[1]
        counted = client.stats("stopped")["crawls"]["stopped"]
    assert counted["leased"] == 0
    assert counted["done"] == len(asked(served))


# jobs that go on


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    """Two runs of one job, the first closed early."""
    folder = tmp_path_factory.mktemp("job")
    body = """
    handle_httpstatus_list = [405]

    def parse(self, response):
        yield from response.follow_all(css="a")
        if response.url == self.start_urls[0]:
            for number in range(4):
                yield response.follow("/form", method="POST", body=str(number), callback=self.posted)

    def posted(self, response):
        yield {"posted": response.status}
"""
    with lab.served(TinyWeb(site("d.example", 20)), slowest_s=0) as served:
        file = spider(folder, ["http://d.example/"], body)
        told: dict[str, Any] = {"JOBDIR": str(folder / "job"), "CONCURRENT_REQUESTS": 1, **FAST}
        first = run(file, served, CLOSESPIDER_PAGECOUNT=3, **told)
        second = run(file, served, **told)
    assert "finish_reason': 'closespider_pagecount'" in first.said
    assert "finish_reason': 'finished'" in second.said
    return list(served.log)


def test_a_job_goes_on_where_it_was_closed(job: list[Request]) -> None:
    assert sorted(asked(job)) == sorted(site("d.example", 20))


def test_requests_that_no_guide_knows_wait_in_the_job_as_scrapy_keeps_them(job: list[Request]) -> None:
    assert asked(job, "POST") == ["http://d.example/form"] * 4


def test_a_job_whose_untold_reports_are_damaged_goes_on(tmp_path: Path) -> None:
    kept = tmp_path / "job" / "crawlguide" / "untold.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b'{"url": "http://f.example/1", "status": 200}\n\xff\n{"url": "http://f.exam')
    with lab.served(TinyWeb(site("f.example", 4)), slowest_s=0) as served:
        file = spider(tmp_path, ["http://f.example/"])
        done = run(file, served, JOBDIR=str(tmp_path / "job"), **FAST)
        log = list(served.log)
    assert "finish_reason': 'finished'" in done.said
    assert done.said.count("a line is no report and is left out") == 2
    assert "http://f.example/" in asked(log)


def test_what_a_run_could_not_tell_is_kept_until_the_guide_has_it(tmp_path: Path) -> None:
    kept = tmp_path / "job" / "crawlguide" / "untold.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"url": "http://g.example/1", "status": 200, "fetch_time": "2025-11-03T14:17:31Z"}\n')
    told: dict[str, Any] = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1}
    with lab.served(TinyWeb(site("g.example", 8)), slowest_s=0) as served:
        process = started(tmp_path, served, ["http://g.example/"], **told)
        until(served, 1)
        process.kill()
        process.communicate()
        assert kept.exists()
        crawled = run(tmp_path / "tried.py", served, **told, **FAST)
    assert "finish_reason': 'finished'" in crawled.said
    assert not kept.exists()


async def test_a_robots_txt_that_wishes_to_be_asked_later_holds_its_host(tmp_path: Path) -> None:
    job = tmp_path / "job"
    async with stranger() as there:
        there.lay("/robots.txt", b"<html>later", "503 Busy", Retry_After="3600")
        file = spider(tmp_path, [there.url("/")])
        words = command(file, {"JOBDIR": str(job), "CLOSESPIDER_TIMEOUT": 3, "ROBOTSTXT_OBEY": True})
        await asyncio.to_thread(
            subprocess.run, words, cwd=tmp_path, env=environment(None, tmp_path), timeout=WITHIN_S, check=True
        )
        assert [request.split()[1] for request in there.requests] == [b"/robots.txt"]
        async with AsyncGuide.open(job / "crawlguide" / "guide") as guide:
            said = await guide.explain("tried", there.url("/"))
            found = {one["name"]: one["why"] for one in said["filters"]}
    assert re.search(r"may be asked again in 3\d{3}", found["politeness"])


async def test_a_robots_txt_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path) -> None:
    async with stranger() as there:
        there.lay("/robots.txt", gzip.compress(bytes(64 << 20)), Content_Encoding="gzip")
        words = command(spider(tmp_path, [there.url("/")]), {"CLOSESPIDER_TIMEOUT": 3, "ROBOTSTXT_OBEY": True})
        file = tmp_path / "said"
        with file.open("wb") as said:
            env = environment(None, tmp_path)
            await asyncio.to_thread(
                subprocess.run, words, cwd=tmp_path, env=env, timeout=WITHIN_S, check=True, stderr=said
            )
        assert [request.split()[1] for request in there.requests] == [b"/robots.txt"]
    assert "exceeded DOWNLOAD_MAXSIZE" in file.read_text()


def test_a_killed_job_loses_nothing_and_asks_again_only_for_what_was_in_work(tmp_path: Path) -> None:
    pages = site("e.example", 40)
    told: dict[str, Any] = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 2}
    policy = {"CRAWLGUIDE_DEFINITION": {"policy": {"default_delay_s": 0.03}}}
    with lab.served(TinyWeb(pages), slowest_s=0) as served:
        process = started(tmp_path, served, ["http://e.example/"], **told, **policy)
        until(served, 15)
        process.kill()
        process.communicate()
        crawled = run(tmp_path / "tried.py", served, **told, **policy)
    assert "finish_reason': 'finished'" in crawled.said
    assert set(asked(served)) == set(pages)
    assert len(asked(served)) <= len(pages) + 4


# what cannot work is said


def test_a_scheduler_without_its_middlewares_says_what_is_missing(tmp_path: Path) -> None:
    named = {"ADDONS": {}, "SCHEDULER": "crawlguide.integrations.scrapy.Scheduler"}
    with lab.served(TinyWeb(PAGES), slowest_s=0) as served:
        crawled = run(spider(tmp_path, [HOME]), served, **named)
    assert "ConfigError: DOWNLOADER_MIDDLEWARES: expected crawlguide.integrations.scrapy.Downloads" in crawled.said
    assert crawled.code == 1


def test_three_lines_do_what_the_addon_does_and_no_reactor_is_needed(tmp_path: Path) -> None:
    """Wherever the middlewares stand: here they do not see redirects themselves."""
    lines = {
        "ADDONS": {},
        "SCHEDULER": "crawlguide.integrations.scrapy.Scheduler",
        "DOWNLOADER_MIDDLEWARES": {"crawlguide.integrations.scrapy.Downloads": 100},
        "SPIDER_MIDDLEWARES": {"crawlguide.integrations.scrapy.Pages": 900},
    }
    with lab.served(TinyWeb({HOME: [f"{HOME}moved"], f"{HOME}moved": f">{HOME}target", f"{HOME}target": []})) as served:
        crawled = run(spider(tmp_path, [HOME]), served, TWISTED_REACTOR_ENABLED=False, **lines, **FAST)
    assert asked(served) == [HOME, f"{HOME}moved", f"{HOME}target"]
    assert "finish_reason': 'finished'" in crawled.said


def test_a_post_keeps_the_delay_and_robots_too(tmp_path: Path) -> None:
    body = """
    handle_httpstatus_list = [405]

    def parse(self, response):
        yield from response.follow_all(css="a")
        for number in range(3):
            yield response.follow("/form", method="POST", body=str(number), callback=self.posted)
        yield response.follow("/closed/form", method="POST", callback=self.posted)

    def posted(self, response):
        pass
"""
    web = TinyWeb(site("g.example", 5), robots={"g.example": "User-agent: *\nDisallow: /closed"})
    with lab.served(web, slowest_s=0) as served:
        run(spider(tmp_path, ["http://g.example/"], body), served, DOWNLOAD_DELAY=0.2, ROBOTSTXT_OBEY=True)
    assert asked(served, "POST") == ["http://g.example/form"] * 3
    pages = [one for one in served.log if not one.url.endswith("/robots.txt")]
    assert keeps_delay(pages, 0.2)


def test_stats_name_no_request_twice(done: Done) -> None:
    (assigned,) = re.findall(r"'crawlguide/assigned': (\d+)", done.crawled.stats)
    (told,) = re.findall(r"'crawlguide/reported': (\d+)", done.crawled.stats)
    assert assigned == told
