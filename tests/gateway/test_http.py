"""The HTTP door, endpoint by endpoint, as PROTOCOL.md says: codes, shapes, one form of error, limits, a clean end."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.gateway.conftest import Served

VERSION = "2025-11"
MOST_BYTES = 4 * 1024 * 1024
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
DEFINITION: dict[str, dict[str, Any]] = {
    "goal": {
        "topic": "database internals and SQL", "keywords": ["sql", "index", "transaction"],
        "reference": "free text or sample page", "anti_reference": "",
        "reward": {"relevance": 1.0, "novelty": 0.2, "change": 0.2},
    },
    "strategy": {"kind": "layered"},
    "weights": {"relevance": 1.0, "freshness": 0.5, "authority": 0.3, "cost": 0.2, "politeness": 0.1},
    "policy": {
        "robots": "obey", "user_agent": "crawlguide", "default_delay_s": 1.0, "strict": False, "max_per_host": 5,
        "domain_max_pages": 0, "max_retries": 3, "allow_domains": [], "deny_domains": [], "domain_weights": {},
        "traps": True, "risk_threshold": 0.8, "recrawl": False,
    },
    "limits": {"max_pages": 0, "max_depth": 0, "until": None},
}  # fmt: skip
TERMS = {"relevance", "freshness", "authority", "cost", "politeness", "exploration"}
UNKNOWN = "/v1/crawls/nobody-made-this"
MANY_KEYS = ", ".join(f'"k{number}": 0' for number in range(1_000))


def ask(crawl: str, max_urls: int = 1, **more: Any) -> dict[str, Any]:
    budget = {"max_urls": max_urls}
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": budget} | more


def tell(crawl: str, *fetches: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": list(fetches)} | more


def fetched(url: str, *outlinks: str) -> dict[str, Any]:
    return {"url": url, "status": 200, "outlinks": [{"url": link} for link in outlinks]}


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The one shape of an error; its inside."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    message: dict[str, Any] = answer.json()
    assert message.keys() == {"error"}
    error: dict[str, Any] = message["error"]
    assert error.keys() == {"code", "message", "field", "retry_after_s"}
    assert error["code"] == code
    assert error["message"]
    return error


def done(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    message: dict[str, Any] = answer.json()
    return message


@pytest.fixture
def seeded(client: httpx.Client, crawl: str) -> str:
    """A crawl without pacing that knows ten URLs on two hosts."""
    done(client.put(f"/v1/crawls/{crawl}", json={"policy": FREE}), 201)
    urls = [f"https://{host}.{crawl}.example/{page}" for page in range(5) for host in ("one", "two")]
    assert done(client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": urls}))["discovered"] == 10
    return crawl


# ask


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


# tell


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


# crawls


def test_a_new_crawl_is_created(client: httpx.Client, crawl: str) -> None:
    answer = done(client.put(f"/v1/crawls/{crawl}", json=DEFINITION), 201)
    assert answer["crawl_id"] == crawl


def test_a_known_crawl_is_replaced(client: httpx.Client, seeded: str) -> None:
    answer = done(client.put(f"/v1/crawls/{seeded}", json={"goal": {"topic": "sql"}}), 200)
    assert answer["definition"]["goal"]["topic"] == "sql"


def test_what_a_replacement_leaves_out_returns_to_its_default(client: httpx.Client, seeded: str) -> None:
    answer = done(client.put(f"/v1/crawls/{seeded}", json={}))
    assert answer["definition"]["policy"]["default_delay_s"] == 1.0


def test_a_definition_comes_back_as_it_was_given(client: httpx.Client, crawl: str) -> None:
    done(client.put(f"/v1/crawls/{crawl}", json=DEFINITION), 201)
    definition = done(client.get(f"/v1/crawls/{crawl}"))["definition"]
    shown = {part: {name: definition[part][name] for name in fields} for part, fields in DEFINITION.items()}
    assert shown == DEFINITION


def test_a_deleted_crawl_is_gone(client: httpx.Client, seeded: str) -> None:
    done(client.delete(f"/v1/crawls/{seeded}"))
    refused(client.get(f"/v1/crawls/{seeded}"), 404, "not_found")


def test_all_crawls_are_listed(client: httpx.Client, seeded: str) -> None:
    names = [one["crawl_id"] for one in done(client.get("/v1/crawls"))["crawls"]]
    assert names.count(seeded) == 1


def test_seeds_known_before_are_not_discovered_again(client: httpx.Client, seeded: str) -> None:
    urls = [f"HTTPS://ONE.{seeded}.example:443/0#top", {"url": f"https://one.{seeded}.example/new", "priority": 0.9}]
    assert done(client.post(f"/v1/crawls/{seeded}/seeds", json={"urls": urls}))["discovered"] == 1


def test_a_seed_carries_its_metadata_to_the_crawler(client: httpx.Client, crawl: str) -> None:
    seed = {"url": f"https://{crawl}.example/", "priority": 0.9, "max_depth": 3, "metadata": {"label": "home"}}
    done(client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": [seed]}))
    (given,) = done(client.post("/v1/next", json=ask(crawl)))["assigned_urls"]
    assert given["metadata"] == {"label": "home"}


def test_a_paused_crawl_says_so(client: httpx.Client, seeded: str) -> None:
    assert done(client.post(f"/v1/crawls/{seeded}/pause"))["state"] == "paused"


def test_a_paused_crawl_gives_nothing(client: httpx.Client, seeded: str) -> None:
    client.post(f"/v1/crawls/{seeded}/pause")
    answer = done(client.post("/v1/next", json=ask(seeded)))
    assert (answer["assigned_urls"], answer["metadata"]["crawl_state"]) == ([], "paused")


def test_a_resumed_crawl_gives_again(client: httpx.Client, seeded: str) -> None:
    client.post(f"/v1/crawls/{seeded}/pause")
    assert done(client.post(f"/v1/crawls/{seeded}/resume"))["state"] == "running"
    assert done(client.post("/v1/next", json=ask(seeded)))["assigned_urls"]


# looking in


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


# errors


def test_the_example_error_of_the_protocol_word_for_word(client: httpx.Client, crawl: str) -> None:
    error = refused(client.post("/v1/next", json=ask(crawl, -3)), 400, "malformed_request")
    assert error["message"] == "budget.max_urls: expected an integer from 1 to 10000, got -3"
    assert (error["field"], error["retry_after_s"]) == ("budget.max_urls", None)


@pytest.mark.parametrize("path", ["/v1/next", "/v1/report"])
def test_another_version_is_not_supported(client: httpx.Client, crawl: str, path: str) -> None:
    message = ask(crawl) | tell(crawl) | {"mcp_version": "1999-01"}
    assert refused(client.post(path, json=message), 400, "unsupported_version")["field"] == "mcp_version"


@pytest.mark.parametrize("field", ["mcp_version", "crawler_id", "budget", "budget.max_urls"])
def test_a_field_that_an_ask_lacks_is_named(client: httpx.Client, crawl: str, field: str) -> None:
    message = ask(crawl)
    if field == "budget.max_urls":
        del message["budget"]["max_urls"]
    else:
        del message[field]
    assert refused(client.post("/v1/next", json=message), 400, "malformed_request")["field"] == field


@pytest.mark.parametrize("field", ["mcp_version", "crawler_id", "fetches"])
def test_a_field_that_a_tell_lacks_is_named(client: httpx.Client, crawl: str, field: str) -> None:
    message = tell(crawl)
    del message[field]
    assert refused(client.post("/v1/report", json=message), 400, "malformed_request")["field"] == field


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        ({"goals": {}}, "goals"),
        ({"policy": {"default_delay": 1}}, "policy.default_delay"),
        ({"goal": {"reward": {"novel": 1}}}, "goal.reward.novel"),
        ({"limits": {"max_page": 1}}, "limits.max_page"),
        ({"weights": {"relevanc": 1}}, "weights.relevanc"),
        ({"strategy": {"kind": "no-such-strategy"}}, "strategy.kind"),
        ({"strategy": {"kind": "http.server"}}, "strategy.kind"),
        ({"strategy": {"kind": "."}}, "strategy.kind"),
        ({"limits": {"until": "tomorrow"}}, "limits.until"),
        ({"policy": {"robots": "maybe"}}, "policy.robots"),
    ],
)
def test_what_is_wrong_in_a_definition_is_named(
    client: httpx.Client, crawl: str, definition: dict[str, Any], field: str
) -> None:
    answer = client.put(f"/v1/crawls/{crawl}", json=definition)
    assert refused(answer, 400, "malformed_request")["field"] == field


def test_a_refused_definition_creates_nothing(client: httpx.Client, crawl: str) -> None:
    client.put(f"/v1/crawls/{crawl}", json={"goals": {}})
    refused(client.get(f"/v1/crawls/{crawl}"), 404, "not_found")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"budget": {"max_urls": 10_001}}, "budget.max_urls"),
        ({"budget": {"max_urls": 1.5}}, "budget.max_urls"),
        ({"budget": {"max_urls": "3"}}, "budget.max_urls"),
        ({"budget": {"max_urls": 10**30}}, "budget.max_urls"),
        ({"budget": {"max_urls": 1, "max_bytes": -1}}, "budget.max_bytes"),
        ({"budget": {"max_urls": 1, "timeout_ms": 0}}, "budget.timeout_ms"),
        ({"crawler_id": ""}, "crawler_id"),
        ({"crawler_id": None}, "crawler_id"),
        ({"crawl_id": "x" * 201}, "crawl_id"),
        ({"context": {"domain_hash": "xyz"}}, "context.domain_hash"),
        ({"context": {"seed_urls": [1]}}, "context.seed_urls[0]"),
        ({"context": {"metadata": {"concurrency": 0}}}, "context.metadata.concurrency"),
        ({"context": {"recent_history": [{"status": 200}]}}, "context.recent_history[0].url"),
        ({"context": {"external_features": []}}, "context.external_features"),
    ],
)
def test_what_is_wrong_in_an_ask_is_named(client: httpx.Client, crawl: str, change: dict[str, Any], field: str) -> None:
    assert refused(client.post("/v1/next", json=ask(crawl) | change), 400, "malformed_request")["field"] == field


@pytest.mark.parametrize("features", [{"https://a.example/": []}, {"https://a.example/": {"pagerank": []}}])
def test_features_of_the_wrong_kind_are_refused(client: httpx.Client, crawl: str, features: Any) -> None:
    refused(client.post("/v1/next", json=ask(crawl, context={"external_features": features})), 400, "malformed_request")


@pytest.mark.parametrize(
    ("fetch", "field"),
    [
        ({"status": 200}, "fetches[0].url"),
        ({"url": "https://a.example/", "status": "ok"}, "fetches[0].status"),
        ({"url": "https://a.example/", "error": "tired"}, "fetches[0].error"),
        ({"url": "https://a.example/", "status": 200, "relevance": 1.1}, "fetches[0].relevance"),
        ({"url": "https://a.example/", "status": 200, "outlinks": [{}]}, "fetches[0].outlinks[0].url"),
    ],
)
def test_what_is_wrong_in_a_fetch_is_named(client: httpx.Client, crawl: str, fetch: dict[str, Any], field: str) -> None:
    assert refused(client.post("/v1/report", json=tell(crawl, fetch)), 400, "malformed_request")["field"] == field


def test_a_seed_nobody_can_fetch_is_named(client: httpx.Client, crawl: str) -> None:
    answer = client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": ["https://a.example/", "javascript:alert(1)"]})
    assert refused(answer, 400, "malformed_request")["field"] == "urls[1]"


def test_an_unknown_field_of_a_seed_is_named(client: httpx.Client, crawl: str) -> None:
    answer = client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": [], "url": "https://a.example/"})
    assert refused(answer, 400, "malformed_request")["field"] == "url"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", UNKNOWN),
        ("DELETE", UNKNOWN),
        ("POST", UNKNOWN + "/pause"),
        ("POST", UNKNOWN + "/resume"),
        ("GET", "/v1/stats?crawl_id=nobody-made-this"),
        ("GET", "/v2/next"),
        ("GET", "/v1/crawls/a/b/c"),
    ],
)
def test_what_is_not_there_is_not_found(client: httpx.Client, method: str, path: str) -> None:
    refused(client.request(method, path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/next", {"POST"}),
        ("DELETE", "/v1/report", {"POST"}),
        ("POST", "/v1/crawls/a", {"GET", "PUT", "PATCH", "DELETE"}),
        ("POST", "/v1/stats", {"GET"}),
        ("POST", "/healthz", {"GET"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(client: httpx.Client, method: str, path: str, allowed: set[str]) -> None:
    answer = client.request(method, path)
    refused(answer, 405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) - {"HEAD"} == allowed


def test_a_name_of_201_characters_in_a_path_is_refused(client: httpx.Client) -> None:
    assert refused(client.get("/v1/crawls/" + "x" * 201), 400, "malformed_request")["field"] == "crawl_id"


# limits


def body(crawl: str, member: str) -> bytes:
    """An ask with one more member, written by hand."""
    return json.dumps(ask(crawl))[:-1].encode() + b", " + member.encode() + b"}"


def test_a_body_of_just_four_mebibytes_is_read(client: httpx.Client, crawl: str) -> None:
    message = body(crawl, '"filler": ""')
    message = message[:-2] + b"x" * (MOST_BYTES - len(message)) + message[-2:]
    assert len(message) == MOST_BYTES
    done(client.post("/v1/next", content=message))


def test_a_body_over_four_mebibytes_is_too_large(client: httpx.Client) -> None:
    refused(client.post("/v1/next", content=b" " * (MOST_BYTES + 1)), 413, "too_large")


def test_a_chunked_body_over_four_mebibytes_is_too_large(client: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(4):
            yield b" " * (MOST_BYTES // 4)
        yield b" "

    refused(client.post("/v1/next", content=pieces()), 413, "too_large")


def test_a_declared_length_that_is_too_large_is_refused_before_the_body_comes(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as line:
        line.sendall(f"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MOST_BYTES + 1}\r\n\r\n".encode())
        assert line.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_thirty_two_levels_are_read(client: httpx.Client, crawl: str) -> None:
    done(client.post("/v1/next", content=body(crawl, '"context": {"metadata": {"x": ' + "[" * 29 + "]" * 29 + "}}")))


@pytest.mark.parametrize(
    "member",
    [
        pytest.param('"context": {"metadata": {"x": ' + "[" * 30 + "]" * 30 + "}}", id="33 levels"),
        pytest.param('"future": ' + "[" * 100_000 + "]" * 100_000, id="100001 levels"),
        pytest.param(
            '"context": {"metadata": {"\\n": ' + "[" * 30 + "]" * 30 + "}}", id="33 levels after an escaped key"
        ),
        pytest.param('"future": {' + MANY_KEYS + ', "x": ' + "[" * 31 + "]" * 31 + "}", id="33 levels after many keys"),
        pytest.param('"future": {' + MANY_KEYS + ', "k0": 0}', id="a key twice among many"),
        pytest.param('"crawler_id": "c-2"', id="a key twice"),
        pytest.param('"context": {"metadata": {"a": 1, "a": 1}}', id="a key twice in metadata"),
        pytest.param('"context": {"metadata": {"a": 1, "\\u0061": 1}}', id="a key twice, once escaped"),
        pytest.param('"context": {"metadata": {"\\u0061": 1, "a": 1}}', id="a key twice, escaped first"),
        pytest.param('"context": {"metadata": {"\\n": 0, "x": {"b": 1, "b": 1}}}', id="a key twice after an escape"),
        pytest.param('"future": {"a": 1, "a": 2}', id="a key twice in an unknown field"),
        *(
            pytest.param(text.replace("VALUE", value), id=f"{value} in {where}")
            for value in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"\\ud800"', '"\\udc00\\ud800"')
            for where, text in (
                ("metadata", '"context": {"metadata": {"x": VALUE}}'),
                ("an unknown field", '"future": VALUE'),
                ("an unknown field after a fault", '"request_id": 1, "future": VALUE'),
            )
            if not (value.endswith("1e999") and where == "an unknown field")  # legal JSON that nobody reads
        ),
        pytest.param('"request_id": "\\ud800"', id="half a surrogate pair in request_id"),
        pytest.param('"context": {"metadata": {"\\ud800": 1}}', id="half a surrogate pair in a key"),
        pytest.param('"future": 1,', id="a comma too many"),
        pytest.param('"future": 1} trailing {"x": 1', id="something after the end"),
        pytest.param('"request_id": 1} trailing {"x": 1', id="something after the end, and a fault"),
    ],
)
def test_what_json_or_the_protocol_forbids_is_refused(client: httpx.Client, crawl: str, member: str) -> None:
    refused(client.post("/v1/next", content=body(crawl, member)), 400, "malformed_request")


@pytest.mark.parametrize(
    "text",
    [b"", b"null", b"[]", b"3", b'"ask"', b"{", b"[1, 2", b"\xff", b"9~\xff", b'{"mcp_version": 1', b"\xef\xbb\xbf{}"],
)
@pytest.mark.parametrize("path", ["/v1/next", "/v1/report", "/v1/crawls/x/seeds"])
def test_a_body_that_is_no_message_is_refused(client: httpx.Client, path: str, text: bytes) -> None:
    refused(client.post(path, content=text), 400, "malformed_request")


# beginning and end


def test_a_request_in_flight_is_answered_before_the_end(own_server: Served) -> None:
    message = json.dumps(ask("default")).encode()
    head = f"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(message)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", own_server.port), timeout=10) as line:
        line.sendall(head + message[:10])
        time.sleep(0.3)  # so that the server has begun to read
        own_server.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 5
        while "stopping" not in own_server.said() and time.monotonic() < until:
            time.sleep(0.02)
        line.sendall(message[10:])
        assert line.recv(65_536).startswith(b"HTTP/1.1 200 ")
    assert own_server.process.wait(15) == 0


def test_a_server_told_to_stop_takes_no_new_connections(own_server: Served) -> None:
    assert own_server.stop() == 0
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", own_server.port), timeout=5):
        pass


def test_an_idle_connection_does_not_hold_up_the_end(own_server: Served) -> None:
    with httpx.Client(base_url=own_server.url, trust_env=False) as client:
        done(client.get("/healthz"))
        began = time.monotonic()
        assert own_server.stop() == 0
        assert time.monotonic() - began < 5


def test_ctrl_c_ends_the_server_cleanly(own_server: Served) -> None:
    assert own_server.stop(signal.SIGINT) == 0
    assert "Traceback" not in own_server.said()


def test_a_taken_port_is_named(command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = command("serve", "--port", port)
    assert ended.returncode == 2
    assert port in ended.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["serve", "--prot", "1"], "--prot"),
        (["serve", "--port", "many"], "--port"),
        (["serve", "--port", "70000"], "server.port"),
        (["serve", "--host", "0.0.0.0"], "server.host"),
        (["serve", "--config", "no-such.toml"], "no-such.toml"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_wrong_usage_is_named_and_ends_with_two(
    command: Callable[..., subprocess.CompletedProcess[str]], words: list[str], named: str
) -> None:
    ended = command(*words)
    assert ended.returncode == 2
    assert named in re.sub(r"\x1b\[[0-9;]*m", "", ended.stderr)
    assert "Traceback" not in ended.stderr
