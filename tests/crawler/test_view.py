"""What is shown while a crawl runs and when it has ended."""

from __future__ import annotations

import asyncio
import io
import os
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from crawlguide.crawler import limits
from crawlguide.crawler.estimate import Estimate
from crawlguide.crawler.folder import CrawlFolder, Identity
from crawlguide.crawler.lines import PageLine
from crawlguide.crawler.plot import chart, plot, rates, sparkline
from crawlguide.crawler.run import Outcome, _at_once, crawl
from crawlguide.crawler.summary import Summary, write_html
from crawlguide.crawler.tally import MOST_POINTS, MOST_REASONS, OTHER_REASONS, Tally
from crawlguide.crawler.view import Pictured, facts
from tests.crawler.crawling import Listener, Place
from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crawler.test_command import Here


def fetched(number: int, relevance: float | None, **more: Any) -> PageLine:
    usual: dict[str, Any] = {
        "url": f"https://h{number % 3}.example/{number}",
        "status": 200,
        "relevance": relevance,
        "bytes": 10,
    }
    return PageLine(**(usual | more))


def test_the_picture_shows_numbers_hosts_and_what_comes_next(place: Place, tmp_path: Path) -> None:
    shown = io.StringIO()
    view = Pictured(Console(file=shown, force_terminal=True, width=120, height=40, color_system=None))
    asyncio.run(crawl(place.options(tmp_path / "out", delay_s=0.3, max_pages=30), view))
    text = shown.getvalue()
    for words in ("requests", "pages/s", "harvest", "best hosts", "next", "left", "http://"):
        assert words in text


def test_without_a_topic_the_picture_shows_no_harvest(place: Place, tmp_path: Path) -> None:
    shown = io.StringIO()
    view = Pictured(Console(file=shown, force_terminal=True, width=120, height=40, color_system=None))
    asyncio.run(crawl(place.options(tmp_path / "out", topic=None, delay_s=0.3, max_pages=30), view))
    text = shown.getvalue()
    assert "next" in text
    for words in ("relevant", "harvest", "best hosts"):
        assert words not in text


def test_an_end_at_once_shows_the_cursor_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, codes = io.StringIO(), list[int]()
    monkeypatch.setattr("crawlguide.crawler.run.os._exit", codes.append)
    view = Pictured(Console(file=shown, force_terminal=True))
    view.start()
    _at_once(view)
    assert shown.getvalue().rfind("\x1b[?25h") > shown.getvalue().rfind("\x1b[?25l") >= 0
    assert codes == [130]


class Ender(Listener):
    """Ends the server as soon as some pages came, and the crawl once it has said so."""

    def __init__(self, server: Any) -> None:
        super().__init__()
        self._server = server

    def show(self, loop: Any) -> None:
        if loop.tally.requests > 3 and self._server.process.poll() is None:
            self._server.process.kill()
            self._server.process.wait()
        if loop.assignments.trouble:
            self.said += facts(loop)
            os.kill(os.getpid(), 2)


def test_a_guide_that_is_gone_is_said_and_ctrl_c_works(place: Place, tmp_path: Path) -> None:
    with serving(tmp_path, tmp_path / "data") as server:
        view = Ender(server)
        options = place.options(tmp_path / "out", guide=server.url, delay_s=0.5, max_pages=0)
        outcome = asyncio.run(crawl(options, view))
    assert outcome.why == "interrupted"
    assert any("the guide does not answer and is tried again" in text for text in view.said)


def test_a_tally_counts_pages_failures_and_hosts() -> None:
    tally = Tally()
    tally.add(fetched(0, 0.9))
    tally.add(fetched(1, 0.1))
    tally.add(fetched(2, 0.0, status=404))
    tally.add(fetched(3, None, status=None, error="timeout"))
    tally.add(fetched(4, None, status=301, redirected_to="https://h.example/"))
    tally.add(fetched(5, None, kind="robots"))
    assert (tally.requests, tally.pages, tally.relevant, tally.redirects, tally.robots) == (5, 2, 1, 1, 1)
    assert dict(tally.problems) == {"status 404": 1, "timeout": 1}
    assert [(name, host.relevant) for name, host in tally.best_hosts(5)] == [("h0.example", 1)]
    assert tally.harvest == 0.2


def summed(folder: Path, stats: dict[str, Any], *lines: PageLine) -> Summary:
    tally = Tally()
    for line in lines:
        tally.add(line)
    identity = Identity(crawl_id="made", crawler_id="c", definition={}, seeds=[])
    return Summary(Outcome("exhausted", CrawlFolder(folder), identity, tally, stats, 1.0))


def test_one_is_no_plural(tmp_path: Path) -> None:
    moved = fetched(2, None, status=301, redirected_to="https://h.example/")
    facts = dict(summed(tmp_path, {}, fetched(0, 0.9), fetched(1, 0.0, status=404), moved).facts())
    assert facts["requests"] == "3 (1 page, 1 redirect, 1 failure), 0 of robots.txt"


def test_a_site_that_looks_like_a_trap_is_said_and_how_to_find_out_why(tmp_path: Path) -> None:
    (advice,) = summed(tmp_path, {"dropped": {"traps": 2}}, fetched(0, 0.0)).advice()
    assert advice.endswith(f"crawlguide explain URL --crawl made --data {tmp_path}/guide")
    assert not summed(tmp_path, {"dropped": {"traps": 1}}, fetched(0, 0.0)).advice()


def test_heads_of_numbers_stand_above_their_numbers(tmp_path: Path) -> None:
    write_html(summed(tmp_path, {}, fetched(0, 0.9)), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count('<th scope="col" class="n">') == 3
    assert "\n.n { text-align: right;" in page


def test_a_short_crawl_has_whole_numbers_at_its_axes() -> None:
    drawn = chart([(0, 0), (3, 2)])
    assert [tick.text for tick in drawn.x_ticks] == [str(n) for n in range(7)]
    assert [tick.text for tick in drawn.y_ticks] == [str(n) for n in range(6)]


def test_what_remains_is_said_in_words() -> None:
    said = limits.words(Estimate(found=30, remaining=6.2, low=2.0, high=11.0, share=0.829, next_price=4.04))
    assert said.replace("\u202f", " ") == (
        "about 6 relevant pages remain, likely between 2 and 11; 83 % are found, the next one costs 4.0 requests"
    )
    assert limits.words(Estimate(30, 0.0, 0.0, 0.0, 1.0, inf)) == (
        "nothing waits any more: all relevant pages that could be reached are found"
    )


def test_a_document_that_came_and_could_not_be_read_is_a_page_and_no_failure() -> None:
    tally = Tally()
    tally.add(fetched(0, 0.0, problem="reading PDF needs pypdf"))
    tally.add(fetched(1, 0.0, status=404, problem="reading PDF needs pypdf"))
    assert (tally.pages, dict(tally.problems)) == (1, {"status 404": 1})
    assert dict(tally.unreadable) == {"reading PDF needs pypdf": 1}
    for number in range(2 * MOST_REASONS):
        tally.add(fetched(number, 0.0, problem=f"cannot be read as pdf: {number}"))
    assert len(tally.unreadable) == MOST_REASONS + 1
    assert tally.unreadable[OTHER_REASONS] == MOST_REASONS + 1


def test_hosts_whose_robots_txt_cannot_be_read_are_said_until_it_can() -> None:
    tally = Tally()
    tally.add(fetched(0, None, kind="robots", status=None, error="dns", problem="nobody knows it"))
    tally.add(fetched(1, None, kind="robots", status=503))
    tally.add(fetched(2, None, kind="robots", status=404))
    assert tally.without_rules == (
        "robots.txt of h0.example (and of 1 more host) cannot be read and is tried again: nobody knows it"
    )
    tally.add(fetched(0, None, kind="robots"))
    assert tally.without_rules == "robots.txt of h1.example cannot be read and is tried again: status 503"
    tally.add(fetched(1, None, kind="robots", status=403))
    assert tally.without_rules == ""


def test_a_crawl_that_waits_for_robots_txt_says_so(here: Here, tmp_path: Path) -> None:
    words = ("--proxy", "http://127.0.0.1:9", "--max-time", "7s", "--out", tmp_path / "out")
    ended = here("crawl", "http://nowhere.example/", *words)
    said = "robots.txt of nowhere.example cannot be read and is tried again: the proxy does not answer: "
    assert said in ended.stderr
    assert said in ended.stdout


def test_a_curve_of_any_length_has_few_points() -> None:
    tally = Tally()
    for number in range(3 * MOST_POINTS):
        tally.add(fetched(number, float(number % 2)))
    assert len(tally.curve.points) <= MOST_POINTS
    assert tally.curve.points[-1][0] > 2.9 * MOST_POINTS
    assert len(tally.best_pages()) == 20


def test_a_plot_has_a_block_for_each_stretch() -> None:
    points = [(0, 0.0), (10, 10.0), (20, 10.0)]
    assert rates(points, 2) == [1.0, 0.0]
    assert sparkline(points, 2) == "█ "
    drawn = plot(points, 20)
    assert drawn[0] == "relevant pages"
    assert drawn[1].strip().startswith("10 │")
    assert drawn[-1].endswith("20 requests")
    assert plot([(0, 0.0)], 20) == []
