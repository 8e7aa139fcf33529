"""Hostile bytes from ../shared/corpora at the HTTP door: answered or refused, never a fault of ours."""

from __future__ import annotations

import base64
import json
import re
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    from tests.gateway.conftest import Served

CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"
VERSION = "2025-11"
ANSWERS_WITHIN_S = 5.0
QUIET_S = 0.25
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}

pytestmark = pytest.mark.skipif(not CORPORA.is_dir(), reason=f"the corpora are not here: {CORPORA}")


def rows(name: str) -> list[dict[str, Any]]:
    path = CORPORA / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def named(cases: list[dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(base64.b64decode(case["b64"]), id=f"{number}-{case['name']}") for number, case in enumerate(cases)
    ]


JSON_CASES = rows("json_cases.jsonl")
BY_VERDICT = {word: [case for case in JSON_CASES if case["expect"] == word] for word in ("reject", "accept", "either")}
STRINGS: list[str] = [row["s"] for row in rows("naughty_strings.jsonl")]
REPEATS_A_KEY = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}
PLAIN = [case for case in BY_VERDICT["accept"] if case["name"] not in REPEATS_A_KEY]


def ask(crawl: str, **more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": 1}} | more


def tell(crawl: str, **more: Any) -> dict[str, Any]:
    fetch = {"url": "https://a.example/", "status": 200} | more
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": [fetch]}


def with_hole(message: dict[str, Any], filling: bytes) -> bytes:
    """The message as JSON, with raw bytes where it says HOLE."""
    return json.dumps(message).encode().replace(b'"HOLE"', filling)


# JSON


@pytest.mark.parametrize("path", ["/v1/next", "/v1/report"])
@pytest.mark.parametrize("body", named(BY_VERDICT["reject"]))
def test_what_is_not_json_is_refused(client: httpx.Client, path: str, body: bytes) -> None:
    assert client.post(path, content=body).status_code == 400


@pytest.mark.parametrize("path", ["/v1/next", "/v1/report"])
@pytest.mark.parametrize("body", named(BY_VERDICT["accept"] + BY_VERDICT["either"]))
def test_json_that_is_no_message_is_refused(client: httpx.Client, path: str, body: bytes) -> None:
    assert client.post(path, content=body).status_code == 400


@pytest.mark.parametrize("value", named(PLAIN))
def test_any_json_may_be_metadata_of_an_ask(client: httpx.Client, crawl: str, value: bytes) -> None:
    message = with_hole(ask(crawl, context={"metadata": {"x": "HOLE"}}), value)
    answer = client.post("/v1/next", content=message)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("value", named([case for case in JSON_CASES if case["name"] in REPEATS_A_KEY]))
def test_metadata_that_repeats_a_key_is_refused(client: httpx.Client, crawl: str, value: bytes) -> None:
    message = with_hole(ask(crawl, context={"metadata": {"x": "HOLE"}}), value)
    assert client.post("/v1/next", content=message).status_code == 400


@pytest.mark.parametrize("value", named(BY_VERDICT["reject"] + BY_VERDICT["either"]))
def test_metadata_that_may_not_be_json_is_no_fault_of_ours(client: httpx.Client, crawl: str, value: bytes) -> None:
    message = with_hole(ask(crawl, context={"metadata": {"x": "HOLE"}}), value)
    assert client.post("/v1/next", content=message).status_code in {200, 400}


@pytest.mark.parametrize("value", named(PLAIN))
def test_any_json_comes_back_unchanged_as_metadata_of_a_seed(client: httpx.Client, crawl: str, value: bytes) -> None:
    seeds = with_hole({"urls": [{"url": f"https://{crawl}.example/", "metadata": {"x": "HOLE"}}]}, value)
    assert client.post(f"/v1/crawls/{crawl}/seeds", content=seeds).status_code == 200
    (given,) = client.post("/v1/next", json=ask(crawl)).json()["assigned_urls"]
    assert given["metadata"] == {"x": json.loads(value)}


TAKES_JSON = {
    "PUT": ["/v1/crawls/{}"],
    "PATCH": ["/v1/crawls/{}"],
    "POST": [f"/v1/crawls/{{}}/{what}" for what in ("seeds", "release", "rules", "import")],
}
TAKERS = [(method, path) for method, paths in TAKES_JSON.items() for path in paths]


@pytest.mark.parametrize(("method", "path"), TAKERS)
def test_what_is_not_json_is_refused_wherever_json_is_taken(
    client: httpx.Client, crawl: str, method: str, path: str
) -> None:
    """Of an import each line is judged by itself, and this is the first one of a crawl that nobody has defined."""
    for case in BY_VERDICT["reject"]:
        answer = client.request(method, path.format(crawl), content=base64.b64decode(case["b64"]))
        blank = path.endswith("import") and not base64.b64decode(case["b64"]).strip()
        assert answer.status_code == (200 if blank else 400), (case["name"], answer.text)


@pytest.mark.parametrize(("method", "path"), TAKERS)
def test_any_json_is_taken_or_refused_wherever_json_is_taken(
    client: httpx.Client, crawl: str, method: str, path: str
) -> None:
    client.put(f"/v1/crawls/{crawl}", json={})
    for case in JSON_CASES:
        answer = client.request(method, path.format(crawl), content=base64.b64decode(case["b64"]))
        assert answer.status_code in {200, 400}, (case["name"], answer.text)


def test_what_is_not_json_is_refused_over_a_socket(served: Served) -> None:
    with connect(f"ws://127.0.0.1:{served.port}/ws") as line:
        for case in BY_VERDICT["reject"]:
            body = base64.b64decode(case["b64"])
            if utf8(body):
                line.send(body.decode())
                assert json.loads(line.recv(5))["error"]["code"] == "malformed_request", case["name"]


def test_text_that_is_no_utf8_closes_a_socket(served: Served) -> None:
    for case in JSON_CASES:
        body = base64.b64decode(case["b64"])
        if not utf8(body):
            with connect(f"ws://127.0.0.1:{served.port}/ws") as line:
                line.send(body, text=True)
                with pytest.raises(ConnectionClosed) as closed:
                    line.recv(5)
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1007, case["name"]


@pytest.mark.parametrize("kind", ["next", "report", "subscribe", "release", "stats", "ping"])
def test_any_json_within_a_message_over_a_socket_is_no_fault_of_ours(served: Served, crawl: str, kind: str) -> None:
    """`metadata` is looked into for repeated keys and depth, even where nobody reads it."""
    message = {"type": kind, "id": "HOLE-ID", "fetches": [], "every_s": 1000} | ask(crawl, metadata="HOLE")
    with connect(f"ws://127.0.0.1:{served.port}/ws") as line:
        for number, case in enumerate(JSON_CASES):
            body = with_hole(message, base64.b64decode(case["b64"])).replace(b"HOLE-ID", str(number).encode())
            if utf8(body):
                line.send(body.decode())
                said = json.loads(line.recv(5))
                if case["expect"] == "reject" or case["name"] in REPEATS_A_KEY:
                    assert said["error"]["code"] == "malformed_request", (case["name"], said)
                else:
                    assert said.get("error", {}).get("code") in {None, "malformed_request", "not_found"}, said


def utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


# HTTP


def conversation(port: int, request: bytes) -> bytes:
    """All that the server says to these bytes until it hangs up; half-closes once it has fallen silent."""
    said, until = b"", time.monotonic() + ANSWERS_WITHIN_S
    with socket.create_connection(("127.0.0.1", port), timeout=QUIET_S) as line:
        try:
            line.sendall(request)
            while time.monotonic() < until:
                try:
                    piece = line.recv(65_536)
                except TimeoutError:
                    line.shutdown(socket.SHUT_WR)
                    line.settimeout(max(0.01, until - time.monotonic()))
                    continue
                if not piece:
                    return said
                said += piece
        except (ConnectionError, OSError):
            return said
    raise AssertionError(f"neither an end within {ANSWERS_WITHIN_S} s nor more than {said!r}")


@pytest.mark.parametrize("text", named(rows("http_request_cases.jsonl")))
def test_any_request_is_answered_or_cut_off_and_never_a_fault_of_ours(
    served: Served, client: httpx.Client, text: bytes
) -> None:
    request = text.replace(b"\n", b"").replace(b"\\r\\n", b"\r\n")
    statuses = [int(status) for status in STATUS.findall(conversation(served.port, request))]
    assert not [status for status in statuses if status >= 500]
    assert client.get("/healthz").status_code == 200


# strings


ASKS: dict[str, Callable[[str], dict[str, Any]]] = {
    "mcp_version": lambda s: ask("naughty", mcp_version=s),
    "crawler_id": lambda s: ask("naughty", crawler_id=s),
    "request_id": lambda s: ask("naughty", request_id=s),
    "crawl_id": ask,
    "request_timestamp": lambda s: ask("naughty", request_timestamp=s),
    "seed_urls": lambda s: ask("naughty", context={"seed_urls": [s, "https://a.example/" + s]}),
    "domain_hash": lambda s: ask("naughty", context={"domain_hash": s}),
    "history": lambda s: ask("naughty", context={"recent_history": [{"url": s, "fetch_time": s, "status": 200}]}),
    "external_features": lambda s: ask("naughty", context={"external_features": {s: {s: 0.5, "pagerank": s}}}),
    "metadata": lambda s: ask("naughty", context={"metadata": {s: s}}),
}
TELLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "crawler_id": lambda s: tell("naughty") | {"crawler_id": s},
    "crawl_id": tell,
    "report_id": lambda s: tell("naughty") | {"report_id": s},
    "url": lambda s: tell("naughty", url=s),
    "path of a url": lambda s: tell("naughty", url="https://a.example/" + s),
    "host of a url": lambda s: tell("naughty", url=f"https://{s}/"),
    "redirected_to": lambda s: tell("naughty", redirected_to=s),
    "fetch_time": lambda s: tell("naughty", fetch_time=s),
    "title and text": lambda s: tell("naughty", title=s, text=s, language=s, content_type=s, content_hash=s),
    "robots_meta": lambda s: tell("naughty", robots_meta=[s]),
    "error": lambda s: tell("naughty", error=s),
    "request_id": lambda s: tell("naughty", request_id=s, model_version=s),
    "outlink": lambda s: tell("naughty", outlinks=[{"url": s, "anchor": s, "rel": s, "metadata": {s: s}}]),
    "anchor": lambda s: tell("naughty", outlinks=[{"url": "https://b.example/", "anchor": s}]),
}


@pytest.mark.parametrize("field", ASKS)
def test_no_string_in_an_ask_is_a_fault_of_ours(client: httpx.Client, field: str) -> None:
    for text in STRINGS:
        assert client.post("/v1/next", json=ASKS[field](text)).status_code in {200, 400}, text


@pytest.mark.parametrize("field", TELLS)
def test_no_string_in_a_tell_is_a_fault_of_ours(client: httpx.Client, field: str) -> None:
    for text in STRINGS:
        assert client.post("/v1/report", json=TELLS[field](text)).status_code in {200, 400}, text


def test_no_string_in_a_definition_is_a_fault_of_ours(client: httpx.Client, crawl: str) -> None:
    def definition(s: str) -> dict[str, Any]:
        goal = {"topic": s, "keywords": [s, "sql"] if s else [], "reference": s, "anti_reference": s}
        return {"goal": goal, "policy": {"allow_domains": [s] if s else [], "user_agent": s or "x"}}

    for text in STRINGS:
        assert client.put(f"/v1/crawls/{crawl}", json=definition(text)).status_code in {200, 201, 400}, text


@pytest.mark.parametrize("name", ["kind", "until"])
def test_no_name_in_a_definition_is_a_fault_of_ours(client: httpx.Client, crawl: str, name: str) -> None:
    def definition(s: str) -> dict[str, Any]:
        return {"strategy": {"kind": s}} if name == "kind" else {"limits": {"until": s}}

    for text in STRINGS:
        assert client.put(f"/v1/crawls/{crawl}", json=definition(text)).status_code in {200, 201, 400}, text


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE"])
def test_no_name_of_a_crawl_in_a_path_is_a_fault_of_ours(client: httpx.Client, verb: str) -> None:
    for text in STRINGS:
        path = "/v1/crawls/" + quote(text, safe="")
        answer = client.request(verb, path, json={} if verb == "PUT" else None)
        assert answer.status_code < 500, text


def test_a_crawl_with_a_naughty_name_is_found_under_it(client: httpx.Client) -> None:
    names = [text for text in STRINGS if 1 <= len(text) <= 200 and "/" not in text and text not in {".", ".."}]
    assert names
    for name in names:
        path = "/v1/crawls/" + quote(name, safe="")
        assert client.put(path, json={}).json()["crawl_id"] == name
        assert client.get(path).json()["crawl_id"] == name


def test_naughty_metadata_comes_back_unchanged(client: httpx.Client, crawl: str) -> None:
    client.put(f"/v1/crawls/{crawl}", json={"policy": FREE})
    sent = {f"https://{crawl}.example/{number}": {"s": s, s: number} for number, s in enumerate(STRINGS)}
    seeds = {"urls": [{"url": url, "metadata": metadata} for url, metadata in sent.items()]}
    assert client.post(f"/v1/crawls/{crawl}/seeds", json=seeds).json()["discovered"] == len(STRINGS)
    answer = client.post("/v1/next", json=ask(crawl, budget={"max_urls": 1_000})).json()
    assert {given["url"]: given["metadata"] for given in answer["assigned_urls"]} == sent
