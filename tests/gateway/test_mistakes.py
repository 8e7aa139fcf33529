"""Whoever mistypes is told what to do: the nearest name, the right place, what was expected."""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.gateway.conftest import SCRIPT

from crawlguide.core import config
from crawlguide.core.errors import ConfigError, MalformedRequest, UrlError
from crawlguide.core.messages import crawl_id
from crawlguide.core.urls import canonical
from crawlguide.gateway.listener import bound

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

ASK = {"mcp_version": "2025-11", "crawler_id": "me"}


def message(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status
    text: str = answer.json()["error"]["message"]
    return text


def test_the_name_of_a_crawl_is_refused_in_words_and_not_as_a_pattern() -> None:
    with pytest.raises(MalformedRequest) as wrong:
        crawl_id("a/b")
    assert wrong.value.message == "crawl_id: expected text of 1 to 200 characters without slash, got 'a/b'"


def test_a_bus_that_cannot_be_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    env = os.environ | {"CRAWLGUIDE_BUS_KAFKA": "kafka://127.0.0.1:9092"}
    command = [str(SCRIPT), "serve", "--port", "0", "--data", str(tmp_path / "data")]
    ended = subprocess.run(command, capture_output=True, text=True, env=env, timeout=100, check=False)
    assert (ended.returncode, "bus.kafka: expected HOST:PORT" in ended.stderr) == (2, True), ended.stderr
    assert not (tmp_path / "data").exists()


def test_a_mistyped_crawl_gets_the_nearest_name(client: httpx.Client, crawl: str) -> None:
    client.put(f"/v1/crawls/{crawl}-books", json={})
    for answer in (client.get(f"/v1/crawls/{crawl}-bokos"), client.delete(f"/v1/crawls/{crawl}-bokos")):
        expected = f"crawl_id: no crawl named '{crawl}-bokos'; did you mean '{crawl}-books'?"
        assert message(answer, 404) == expected


def test_a_name_like_no_other_gets_no_hint(client: httpx.Client) -> None:
    assert message(client.get("/v1/crawls/zzzzzzzz"), 404) == "crawl_id: no crawl named 'zzzzzzzz'"


def test_a_mistyped_parameter_is_refused_before_anything_is_done(client: httpx.Client) -> None:
    client.post("/v1/crawls/default/seeds", json={"urls": ["https://parameters.example/"]})
    told = message(client.delete("/v1/urls", params={"crawl": "books", "host": "parameters.example"}), 400)
    assert told == "crawl: unknown parameter; expected one of crawl_id, state, host"
    assert client.get("/v1/urls", params={"host": "parameters.example"}).json()["urls"]


def test_a_mistyped_field_that_is_needed_is_recognised(client: httpx.Client) -> None:
    told = message(client.post("/v1/next", json={**ASK, "budget": {"max_url": 1}}), 400)
    assert told == "budget.max_urls: required, but missing; did you mean it by 'max_url'?"


AUTO, NAME, NUMBER = 'a number from 0 or "auto"', "a name of 1 to 253 characters", "a number from 0 to 100"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"policy": {"slow_domain_ms": "x"}}, f'policy.slow_domain_ms: expected {AUTO}, got "x"'),
        ({"policy": {"slow_domain_ms": -1}}, f"policy.slow_domain_ms: expected {AUTO}, got -1"),
        ({"policy": {"deny_domains": ["a.org", 7]}}, f"policy.deny_domains[1]: expected {NAME}, got 7"),
        ({"policy": {"traps": 7}}, "policy.traps: expected true or false, got 7"),
        ({"weights": {"cost": "x"}}, 'weights.cost: expected a number from -100 to 100, got "x"'),
        (
            {"rules": {"priority": {"hosts": {"a": 1, "b": -2}}}},
            f"rules.priority.hosts[...]: expected {NUMBER}, got -2",
        ),
        ({"strategy": {"kind": "tres", "slow_domain_ms": "x"}}, "strategy.slow_domain_ms: expected a number above 0"),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_expected_and_what_came(
    client: httpx.Client, crawl: str, body: dict[str, object], expected: str
) -> None:
    assert message(client.put(f"/v1/crawls/{crawl}", json=body), 400).startswith(expected)


def test_a_body_that_is_no_object_is_said_to_be(client: httpx.Client) -> None:
    assert message(client.post("/v1/next", json=[]), 400) == "body: expected a JSON object, got []"


def test_methods_are_named_in_order(client: httpx.Client) -> None:
    answer = client.post("/v1/crawls/books", json={})
    methods = "DELETE, GET, HEAD, PATCH, PUT"
    assert message(answer, 405) == f"POST is not a method of /v1/crawls/books; expected {methods}"
    assert answer.headers["allow"] == methods


def test_a_socket_opened_as_a_page_is_told_how(client: httpx.Client) -> None:
    assert message(client.get("/ws"), 404) == "no such page: /ws; it is for WebSockets: connect with ws://"


@pytest.mark.parametrize("typed", ["example.com", "www.example.com/a?b", "127.0.0.1/x"])
def test_an_address_without_its_scheme_is_recognised(typed: str) -> None:
    with pytest.raises(UrlError, match="did you mean 'https://"):
        canonical(typed)


def test_a_port_that_is_taken_is_told_how_to_get_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="0 picks a free one"):
        bound("127.0.0.1", taken.getsockname()[1])


def test_what_a_key_expects_is_said_once() -> None:
    with pytest.raises(ConfigError) as wrong:
        config.load(None, {}, {"server.port": "x"})
    assert wrong.value.message == "flag for server.port: server.port: expected an integer from 0 to 65535, got 'x'"


def test_one_of_several_words_is_said_with_all_of_them() -> None:
    with pytest.raises(ConfigError, match=r"server\.log_format: expected one of text, json, got 'jsno'"):
        config.load(None, {"CRAWLGUIDE_SERVER_LOG_FORMAT": "jsno"})
    with pytest.raises(ConfigError, match=r"select\.slow_domain_ms: expected a number from 0 .* or \"auto\", got 'x'"):
        config.load(None, {"CRAWLGUIDE_SELECT_SLOW_DOMAIN_MS": "x"})
