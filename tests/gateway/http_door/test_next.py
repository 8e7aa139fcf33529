"""POST /v1/next: the shape of an answer, and what an ask may say."""

from __future__ import annotations

import re
from urllib.parse import quote

import httpx
import pytest
from tests.gateway.http_door.common import (
    FREE,
    TERMS,
    ask,
    done,
    fetched,
    refused,
    tell,
)


def test_an_answer_has_the_shape_of_the_protocol(client: httpx.Client, seeded: str) -> None:
    answer = done(client.post("/v1/next", json=ask(seeded, 3, request_id="r-1")))
    assert answer.keys() >= {"assigned_urls", "deferred", "retry_after_ms", "metadata"}
    assert answer["metadata"].keys() >= {
        "request_id", "crawl_state", "num_queries_completed", "last_model_version", "strategy", "filters_applied",
        "dropped", "degraded",
    }  # fmt: skip


def test_an_assigned_url_has_the_shape_of_the_protocol(client: httpx.Client, seeded: str) -> None:
    (given,) = done(client.post("/v1/next", json=ask(seeded)))["assigned_urls"]
    assert given.keys() >= {
        "url", "kind", "score", "p", "reason", "estimated_fetch_ms", "estimated_bytes", "not_before_ms",
        "lease_expires", "terms",
    }  # fmt: skip
    assert given["terms"].keys() >= TERMS


def test_no_more_is_given_than_was_asked_for(client: httpx.Client, seeded: str) -> None:
    assert len(done(client.post("/v1/next", json=ask(seeded, 3)))["assigned_urls"]) == 3


def test_p_is_a_probability(client: httpx.Client, seeded: str) -> None:
    given = done(client.post("/v1/next", json=ask(seeded, 10)))["assigned_urls"]
    assert given
    assert all(0 <= one["p"] <= 1 for one in given)


def test_the_reason_names_two_terms(client: httpx.Client, seeded: str) -> None:
    (given,) = done(client.post("/v1/next", json=ask(seeded)))["assigned_urls"]
    assert re.fullmatch(r"[a-z_]+\+[a-z_]+", given["reason"])


def test_every_applied_filter_is_named_with_ok(client: httpx.Client, seeded: str) -> None:
    names = done(client.post("/v1/next", json=ask(seeded)))["metadata"]["filters_applied"]
    assert names
    assert all(name.endswith("_ok") for name in names)


def test_the_answer_says_whose_request_it_answers(client: httpx.Client, seeded: str) -> None:
    metadata = done(client.post("/v1/next", json=ask(seeded, request_id="mine")))["metadata"]
    assert metadata["request_id"] == "mine"


def test_the_same_request_gets_the_same_answer(client: httpx.Client, seeded: str) -> None:
    once, again = (done(client.post("/v1/next", json=ask(seeded, 2, request_id="same"))) for _ in range(2))
    assert once == again


def test_the_same_request_with_another_body_is_a_conflict(client: httpx.Client, seeded: str) -> None:
    done(client.post("/v1/next", json=ask(seeded, 1, request_id="same")))
    error = refused(client.post("/v1/next", json=ask(seeded, 2, request_id="same")), 409, "conflict")
    assert error["field"] == "request_id"


def test_seeds_in_an_ask_are_given_out(client: httpx.Client, crawl: str) -> None:
    url = f"https://{crawl}.example/"
    answer = done(client.post("/v1/next", json=ask(crawl, context={"seed_urls": [url]})))
    assert [one["url"] for one in answer["assigned_urls"]] == [url]


def test_history_in_an_ask_counts_as_a_fetch(client: httpx.Client, crawl: str) -> None:
    history = [{"url": "https://example.com/a", "fetch_time": "2025-11-03T14:15:00Z", "status": 200}]
    done(client.post("/v1/next", json=ask(crawl, context={"recent_history": history})))
    assert done(client.get("/v1/stats", params={"crawl_id": crawl}))["crawls"][crawl]["fetches"] == 1


def test_the_whole_example_of_the_protocol_is_understood(client: httpx.Client, crawl: str) -> None:
    context = {
        "seed_urls": ["https://example.com/a"], "domain_hash": None,
        "recent_history": [{"url": "https://example.com/a", "fetch_time": "2025-11-03T14:15:00Z", "status": 200}],
        "historical_yield": {"visited": 120, "new_pages": 85},
        "external_features": {
            "https://example.com/b": {"pagerank": 0.4, "popularity": 0.9, "last_modified": "2025-11-01T00:00:00Z"}
        },
        "metadata": {"crawl_cohort_id": "Q4-2025", "concurrency": 8},
    }  # fmt: skip
    budget = {"max_urls": 30, "max_bytes": 268435456, "timeout_ms": 120000}
    example = ask(crawl, request_id="123e4567-e89b-12d3-a456-426614174000", context=context) | {"budget": budget}
    done(client.post("/v1/next", json=example | {"request_timestamp": "2025-11-03T14:17:31Z"}))


def test_a_crawl_nobody_defined_is_made_by_asking(client: httpx.Client, crawl: str) -> None:
    done(client.post("/v1/next", json=ask(crawl)))
    assert done(client.get(f"/v1/crawls/{crawl}"))["crawl_id"] == crawl


@pytest.mark.parametrize("name", ["a b", "ä", "a?b", "a%2Fb", "a/b"])
def test_asking_makes_a_crawl_only_where_its_path_can_find_it(client: httpx.Client, name: str) -> None:
    made = client.post("/v1/next", json=ask(name)).status_code
    found = client.get("/v1/crawls/" + quote(name, safe="")).status_code
    assert (made, found) in {(200, 200), (400, 404), (400, 400)}


def test_nothing_to_give_is_an_empty_list_and_a_time_to_come_back(client: httpx.Client, crawl: str) -> None:
    answer = done(client.post("/v1/next", json=ask(crawl)))
    assert answer["assigned_urls"] == []
    assert answer["retry_after_ms"] > 0


def test_a_crawl_without_urls_is_exhausted(client: httpx.Client, crawl: str) -> None:
    assert done(client.post("/v1/next", json=ask(crawl)))["metadata"]["crawl_state"] == "exhausted"


def test_a_crawl_with_all_its_urls_on_lease_is_waiting(client: httpx.Client, seeded: str) -> None:
    done(client.post("/v1/next", json=ask(seeded, 10)))
    assert done(client.post("/v1/next", json=ask(seeded)))["metadata"]["crawl_state"] == "waiting"


def test_a_crawl_that_reached_its_limit_is_finished(client: httpx.Client, crawl: str) -> None:
    definition = {"policy": FREE, "limits": {"max_pages": 1}}
    done(client.put(f"/v1/crawls/{crawl}", json=definition), 201)
    done(client.post("/v1/report", json=tell(crawl, fetched("https://a.example/", "https://a.example/b"))))
    assert done(client.post("/v1/next", json=ask(crawl)))["metadata"]["crawl_state"] == "finished"


def test_a_released_url_is_given_out_again(client: httpx.Client, crawl: str) -> None:
    url = f"https://{crawl}.example/"
    done(client.put(f"/v1/crawls/{crawl}", json={"policy": FREE}), 201)
    first = done(client.post("/v1/next", json=ask(crawl, context={"seed_urls": [url]})))
    done(client.post("/v1/report", json=tell(crawl, {"url": url, "error": "released"})))
    second = done(client.post("/v1/next", json=ask(crawl)))
    assert [one["url"] for answer in (first, second) for one in answer["assigned_urls"]] == [url, url]


def test_an_unknown_field_of_an_ask_is_passed_over(client: httpx.Client, crawl: str) -> None:
    done(client.post("/v1/next", json=ask(crawl, from_the_future=1)))
