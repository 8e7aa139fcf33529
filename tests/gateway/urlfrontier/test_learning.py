"""What the guide adds: an order that is learned, what it thinks of a URL, figures for boards, all that lasts."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.gateway.urlfrontier.common import OK, SKIPPED, Frontier, Raw, found, known, open_frontier, until

from crawlguide.core.errors import NotFound
from crawlguide.gateway.client.urlfrontier import KnownUrl, NewUrl, Status, UrlFrontierClient
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire

if TYPE_CHECKING:
    from pathlib import Path

FAR = 4_000_000_000


def test_a_url_is_given_with_its_score_and_the_reason(raw: Raw) -> None:
    raw.put(found("https://a.example/", note=["mine"]))
    (given,) = raw.infos()
    about = {name: list(values.values) for name, values in given.metadata.items()}
    assert about.pop("note") == ["mine"]
    assert about.keys() == {"guide.score", "guide.reason", "guide.p"}
    assert float(about["guide.score"][0]) > 0
    assert re.fullmatch(r"[a-z_]+\+[a-z_]+", about["guide.reason"][0])
    assert 0 <= float(about["guide.p"][0]) <= 1


def test_what_the_guide_added_is_not_kept(raw: Raw) -> None:
    raw.put(found("https://a.example/", note=["mine"]))
    (given,) = raw.infos()
    raw.put(wire.URLItem(known=wire.KnownURLItem(info=given, refetchable_from_date=FAR)))
    assert raw.status("https://a.example/").known.info.metadata.keys() == {"note"}


def test_an_outcome_in_metadata_is_a_tell(frontier: Frontier) -> None:
    token = frontier.guarded.key("admin", tenant="tells")
    raw = Raw(frontier.port, token)
    raw.put(*(found(f"https://a.example/{page}") for page in range(3)))
    assert len(raw.get()) == 3
    raw.put(
        known("https://a.example/0", fetch__statusCode=["200"], fetch__loadingTime=["120"], fetch__byteLength=["4000"]),
        known("https://a.example/1", fetch__statusCode=["404"]),
        known("https://a.example/2", FAR, fetch__statusCode=["oops"]),
        known("https://b.example/imported", fetch__statusCode=["200"]),
    )
    with frontier.guarded.client(token) as http:
        stats = http.get("/v1/stats", params={"crawl_id": "DEFAULT"}).json()["crawls"]["DEFAULT"]
        history = http.get("/v1/urls", params={"crawl_id": "DEFAULT"}).json()["urls"]
    assert (stats["fetches"], stats["failed"], stats["assigned"]) == (3, 1, 3)
    assert {one["url"][-1]: one["status"] for one in history} == {"0": 200, "1": 404, "2": None, "d": None}


def test_urls_are_given_in_the_order_that_was_learned(raw: Raw) -> None:
    """Pages of one part of a site were relevant, those of another were not: what they lead to is ranked by that."""
    raw.call("SetDelay", wire.QueueDelayParams(delay_requestable=0))
    parts = {"good": "1", "bad": "0"}
    for step in range(12):
        raw.put(*(found(f"https://a.example/{part}/{step}-{page}.html") for part in parts for page in range(5)))
        given = raw.get(max_urls_per_queue=10)
        raw.put(
            *(known(url, fetch__statusCode=["200"], guide__relevance=[parts[url.split("/")[3]]]) for url in given),
        )
    raw.put(*(found(f"https://a.example/{part}/last-{page}.html") for page in range(20) for part in ("bad", "good")))
    first = raw.get(max_urls_per_queue=20)
    assert sum("/good/" in url for url in first) >= 15, first


def test_links_are_ranked_by_the_pages_they_stand_on(frontier: Frontier) -> None:
    token = frontier.guarded.key("admin", tenant="paths")
    raw = Raw(frontier.port, token)
    raw.put(found("https://a.example/hub"), found("https://a.example/dull"))
    with frontier.guarded.client(token) as http:
        http.patch("/v1/crawls/DEFAULT", json={"strategy": {"kind": "best-first"}}).raise_for_status()
    raw.get()
    raw.put(
        known("https://a.example/hub", fetch__statusCode=["200"], guide__relevance=["1.0"]),
        known("https://a.example/dull", fetch__statusCode=["200"], guide__relevance=["0.0"]),
        *(found(f"https://a.example/x{page}", url__path=["https://a.example/dull"]) for page in range(5)),
        *(found(f"https://a.example/y{page}", url__path=["x", "https://a.example/hub"]) for page in range(5)),
    )
    first = until(lambda: raw.get(max_urls_per_queue=5))
    assert sorted(first) == [f"https://a.example/y{page}" for page in range(5)]


def test_boards_find_the_series_they_know(frontier: Frontier, raw: Raw) -> None:
    raw.put(found("https://a.example/"), found("https://a.example/"), known("https://a.example/done"))
    raw.get()
    token = frontier.guarded.key("metrics", tenant="default")
    with frontier.guarded.client(token) as http:
        page = http.get("/metrics").text
    numbers = dict(line.rsplit(" ", 1) for line in page.splitlines() if line.startswith("frontier_"))
    for name in (
        "frontier_getURLs_calls_total",
        "frontier_getURLs_total",
        "frontier_getURLs_latency_seconds_count",
        "frontier_putURLs_calls_total",
        "frontier_putURLs_total",
        'frontier_putURLs_discovered_total{discovered="true"}',
        'frontier_putURLs_discovered_total{discovered="false"}',
        "frontier_putURLs_ignored_total",
        "frontier_putURLs_completed_total",
    ):
        assert float(numbers[name]) >= 1, name
    assert "frontier_putDiscovered_calls_total" in numbers


# what lasts


def fill(raw: Raw) -> tuple[list[str], list[str]]:
    """Five queues: one is blocked, one has a long delay and was served, one is full, of one a URL is held."""
    raw.call("SetDelay", wire.QueueDelayParams(delay_requestable=0))
    raw.put(*(found(f"https://h{host}.example/{page}", note=["x"]) for host in range(5) for page in range(3)))
    raw.put(known("https://h0.example/later", FAR), known("https://h0.example/done"), known("https://h3.example/0"))
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="h1.example", time=FAR))
    raw.call("SetDelay", wire.QueueDelayParams(key="h2.example", delay_requestable=1_000))
    raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="h3.example", limit=1))
    some = {"crawlID": "DEFAULT", "max_urls_per_queue": 1, "delay_requestable": 3_000}
    return raw.get(key="h2.example", **some), raw.get(key="h4.example", **some)


def test_everything_outlasts_the_process(tmp_path: Path) -> None:
    """Also what the original keeps in memory alone: delays, blocks, limits, leases, whether anything is given."""
    with open_frontier(tmp_path) as (server, raw):
        held = fill(raw)
        raw.call("SetActive", wire.Active(state=False))
        server.stop(signal.SIGKILL)
    with open_frontier(tmp_path) as (server, raw):
        assert not raw.call("GetActive", wire.Local()).state
        raw.call("SetActive", wire.Active(state=True))
        assert raw.status("https://h0.example/later").known.refetchable_from_date == FAR
        assert raw.status("https://h0.example/done").known.refetchable_from_date == 0
        assert list(raw.status("https://h0.example/1").known.info.metadata["note"].values) == ["x"]
        stats = raw.stats()
        assert (stats.inProcess, stats.counts["completed"], stats.numberOfQueues) == (2, 2, 5)
        given = raw.get(max_urls_per_queue=9)
        assert {url.split("/")[2] for url in given} == {"h0.example", "h4.example"}
        assert not set(given) & {*held[0], *held[1]}
        assert (len(given), raw.get(max_urls_per_queue=10)) == (5, [])
        raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="h3.example"))
        raw.call("BlockQueueUntil", wire.BlockQueueParams(key="h1.example"))
        raw.call("SetDelay", wire.QueueDelayParams(key="h2.example"))
        assert len(raw.get(max_urls_per_queue=10)) == 7
        assert httpx.get(f"{server.url}/v1/stats", trust_env=False).json()["crawls"].keys() == {"DEFAULT"}
        assert server.stop() == 0
        assert "Traceback" not in server.said()


# the client


def test_the_client_does_all_there_is(client: UrlFrontierClient) -> None:
    new: list[str | NewUrl] = [NewUrl("https://a.example/1", metadata={"note": ["x"]}), *["https://a.example/2"] * 2]
    assert client.discover(new) == [Status.OK, Status.OK, Status.SKIPPED]
    pages = list(client.get(queues=1, per_queue=2, lease_s=60))
    assert {page.url for page in pages} == {"https://a.example/1", "https://a.example/2"}
    assert all(page.score is not None and page.reason and page.crawl == "DEFAULT" for page in pages)
    assert client.put([KnownUrl(pages[0].url), KnownUrl(pages[1].url, date=FAR)]) == [Status.OK, Status.OK]
    stats = client.stats()
    assert (stats.active, stats.in_process, stats.completed, stats.queues) == (1, 0, 1, 1)
    assert list(client.queues(inactive=True)) == ["a.example"]
    assert client.status(pages[1].url).date == FAR
    assert sorted(one.url for one in client.urls()) == ["https://a.example/1", "https://a.example/2"]
    assert [one.url for one in client.urls(holding="EXAMPLE/1", ignore_case=True)] == ["https://a.example/1"]
    assert (client.count(), client.count("a.example", "/2")) == (2, 1)
    assert client.crawls() == ["DEFAULT"]
    assert client.nodes() == [client.address]


def test_the_client_sets_all_there_is(client: UrlFrontierClient) -> None:
    client.discover(["https://a.example/1"])
    client.set_delay(3)
    client.set_delay(0, "a.example")
    client.block("a.example", FAR)
    assert list(client.queues()) == []
    client.block("a.example", 0)
    client.set_limit("a.example", 1)
    with pytest.raises(NotFound, match="no queue"):
        client.set_limit("no.example", 1)
    with pytest.raises(NotFound):
        client.status("https://no.example/")
    client.active = False
    assert not client.active
    client.active = True
    assert client.purge(1) == 0
    assert client.delete_queue("a.example") == 1
    assert client.delete_crawl() == 0


def test_what_the_client_lists_it_can_put_back(client: UrlFrontierClient) -> None:
    client.discover(
        NewUrl(f"https://h{number % 7}.example/{number}", "", {"n": [str(number)]}) for number in range(250)
    )
    client.put(KnownUrl(f"https://h{number % 7}.example/{number}", date=number % 2 * FAR) for number in range(50))
    before = sorted(client.urls())
    client.delete_crawl()
    assert set(client.put(before)) == {Status.OK}
    assert [one._replace(created=0) for one in sorted(client.urls())] == [one._replace(created=0) for one in before]


def test_statuses_stand_in_the_order_of_the_urls(raw: Raw) -> None:
    urls = [f"https://h{number % 3}.example/{number // 2}" for number in range(0, 600, 3)]
    seen: set[str] = set()
    acks = raw.put(*(found(url, name=str(number)) for number, url in enumerate(urls)))
    for number, url in enumerate(urls):
        assert acks[str(number)] == [SKIPPED if url in seen else OK]
        seen.add(url)
