"""Release, rules and patches over HTTP: their shapes, their errors, and that they last."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.conftest import SCRIPT, Served, _port

from crawlguide.core.messages import VERSION

if TYPE_CHECKING:
    from pathlib import Path

FREE = {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}}
NO_RULES = {
    "ban": {"urls": [], "hosts": [], "patterns": []},
    "priority": {"urls": {}, "hosts": {}, "patterns": {}},
}
A, B = "https://a.example/", "https://b.example/"


def made(client: httpx.Client, crawl: str, *urls: str) -> str:
    assert client.put(f"/v1/crawls/{crawl}", json=FREE).status_code == 201
    assert client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": list(urls)}).status_code == 200
    return f"/v1/crawls/{crawl}"


def asked(client: httpx.Client, crawl: str, max_urls: int = 9) -> list[str]:
    message = {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls}}
    return [one["url"] for one in client.post("/v1/next", json=message).json()["assigned_urls"]]


def refused(answer: httpx.Response, status: int, field: str | None) -> None:
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field), answer.text


def test_a_release_says_how_many(client: httpx.Client, crawl: str) -> None:
    path = made(client, crawl, A, B)
    assert len(asked(client, crawl)) == 2
    answer = client.post(path + "/release", json={"crawler_id": "c-1"})
    assert (answer.status_code, answer.content) == (200, b'{"released":2}')


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "crawler_id"), ({"crawler_id": ""}, "crawler_id"), ({"crawler_id": "c", "crawl_id": "x"}, "crawl_id")],
)
def test_a_malformed_release_is_refused_by_name(client: httpx.Client, crawl: str, body: Any, field: str) -> None:
    refused(client.post(made(client, crawl) + "/release", json=body), 400, field)


def test_a_crawl_that_is_not_there_is_404_and_stays_away(client: httpx.Client, crawl: str) -> None:
    path = f"/v1/crawls/{crawl}"
    refused(client.post(path + "/release", json={"crawler_id": "c-1"}), 404, "crawl_id")
    refused(client.get(path + "/rules"), 404, "crawl_id")
    refused(client.post(path + "/rules", json={}), 404, "crawl_id")
    refused(client.patch(path, json={}), 404, "crawl_id")
    assert client.get(path).status_code == 404


def test_rules_are_shown_whole_by_get_and_post(client: httpx.Client, crawl: str) -> None:
    path = made(client, crawl, A, B)
    assert client.get(path + "/rules").json() == NO_RULES
    edit = {"ban": {"hosts": ["A.example"], "patterns": ["zz+"]}, "priority": {"urls": {B + "#part": 0.5}}}
    rules = client.post(path + "/rules", json=edit).json()
    assert rules == {
        "ban": {"urls": [], "hosts": ["a.example"], "patterns": ["zz+"]},
        "priority": {"urls": {B: 0.5}, "hosts": {}, "patterns": {}},
    }
    assert client.get(path + "/rules").json() == rules
    assert client.get(path).json()["definition"]["rules"] == rules
    assert asked(client, crawl) == [B]


def test_a_put_replaces_the_rules_and_a_patch_does_not(client: httpx.Client, crawl: str) -> None:
    path = made(client, crawl)
    rules = client.post(path + "/rules", json={"ban": {"hosts": ["a.example"]}}).json()
    client.patch(path, json={"limits": {"max_depth": 3}})
    assert client.get(path + "/rules").json() == rules
    client.put(path, json=FREE)
    assert client.get(path + "/rules").json() == NO_RULES
    client.put(path, json=FREE | {"rules": rules})
    assert client.get(path + "/rules").json() == rules


def test_a_bad_pattern_is_said_clearly(client: httpx.Client, crawl: str) -> None:
    path = made(client, crawl)
    answer = client.post(path + "/rules", json={"ban": {"patterns": ["fine", "(?=look)"]}})
    refused(answer, 400, "ban.patterns[1]")
    assert "expected an RE2 pattern, got '(?=look)': invalid perl operator" in answer.json()["error"]["message"]
    refused(client.put(path, json={"rules": {"ban": {"patterns": ["["]}}}), 400, "rules.ban.patterns[0]")


def test_a_patch_in_yaml_is_one_too(client: httpx.Client, crawl: str) -> None:
    path = made(client, crawl)
    answer = client.patch(path, content="limits:\n  max_pages: 7\n", headers={"content-type": "application/yaml"})
    assert answer.json()["definition"]["limits"]["max_pages"] == 7


@pytest.mark.parametrize("body", ["[]", "7", '"x"', "null", ""])
def test_a_patch_that_is_no_object_is_refused(client: httpx.Client, crawl: str, body: str) -> None:
    answer = client.patch(made(client, crawl), content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_request")


@pytest.mark.parametrize("path", ["/v1/crawls/%ED%A0%80/rules", "/v1/stats?crawl_id=%ED%A0%80", "/v1/crawls/%FF"])
def test_half_of_a_letter_is_no_name_of_a_crawl(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code in {400, 404}


def started(folder: Path) -> tuple[subprocess.Popen[str], str]:
    ready, stderr = folder / "ready.json", folder / "stderr.txt"
    ready.unlink(missing_ok=True)
    command = [str(SCRIPT), "serve", "--data", "data", "--port", "0", "--ready-file", str(ready)]
    with stderr.open("w") as said:
        process = subprocess.Popen(command, stderr=said, text=True, cwd=folder)
    return process, Served(process, _port(process, ready, stderr), stderr).url


def test_rules_patches_and_releases_survive_a_kill(tmp_path: Path) -> None:
    process, url = started(tmp_path)
    try:
        with httpx.Client(base_url=url, trust_env=False, timeout=30.0) as client:
            path = made(client, "books", A, B)
            assert len(asked(client, "books")) == 2
            client.post(path + "/rules", json={"ban": {"hosts": ["a.example"]}})
            client.patch(path, json={"limits": {"max_depth": 3}})
            assert client.post(path + "/release", json={"crawler_id": "c-1"}).json() == {"released": 2}
            before = client.get(path).json()["definition"]
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        process, url = started(tmp_path)
        with httpx.Client(base_url=url, trust_env=False, timeout=30.0) as client:
            assert client.get(path).json()["definition"] == before
            assert asked(client, "books") == [B]
    finally:
        process.kill()
        process.wait(20)
