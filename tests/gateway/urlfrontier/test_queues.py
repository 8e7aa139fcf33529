"""Leases, delays, blocks, limits and dates: what is given when."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from tests.gateway.urlfrontier.common import OK, SKIPPED, Raw, found, info, known, refused, until

from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire

FAR = 4_000_000_000


def fill(raw: Raw, hosts: int = 1, pages: int = 5, crawl: str = "") -> None:
    raw.put(*(found(f"https://h{host}.example/{page}", crawl=crawl) for host in range(hosts) for page in range(pages)))


def test_so_many_queues_and_so_many_of_each(raw: Raw) -> None:
    fill(raw, hosts=4)
    infos = raw.infos(max_queues=2, max_urls_per_queue=3, crawlID="DEFAULT")
    assert len(infos) == 6
    assert len({one.key for one in infos}) == 2
    assert len(raw.infos(max_queues=10, max_urls_per_queue=10, crawlID="DEFAULT")) == 10  # the other two


def test_no_limit_means_all(raw: Raw) -> None:
    fill(raw, hosts=40, pages=40)
    assert len(set(raw.get())) == 1_600


def test_a_queue_is_left_alone_for_its_delay(raw: Raw) -> None:
    fill(raw)
    raw.call("SetDelay", wire.QueueDelayParams(key="h0.example", delay_requestable=2))
    wanted: dict[str, Any] = {"max_urls_per_queue": 1, "crawlID": "DEFAULT", "delay_requestable": 1}
    began = time.monotonic()
    assert len(raw.get(**wanted)) == 1
    assert raw.get(**wanted) == []
    until(lambda: raw.get(**wanted))
    assert time.monotonic() - began >= 2


def test_without_a_delay_there_is_no_pause(raw: Raw) -> None:
    raw.call("SetDelay", wire.QueueDelayParams(delay_requestable=0))
    fill(raw)
    given = [raw.get(max_urls_per_queue=2 + number, max_queues=1) for number in range(3)]
    assert [len(some) for some in given] == [2, 3, 0]


def test_the_usual_delay_is_a_second_for_all_queues(raw: Raw) -> None:
    fill(raw, pages=30)
    assert len(raw.get(max_urls_per_queue=10)) == 10
    assert raw.get(max_urls_per_queue=30) == []
    assert len(until(lambda: raw.get(max_urls_per_queue=30))) == 20


def test_a_served_queue_is_skipped_while_enough_is_in_process(raw: Raw) -> None:
    raw.call("SetDelay", wire.QueueDelayParams(delay_requestable=0))
    fill(raw)
    assert len(raw.get(max_urls_per_queue=2)) == 2
    assert raw.get(max_urls_per_queue=2) == []
    assert len(raw.get(max_urls_per_queue=3)) == 3


def test_many_clients_at_once_get_each_url_once(raw: Raw) -> None:
    raw.call("SetDelay", wire.QueueDelayParams(delay_requestable=0))
    fill(raw, hosts=20, pages=10)
    with ThreadPoolExecutor(8) as threads:
        jobs = [threads.submit(raw.get, max_queues=3, max_urls_per_queue=10, crawlID="DEFAULT") for _ in range(10)]
        urls = [url for job in jobs for url in job.result()]
    assert len(urls) == len(set(urls)) == 200


def test_a_lease_comes_back(raw: Raw) -> None:
    fill(raw, pages=1)
    began = time.monotonic()
    assert raw.get(delay_requestable=2) == ["https://h0.example/0"]
    until(lambda: raw.get(delay_requestable=2))
    assert time.monotonic() - began >= 2


def test_done_ends_a_lease(raw: Raw) -> None:
    fill(raw, pages=2)
    given = raw.get(max_urls_per_queue=1)
    raw.put(known(given[0]))
    stats = raw.stats()
    assert (stats.size, stats.inProcess, stats.counts["completed"]) == (1, 0, 1)


def test_a_date_in_the_future_waits(raw: Raw) -> None:
    raw.put(known("https://a.example/", int(time.time()) + 2))
    assert raw.get() == []
    assert until(raw.get) == ["https://a.example/"]


def test_dates_come_before_what_was_discovered(raw: Raw) -> None:
    fill(raw, pages=3)
    now = int(time.time())
    raw.put(*(known(f"https://h0.example/dated-{age}", now - age) for age in (5, 500, 50)))
    urls = raw.get(key="h0.example", crawlID="DEFAULT")
    assert urls[:3] == [f"https://h0.example/dated-{age}" for age in (500, 50, 5)]
    assert len(urls) == 6


def test_a_blocked_queue_gives_nothing(raw: Raw) -> None:
    fill(raw)
    now = int(time.time())
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="h0.example", time=now + 100))
    assert raw.get() == raw.get(key="h0.example", crawlID="DEFAULT") == []
    assert list(raw.call("ListQueues", wire.Pagination()).values) == []
    assert list(raw.call("ListQueues", wire.Pagination(include_inactive=True)).values) == ["h0.example"]
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="h0.example"))
    assert len(raw.get()) == 5


def test_a_queue_is_blocked_to_the_end_of_the_second(raw: Raw) -> None:
    fill(raw)
    until(lambda: time.time() % 1 < 0.5)
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="h0.example", time=int(time.time())))
    blocked_until = int(time.time()) + 1
    given = until(raw.get)
    assert time.time() >= blocked_until
    assert len(given) == 5


def test_unknown_queues_are_set_without_a_word_except_their_limit(raw: Raw) -> None:
    fill(raw)
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="no.example", time=FAR))
    raw.call("SetDelay", wire.QueueDelayParams(key="no.example", delay_requestable=9))
    raw.call("SetDelay", wire.QueueDelayParams(key="no.example", crawlID="no", delay_requestable=9))
    for crawl in ("", "no"):
        with refused(grpc.StatusCode.UNKNOWN):
            raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="no.example", limit=1, crawlID=crawl))
    assert raw.call("DeleteQueue", wire.QueueWithinCrawlParams(key="no.example")).value == 0
    raw.put(found("https://no.example/"))
    assert "https://no.example/" in raw.get()


def test_a_queue_that_is_full_gives_nothing_until_its_limit_is_lifted(raw: Raw) -> None:
    raw.call("SetDelay", wire.QueueDelayParams(delay_requestable=0))
    fill(raw)
    raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="h0.example", limit=2))
    raw.put(*map(known, raw.get(max_urls_per_queue=2)))
    assert raw.get() == raw.get(key="h0.example", crawlID="DEFAULT") == []
    raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="h0.example", limit=3))
    raw.put(*map(known, raw.get(max_urls_per_queue=1)))
    assert raw.get() == []
    raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="h0.example"))
    assert len(raw.get()) == 2


def test_a_queue_is_full_no_longer_when_less_of_it_is_done(raw: Raw) -> None:
    raw.call("SetDelay", wire.QueueDelayParams(delay_requestable=0))
    done, other, now = "https://a.example/done", "https://a.example/other", int(time.time())
    raw.put(known(done), found(other))
    raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="a.example", limit=1))
    assert raw.get() == []
    raw.put(known(done, now - 5))  # it is wanted again
    assert raw.get(max_urls_per_queue=1) == [done]
    raw.put(known(done))
    assert raw.get() == []
    until(lambda: raw.call("PurgeURLs", wire.PurgeUrlParams()).value)
    raw.put(found(other))
    assert raw.get() == [other]


def test_what_was_set_goes_with_the_queue(raw: Raw) -> None:
    fill(raw)
    raw.call("SetCrawlLimit", wire.CrawlLimitParams(key="h0.example", limit=1))
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="h0.example", time=FAR))
    raw.put(known("https://h0.example/0"))
    assert raw.call("DeleteQueue", wire.QueueWithinCrawlParams(key="h0.example")).value == 4
    raw.put(known("https://h0.example/0"), found("https://h0.example/1"))
    assert raw.get() == ["https://h0.example/1"]


def test_what_was_set_goes_with_the_crawl(raw: Raw) -> None:
    fill(raw)
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="h0.example", time=FAR))
    assert raw.call("DeleteCrawl", wire.DeleteCrawlMessage()).value == 5
    fill(raw)
    assert len(raw.get()) == 5


def test_leased_urls_go_with_their_queue(raw: Raw) -> None:
    fill(raw)
    raw.get(max_urls_per_queue=2)
    assert raw.call("DeleteQueue", wire.QueueWithinCrawlParams(key="h0.example")).value == 5
    stats = raw.stats()
    assert (stats.size, stats.inProcess, stats.numberOfQueues) == (0, 0, 0)


def test_nothing_is_given_while_inactive_and_all_is_taken(raw: Raw) -> None:
    assert raw.call("GetActive", wire.Local()).state
    raw.call("SetActive", wire.Active(state=False))
    fill(raw)
    assert not raw.call("GetActive", wire.Local()).state
    assert raw.get() == []
    raw.call("SetActive", wire.Active(state=True))
    assert len(raw.get()) == 5


def test_any_crawl_will_do(raw: Raw) -> None:
    for crawl in ("one", "two", "three"):
        fill(raw, hosts=2, pages=1, crawl=crawl)
    infos = raw.infos(anyCrawlID=wire.AnyCrawlID(), max_queues=5)
    assert len(infos) == 5
    rest = raw.infos(max_queues=5)
    assert len(rest) == 1
    assert {one.crawlID for one in [*infos, *rest]} == {"one", "two", "three"}


def test_very_many_queues_are_given_each_once_however_much_of_each_is_wanted(raw: Raw) -> None:
    urls = [f"https://h{number % 1_200}.example/{number}" for number in range(3_600)]
    list(raw.call("PutDiscovered", iter([wire.DiscoveredBatch(items=[info(url) for url in urls])])))
    given = [item.url for item in raw.call("GetURLs", wire.GetParams(crawlID="DEFAULT"))]
    assert sorted(given) == sorted(urls)


def test_a_key_without_a_crawl_gives_nothing(raw: Raw) -> None:
    fill(raw)
    assert raw.get(key="h0.example") == []
    assert len(raw.get(key="h0.example", crawlID="")) == 5  # as the crawl DEFAULT


def test_old_urls_are_purged(raw: Raw) -> None:
    fill(raw)
    raw.put(known("https://h0.example/0"))
    raw.get(max_urls_per_queue=1)
    assert raw.call("PurgeURLs", wire.PurgeUrlParams(days=1)).value == 0
    assert raw.call("PurgeURLs", wire.PurgeUrlParams(days=0)).value == 4  # one is held
    assert raw.call("CountURLs", wire.CountUrlParams()).value == 1


def test_what_was_held_is_purged_when_its_lease_has_ended(raw: Raw) -> None:
    fill(raw)
    assert len(raw.get(delay_requestable=1)) == 5
    time.sleep(1.1)
    assert raw.call("PurgeURLs", wire.PurgeUrlParams()).value == 5


@pytest.mark.parametrize(
    "key", ["_DEFAULT_", "with blank", "100%", "ünï.example", "a/b", "x" * 255, "..", "[", "1.2.3.4:5"]
)
def test_a_client_names_its_queues_as_it_likes(raw: Raw, key: str) -> None:
    assert list(raw.put(found("https://a.example/x", key)).values()) == [[OK]]
    assert raw.get(key=key, crawlID="DEFAULT") == ["https://a.example/x"]
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key=key, time=FAR))
    assert list(raw.call("ListQueues", wire.Pagination(include_inactive=True)).values) == [key]


def test_the_same_url_waits_in_several_queues(raw: Raw) -> None:
    url = "https://a.example/x"
    keys = ["a.example", "example", "_DEFAULT_"]
    assert raw.put(*(found(url, key, name=key) for key in keys)) == {key: [OK] for key in keys}
    assert sorted(one.key for one in raw.infos()) == sorted(keys)
    raw.put(known(url, key="example"))
    assert raw.stats().counts["completed"] == 1


SPELLED = ["HTTP://Example.COM/a/../b", "https://example.com", "https://example.com/#part", "http://example.com:80/x y"]


def test_urls_and_metadata_are_kept_as_they_are_spelled(raw: Raw) -> None:
    raw.put(*(found(url, "k", note=[" blank ", "", "ünï\u2028"]) for url in SPELLED))
    infos = raw.infos()
    assert sorted(one.url for one in infos) == sorted(SPELLED)
    assert all(list(one.metadata["note"].values) == [" blank ", "", "ünï\u2028"] for one in infos)
    raw.put(*(known(url, key="k") for url in SPELLED))
    assert raw.stats().size == 0


@pytest.mark.parametrize(
    "item",
    [
        wire.URLItem(),
        found(""),
        found("http:///path"),
        found("https://a.example/", "x" * 256),
        known("", key="k"),
        found("https://a.example/" + "x" * 9_000),
        found("https://a.example/", big=["x" * 70_000]),
    ],
)
def test_what_is_of_no_use_is_skipped(raw: Raw, item: wire.URLItem) -> None:
    item.ID = "mine"
    assert raw.put(item, found("https://good.example/", name="good")) == {"mine": [SKIPPED], "good": [OK]}


def test_an_acknowledgement_names_the_id_or_the_url(raw: Raw) -> None:
    assert raw.put(found("https://a.example/", name="x"), known("https://b.example/")) == {
        "x": [OK],
        "https://b.example/": [OK],
    }


def test_a_node_is_where_it_answers(raw: Raw) -> None:
    assert list(raw.call("ListNodes", wire.Empty()).values) == [f"127.0.0.1:{raw.port}"]


def test_batches_over_many_queues(raw: Raw) -> None:
    ack = raw.batch(*(info(f"https://h{number % 50}.example/{number}") for number in range(3_000)))
    assert list(ack.statuses) == [OK] * 3_000
    assert raw.stats().numberOfQueues == 50
