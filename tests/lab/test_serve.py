"""Webs of the lab over real HTTP: every host on one port, and every request in the log."""

from __future__ import annotations

import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import TYPE_CHECKING
from urllib.robotparser import RobotFileParser

import defusedxml.ElementTree
import httpx
import pytest

from crawlguide import lab
from crawlguide.core.errors import ConfigError
from crawlguide.crawler.html import read_html
from crawlguide.lab.pages import Link, Page
from crawlguide.lab.serving import as_html
from crawlguide.policy import robots
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from crawlguide.lab.pages import Task
    from crawlguide.lab.serving import Served
    from crawlguide.lab.synthetic import SyntheticWeb

DAY_S = 86_400.0


@pytest.fixture(scope="module")
def web() -> SyntheticWeb:
    return lab.synthetic.make(
        1, pages=300, hosts=6, failing=1.0, failure_rate=0.2, robots=0.5, redirects=0.2, traps=0.1
    )


@pytest.fixture(scope="module")
def served(web: SyntheticWeb) -> Iterator[Served]:
    with lab.served(web, slowest_s=0) as server:
        yield server


@pytest.fixture(scope="module")
def browser(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(proxy=f"http://127.0.0.1:{served.port}", timeout=10) as client:
        yield client


def test_a_web_is_served_in_one_call(web: SyntheticWeb) -> None:
    port = lab.serve(web, slowest_s=0)
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(f"GET http://{web.hosts[0]}/ HTTP/1.1\r\nhost: {web.hosts[0]}\r\n\r\n".encode())
        assert line.recv(15) == b"HTTP/1.1 200 OK"


def test_every_host_answers_with_its_own_pages(web: SyntheticWeb, browser: httpx.Client) -> None:
    for host in web.hosts:
        page = web.fetch(f"http://{host}/")
        answer = browser.get(f"http://{host}/")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert f"<title>{page.title}</title>" in answer.text
        assert page.text in answer.text
        assert [unescape(url) for url in re.findall(r'<a href="([^"]*)"', answer.text)] == [
            link.url for link in page.links
        ]


def test_without_a_proxy_the_host_header_says_whom_one_means(web: SyntheticWeb, served: Served) -> None:
    for host in (web.hosts[1], f"{web.hosts[1]}:{served.port}", web.hosts[1].upper()):
        answer = httpx.get(f"http://127.0.0.1:{served.port}/", headers={"host": host})
        assert f"Welcome to {web.hosts[1]}" in answer.text


def test_the_port_itself_says_what_it_is(served: Served) -> None:
    said = httpx.get(f"http://127.0.0.1:{served.port}/").text
    assert said.startswith("This port is an HTTP proxy")
    assert "http://www.harbour-review.example/\n" in said


def seen(web: SyntheticWeb) -> list[str]:
    links = [link.url for task in web.tasks() for url in sorted(task.relevant) for link in web.fetch(url).links]
    return list(dict.fromkeys(links))[::3]


def test_statuses_redirects_and_failures_are_those_of_the_web(web: SyntheticWeb, browser: httpx.Client) -> None:
    met = set()
    for url in seen(web):
        page, answer = web.fetch(url), browser.get(url)
        assert answer.status_code == (504 if page.error else page.status)
        assert answer.headers.get("location") == page.redirected_to
        met.add(answer.status_code)
    assert met == {200, 301, 404, 500, 503, 504}


def test_robots_and_sitemaps_can_be_read_by_those_who_read_them(web: SyntheticWeb, browser: httpx.Client) -> None:
    host = next(host for host in web.hosts if "Sitemap" in browser.get(f"http://{host}/robots.txt").text)
    file = browser.get(f"http://{host}/robots.txt")
    assert file.headers["content-type"] == "text/plain; charset=utf-8"
    rules = RobotFileParser()
    rules.parse(file.text.splitlines())
    (index,) = rules.site_maps() or []
    urls = [
        element.text or ""
        for element in defusedxml.ElementTree.fromstring(browser.get(index).text).findall(".//{*}loc")
    ]
    assert urls == [f"http://{host}/sitemap-1.xml"]
    pages = defusedxml.ElementTree.fromstring(browser.get(urls[0]).text).findall(".//{*}loc")
    assert all(web.fetch(page.text or "").status != 404 for page in pages)


def test_rules_are_kept_by_a_reader_of_robots(web: SyntheticWeb, browser: httpx.Client) -> None:
    rules = {host: RobotFileParser() for host in web.hosts}
    for host, its in rules.items():
        answer = browser.get(f"http://{host}/robots.txt")
        its.parse(answer.text.splitlines() if answer.is_success else [])
    verdicts = {url: rules[url.split("/")[2]].can_fetch("anybody", url) for url in seen(web)}
    assert verdicts == {url: not web.forbidden(url) for url in verdicts}
    files = {host: browser.get(f"http://{host}/robots.txt").content for host in web.hosts}
    assert verdicts == {url: robots.allowed(files[url.split("/")[2]], "anybody", url) for url in verdicts}
    assert set(verdicts.values()) == {True, False}


def test_every_request_is_in_the_log(web: SyntheticWeb) -> None:
    with lab.served(web, slowest_s=0) as served:
        proxy = f"http://127.0.0.1:{served.port}"
        urls = [f"http://{host}/?n={number}" for host in web.hosts for number in range(10)]
        with httpx.Client(proxy=proxy, headers={"user-agent": "me"}) as client, ThreadPoolExecutor(8) as many:
            list(many.map(client.get, urls))
        assert sorted(request.url for request in served.log) == sorted(urls)
        assert {(request.method, request.status, request.agent) for request in served.log} == {("GET", 404, "me")}
        assert all(0 <= request.at < 60 for request in served.log)


def test_other_methods_are_refused_and_head_has_no_body(web: SyntheticWeb, browser: httpx.Client) -> None:
    home = f"http://{web.hosts[0]}/"
    assert browser.post(home).status_code == 405
    head = browser.head(home)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == browser.get(home).headers["content-length"]


def test_a_slow_host_takes_its_time_and_a_fast_one_does_not() -> None:
    """Ten seconds of a web are one of ours here."""
    web = lab.synthetic.make(3, pages=100, hosts=2, mirrors=0, slow=0.5)
    with lab.served(web, slowest_s=1.0) as served, httpx.Client(proxy=f"http://127.0.0.1:{served.port}") as client:
        for host in web.hosts:
            expected_s = (web.fetch(f"http://{host}/").elapsed_ms or 0.0) / 10_000
            began = time.perf_counter()
            client.get(f"http://{host}/")
            assert expected_s <= time.perf_counter() - began < expected_s + 1.0


def test_pages_change_as_the_clock_goes(web: SyntheticWeb) -> None:
    clock = ManualClock()
    url = max((url for task in web.tasks() for url in task.relevant), key=web.change_rate)
    with lab.served(web, slowest_s=0, clock=clock) as served:
        before = httpx.get(url, proxy=f"http://127.0.0.1:{served.port}").text
        assert httpx.get(url, proxy=f"http://127.0.0.1:{served.port}").text == before
        clock.advance(30 * DAY_S)
        later = [httpx.get(url, proxy=f"http://127.0.0.1:{served.port}") for _ in range(2)]
    assert later[0].text == later[1].text != before


class SecureWeb:
    """A web that is known by HTTPS, with markup in its words."""

    name = "secure"

    def tasks(self) -> list[Task]:
        return []

    def fetch(self, url: str) -> Page:
        links = (Link("https://one.example/?a=1&b=<2>", 'the "first" & <last>', 0), Link("ftp://x.example/", "file", 1))
        return Page(url, 200, "<b>", "1 < 2", links=links) if url.startswith("https://one.example/") else Page(url, 404)

    def is_relevant(self, task: Task, url: str) -> bool:
        return url in task.relevant

    def waste(self, url: str) -> str | None:
        return None if self.fetch(url).status == 200 else "dead"

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        return frozenset(seeds)


def test_a_web_of_https_is_served_as_http_and_markup_stays_text() -> None:
    with lab.served(SecureWeb()) as served:
        said = httpx.get("http://one.example/", proxy=f"http://127.0.0.1:{served.port}").text
        assert httpx.get("http://two.example/", proxy=f"http://127.0.0.1:{served.port}").status_code == 404
    assert '<a href="http://one.example/?a=1&amp;b=&lt;2&gt;">the &quot;first&quot; &amp; &lt;last&gt;</a>' in said
    assert '<a href="ftp://x.example/">file</a>' in said
    assert "<title>&lt;b&gt;</title>" in said
    assert "1 &lt; 2" in said


@pytest.mark.parametrize("text", ["Rows & columns of <tables>.", ""])
def test_the_built_in_crawler_reads_what_the_lab_tells(text: str) -> None:
    links = (Link("https://b.example.org/", "elsewhere", 0), Link("https://a.example.org/2", "a second page", 1))
    page = Page("https://a.example.org/1", 200, "Tables", text, language="en", links=links)
    read = read_html(as_html(page), "http://a.example.org/1")
    assert (read.title, read.text, read.language) == ("Tables", text or "Tables", "en")
    assert [(link.url, link.anchor) for link in read.links] == [
        ("http://b.example.org/", "elsewhere"),
        ("http://a.example.org/2", "a second page"),
    ]


def test_a_port_that_is_taken_is_a_clear_error(served: Served, web: SyntheticWeb) -> None:
    with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{served.port}"):
        lab.served(web, served.port)


def test_a_closed_server_lets_go_of_its_port(web: SyntheticWeb) -> None:
    first = lab.served(web)
    first.close()
    with lab.served(web, first.port) as again:
        assert again.port == first.port
