"""POST /v1/report: what is accepted, item by item."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.gateway.http_door.common import (
    ask,
    done,
    fetched,
    refused,
    tell,
)


def test_an_acknowledgement_has_the_shape_of_the_protocol(client: httpx.Client, crawl: str) -> None:
    page = fetched("https://example.com/b", "https://example.com/d")
    assert done(client.post("/v1/report", json=tell(crawl, page))) == {
        "accepted": 1, "discovered": 1, "truncated": 0, "results": [{"url": "https://example.com/b", "status": "ok"}],
    }  # fmt: skip


def test_a_bad_url_inside_a_good_report_is_skipped_alone(client: httpx.Client, crawl: str) -> None:
    good, bad = fetched("https://example.com/"), fetched("ftp://example.com/")
    results = done(client.post("/v1/report", json=tell(crawl, bad, good)))["results"]
    assert [result["status"] for result in results] == ["skip", "ok"]


def test_a_skip_says_why(client: httpx.Client, crawl: str) -> None:
    (result,) = done(client.post("/v1/report", json=tell(crawl, fetched("mailto:somebody"))))["results"]
    assert "http" in result["reason"]


def test_the_same_report_told_twice_counts_once(client: httpx.Client, crawl: str) -> None:
    for _ in range(2):
        done(client.post("/v1/report", json=tell(crawl, fetched("https://a.example/"), report_id="once")))
    assert done(client.get("/v1/stats", params={"crawl_id": crawl}))["crawls"][crawl]["fetches"] == 1


def test_the_same_report_id_with_another_body_is_a_conflict(client: httpx.Client, crawl: str) -> None:
    done(client.post("/v1/report", json=tell(crawl, fetched("https://a.example/"), report_id="once")))
    other = client.post("/v1/report", json=tell(crawl, fetched("https://b.example/"), report_id="once"))
    assert refused(other, 409, "conflict")["field"] == "report_id"


def test_a_fetch_of_the_same_url_at_the_same_time_counts_once(client: httpx.Client, crawl: str) -> None:
    page = fetched("https://a.example/") | {"fetch_time": "2025-11-03T14:18:02Z"}
    for _ in range(2):
        done(client.post("/v1/report", json=tell(crawl, page)))
    assert done(client.get("/v1/stats", params={"crawl_id": crawl}))["crawls"][crawl]["fetches"] == 1


def test_outlinks_over_ten_thousand_are_counted_as_truncated(client: httpx.Client, crawl: str) -> None:
    page = fetched("https://a.example/", *(f"/{number}" for number in range(10_003)))
    ack = done(client.post("/v1/report", json=tell(crawl, page)))
    assert (ack["discovered"], ack["truncated"]) == (10_000, 3)


@pytest.mark.parametrize(
    ("fetch", "known"),
    [
        ({"url": "https://a.example/", "status": 200}, 1),
        ({"url": "https://a.example/", "status": 404}, 1),
        ({"url": "https://a.example/", "status": 200, "redirected_to": "https://b.example/"}, 2),
    ],
    ids=["a page", "a dead link", "a redirect"],
)
def test_what_was_fetched_without_being_discovered_is_known_and_done(
    client: httpx.Client, crawl: str, fetch: dict[str, Any], known: int
) -> None:
    done(client.post("/v1/report", json=tell(crawl, fetch)))
    stats = done(client.get("/v1/stats", params={"crawl_id": crawl}))["crawls"][crawl]
    assert (stats["done"], stats["discovered"]) == (known, known)


def test_metadata_of_an_outlink_comes_back_with_it(client: httpx.Client, crawl: str) -> None:
    metadata = {"label": "product", "nested": {"list": [1, 2.5, None, True, "ß"]}}
    page = fetched(f"https://{crawl}.example/") | {"outlinks": [{"url": "/next", "metadata": metadata}]}
    done(client.post("/v1/report", json=tell(crawl, page)))
    (given,) = done(client.post("/v1/next", json=ask(crawl)))["assigned_urls"]
    assert given["metadata"] == metadata
