"""What the conformance classes of URLFrontier assert of a server that is empty, as far as their description says it."""

from __future__ import annotations

import json
import time

import grpc
import pytest
from google.protobuf import json_format
from tests.gateway.urlfrontier.common import OK, SKIPPED, Raw, found, info, known, refused, until

from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire

HOST = "www.mysite.com"
FAR = 4_000_000_000


def test_what_is_done_is_never_given_again(raw: Raw) -> None:
    assert raw.put(known(f"https://{HOST}/done")) == {f"https://{HOST}/done": [OK]}
    assert raw.get(key=HOST, crawlID="DEFAULT") == []


def test_of_two_dates_the_earlier_comes_first(raw: Raw) -> None:
    now = int(time.time())
    raw.put(known(f"https://{HOST}/a-second", now - 10), known(f"https://{HOST}/b-first", now - 20))
    assert raw.get(key=HOST, crawlID="DEFAULT") == [f"https://{HOST}/b-first", f"https://{HOST}/a-second"]


def test_the_life_of_a_url(raw: Raw) -> None:
    url = f"https://{HOST}/life"
    assert raw.put(found(url), found(url)) == {url: [OK, SKIPPED]}
    assert list(raw.call("ListQueues", wire.Pagination()).values) == [HOST]
    assert raw.get(key=HOST, crawlID="DEFAULT", delay_requestable=2) == [url]
    held = raw.stats(HOST)
    assert (held.inProcess, held.numberOfQueues, held.size) == (1, 1, 1)
    assert raw.get(key=HOST, crawlID="DEFAULT", delay_requestable=2) == []
    until(lambda: raw.stats(HOST).inProcess == 0)
    assert raw.call("DeleteQueue", wire.QueueWithinCrawlParams(key=HOST)).value == 1
    assert raw.stats().numberOfQueues == 0


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://gac.icann.org?language_id=9", "gac.icann.org"),
        ("https://example.com:8080/x", "example.com"),
        ("http://example.com&x", "example.com"),
        ("ftp://example.com/x", "example.com"),
    ],
)
def test_a_missing_key_is_the_host(raw: Raw, url: str, key: str) -> None:
    raw.put(found(url))
    assert list(raw.call("ListQueues", wire.Pagination()).values) == [key]
    assert raw.stats(key).size == 1


def test_crawls_are_apart(raw: Raw) -> None:
    url = f"https://{HOST}/"
    assert list(raw.call("ListCrawls", wire.Local()).values) == []
    assert raw.put(
        found(url, crawl="BESPOKE", name="1"), found(url, name="2"), found(url, crawl="DEFAULT", name="3")
    ) == {
        "1": [OK],
        "2": [OK],
        "3": [SKIPPED],
    }
    assert sorted(raw.call("ListCrawls", wire.Local()).values) == ["BESPOKE", "DEFAULT"]
    for asked, crawl in (("BESPOKE", "BESPOKE"), ("", "DEFAULT"), ("DEFAULT", "DEFAULT")):
        stats = raw.stats(crawl=asked)
        assert (stats.crawlID, stats.size, stats.numberOfQueues) == (crawl, 1, 1)
    assert raw.call("DeleteCrawl", wire.DeleteCrawlMessage(value="BESPOKE")).value == 1
    assert raw.stats(crawl="BESPOKE").size == 0
    assert raw.call("DeleteCrawl", wire.DeleteCrawlMessage(value="")).value == 1
    assert list(raw.call("ListCrawls", wire.Local(local=True)).values) == []


def dumped(raw: Raw) -> list[str]:
    """As the original's command writes it: crawl by crawl, queue by queue, a line of JSON for each URL."""
    lines: list[str] = []
    for crawl in raw.call("ListCrawls", wire.Local(local=True)).values:
        page = wire.Pagination(size=1_000, include_inactive=True, crawlID=crawl, local=True)
        for key in raw.call("ListQueues", page).values:
            listed = raw.listed(key=key, crawlID=crawl, size=2**31 - 1, local=True)
            lines += [json_format.MessageToJson(item, indent=None) for item in listed]
    return lines


def test_a_dump_is_taken_in_again(raw: Raw) -> None:
    raw.put(
        found("https://a.example/1", meta=["x", "y"]),
        known("https://a.example/done"),
        known("https://b.example/later", FAR),
        found("https://c.example/other", crawl="BESPOKE"),
    )
    lines = dumped(raw)
    assert len(lines) == 4
    assert all("known" in json.loads(line) for line in lines)
    for crawl in ("DEFAULT", "BESPOKE"):
        raw.call("DeleteCrawl", wire.DeleteCrawlMessage(value=crawl))
    assert list(raw.call("ListCrawls", wire.Local(local=True)).values) == []
    acks = raw.put(*(json_format.Parse(line, wire.URLItem()) for line in lines))
    assert list(acks.values()) == [[OK]] * 4
    assert raw.status("https://a.example/done").known.refetchable_from_date == 0
    assert raw.status("https://b.example/later").known.refetchable_from_date == FAR
    again = raw.status("https://a.example/1").known
    assert list(again.info.metadata["meta"].values) == ["x", "y"]
    assert again.refetchable_from_date > 0
    assert raw.call("CountURLs", wire.CountUrlParams(crawlID="BESPOKE")).value == 1


def test_all_queues_of_a_dump(raw: Raw) -> None:
    raw.put(*(found(f"https://host{number % 11}.example/{number}") for number in range(21)))
    assert len(set(dumped(raw))) == 21
    assert raw.stats().numberOfQueues == 11


# service tests: status, lists, counts


def test_the_status_of_a_url(raw: Raw) -> None:
    now = int(time.time())
    raw.put(found("https://a.example/new"), known("https://a.example/done"), known("https://a.example/again", FAR))
    new = raw.status("https://a.example/new")
    assert now - 60 < new.known.refetchable_from_date <= time.time()
    assert now - 60 < new.creation_date <= time.time()
    assert raw.status("https://a.example/done", "a.example").known.refetchable_from_date == 0
    assert raw.status("https://a.example/again").known.refetchable_from_date == FAR
    assert new.WhichOneof("item") == "known"


@pytest.mark.parametrize(
    ("url", "key", "crawl"),
    [("https://a.example/no", "", ""), ("https://a.example/", "no", ""), ("https://a.example/", "", "no")],
)
def test_what_is_not_known_is_not_found(raw: Raw, url: str, key: str, crawl: str) -> None:
    raw.put(found("https://a.example/"))
    with refused(grpc.StatusCode.NOT_FOUND):
        raw.status(url, key, crawl)


def test_a_status_needs_a_key(raw: Raw) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT) as problem:
        raw.status("")
    assert "key: expected one" in problem.value.details()


def test_urls_are_listed_in_pages_and_filtered(raw: Raw) -> None:
    raw.put(*(found(f"https://{host}.example/Page-{number}") for number, host in enumerate("aabbc")))
    assert len(raw.listed()) == 5
    assert len(raw.listed(key="c.example")) == 1
    assert len(raw.listed(start=3, size=5)) == 2
    assert len(raw.listed(size=2)) == 2
    assert [item.known.info.url for item in raw.listed(filter="Page-4")] == ["https://c.example/Page-4"]
    assert raw.listed(filter="page-4") == []
    assert len(raw.listed(filter="page-4", ignoreCase=True)) == 1
    for count, key, text in ((5, "", None), (2, "a.example", None), (1, "", "Page-4"), (0, "", "page-4")):
        assert raw.call("CountURLs", wire.CountUrlParams(key=key, filter=text)).value == count
    assert raw.call("CountURLs", wire.CountUrlParams(filter="PAGE", ignoreCase=True, key="b.example")).value == 2


def test_discovered_after_done_is_skipped_whenever_it_comes(raw: Raw) -> None:
    url = "https://a.example/"
    assert raw.put(known(url), found(url)) == {url: [OK, SKIPPED]}
    assert raw.put(found(url)) == {url: [SKIPPED]}
    raw.put(known(url, FAR))
    assert raw.status(url).known.refetchable_from_date == FAR


def test_known_overwrites_metadata_and_date(raw: Raw) -> None:
    url = "https://a.example/"
    raw.put(found(url, first=["1"]), known(url, FAR, second=["2"]))
    item = raw.status(url).known
    assert {name: list(values.values) for name, values in item.info.metadata.items()} == {"second": ["2"]}
    raw.put(known(url, 7))
    assert not raw.status(url).known.info.metadata
    assert raw.get(crawlID="DEFAULT") == [url]


def test_creation_dates_stay(raw: Raw) -> None:
    url = "https://a.example/"
    raw.put(found(url))
    created = raw.status(url).creation_date
    raw.put(known(url, FAR))
    raw.put(known(url))
    assert raw.status(url).creation_date == created


# batches


def test_a_batch_has_a_status_for_each_url_in_order(raw: Raw) -> None:
    raw.put(found("https://a.example/known"))
    ack = raw.batch(
        info("https://a.example/1"),
        info("https://a.example/1"),
        info("https://a.example/known"),
        info(""),
        info("https://a.example/2"),
        name="mine",
    )
    assert list(ack.statuses) == [OK, SKIPPED, SKIPPED, SKIPPED, OK]


def test_an_empty_batch_is_acknowledged(raw: Raw) -> None:
    assert list(raw.batch(name="probe").statuses) == []


# queues


def test_pages_of_queues_hold_each_once(raw: Raw) -> None:
    raw.put(*(found(f"https://h{number:02d}.example/", crawl="one") for number in range(25)))
    raw.put(*(found(f"https://h{number:02d}.example/", crawl="two") for number in range(25)))
    raw.put(*(known(f"https://done{number}.example/", crawl="one") for number in range(5)))
    pages = [raw.call("ListQueues", wire.Pagination(start=start, size=10, crawlID="one")) for start in (0, 10, 20)]
    keys = [key for page in pages for key in page.values]
    assert len(keys) == len(set(keys)) == 25
    assert (pages[1].start, pages[1].size, pages[1].crawlID) == (10, 10, "one")
    assert len(raw.call("ListQueues", wire.Pagination(crawlID="one", include_inactive=True)).values) == 30


def test_counts_of_a_queue(raw: Raw) -> None:
    raw.put(found("https://a.example/1"), known("https://a.example/2"), known("https://b.example/3"))
    assert dict(raw.stats("a.example").counts) == {"completed": 1, "active_queues": 1}
    everything = raw.stats()
    assert (everything.size, everything.numberOfQueues) == (1, 2)
    assert dict(everything.counts) == {"completed": 2, "active_queues": 1}
    unknown = raw.stats("no.example")
    assert (unknown.size, unknown.inProcess, unknown.numberOfQueues) == (0, 0, 0)
