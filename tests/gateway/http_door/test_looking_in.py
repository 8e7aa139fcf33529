"""Statistics, health and the documents that describe the door."""

from __future__ import annotations

import httpx
import pytest
from tests.gateway.http_door.common import (
    ask,
    done,
)


def test_stats_have_the_shape_of_the_protocol(client: httpx.Client, seeded: str) -> None:
    stats = done(client.get("/v1/stats"))
    assert stats.keys() >= {"version", "uptime_s", "num_queries_completed", "crawls"}
    assert stats["crawls"][seeded].keys() >= {
        "state", "strategy", "queued", "leased", "done", "dropped", "hosts", "asks", "assigned", "fetches", "failed",
        "relevant", "discovered", "learner",
    }  # fmt: skip


def test_stats_of_one_crawl_hold_no_other(client: httpx.Client, seeded: str) -> None:
    assert done(client.get("/v1/stats", params={"crawl_id": seeded}))["crawls"].keys() == {seeded}


def test_stats_count_what_was_asked_and_given(client: httpx.Client, seeded: str) -> None:
    done(client.post("/v1/next", json=ask(seeded, 3)))
    stats = done(client.get("/v1/stats", params={"crawl_id": seeded}))["crawls"][seeded]
    names = ("asks", "assigned", "leased", "queued", "discovered", "hosts")
    assert [stats[name] for name in names] == [1, 3, 3, 7, 10, 2]


def test_an_answered_ask_is_a_completed_query(client: httpx.Client, seeded: str) -> None:
    before = done(client.get("/v1/stats"))["num_queries_completed"]
    done(client.post("/v1/next", json=ask(seeded)))
    assert done(client.get("/v1/stats"))["num_queries_completed"] == before + 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_server_that_runs_is_alive_and_ready(client: httpx.Client, path: str) -> None:
    done(client.get(path))


def test_the_openapi_document_is_served(client: httpx.Client) -> None:
    assert done(client.get("/openapi.json"))["openapi"].startswith("3.")


def test_a_page_of_very_long_urls_holds_fewer_of_them(client: httpx.Client, crawl: str) -> None:
    known = [f"https://h{number}.example/{'x' * 8_000}" for number in range(1_200)]
    for first in range(0, len(known), 400):
        done(client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": known[first : first + 400]}))
    wanted: dict[str, str | int] = {"crawl_id": crawl, "limit": 10_000}
    first_page = done(client.get("/v1/urls", params=wanted))
    rest = done(client.get("/v1/urls", params=wanted | {"cursor": first_page["cursor"]}))
    assert (len(first_page["urls"]), len(rest["urls"]), rest["cursor"]) == (1_000, 200, None)
    assert sorted(one["url"] for page in (first_page, rest) for one in page["urls"]) == sorted(known)
