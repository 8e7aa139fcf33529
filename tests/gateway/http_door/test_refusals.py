"""One form of error, whatever is wrong."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.gateway.http_door.common import (
    UNKNOWN,
    ask,
    refused,
    tell,
)


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


def test_a_path_with_a_slash_too_much_leads_to_the_one_without(client: httpx.Client) -> None:
    answer = client.get("/v1/crawls/?limit=1")
    assert (answer.status_code, answer.headers["location"]) == (307, str(client.base_url.join("/v1/crawls?limit=1")))
    refused(client.get("/v1/nothing/"), 404, "not_found")


def test_a_name_in_a_path_may_be_escaped(client: httpx.Client, crawl: str) -> None:
    client.put(f"/v1/crawls/{crawl}", json={}).raise_for_status()
    assert client.get(f"/v1/crawls/%{ord(crawl[0]):02x}{crawl[1:]}").json()["crawl_id"] == crawl
    refused(client.get("/v1/crawls/a%2Fb"), 404, "not_found")
