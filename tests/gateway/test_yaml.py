"""The same messages in YAML, by Content-Type and Accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlguide.core.errors import CrawlGuideError, MalformedRequest
from crawlguide.gateway import yaml as door

if TYPE_CHECKING:
    import httpx

ASK = """
mcp_version: "2025-11"
crawler_id: by-hand
crawl_id: {crawl}
budget:
  max_urls: 3
context:
  seed_urls: [https://yaml.example/a]
request_timestamp: 2025-11-03T14:17:31Z
"""
YAML = {"content-type": "application/yaml", "accept": "application/yaml"}


def test_an_ask_in_yaml_gets_its_answer_in_yaml(client: httpx.Client, crawl: str) -> None:
    answer = client.post("/v1/next", content=ASK.format(crawl=crawl), headers=YAML)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/yaml")
    assert [given["url"] for given in yaml.safe_load(answer.text)["assigned_urls"]] == ["https://yaml.example/a"]


def test_yaml_in_and_json_out_are_chosen_apart(client: httpx.Client, crawl: str) -> None:
    headers = {"content-type": "text/yaml; charset=utf-8"}
    assert client.post("/v1/next", content=ASK.format(crawl=crawl), headers=headers).json()["metadata"]["crawl_state"]
    listed = client.get("/v1/crawls", headers={"accept": "application/yaml;q=0.9"})
    assert "crawls" in yaml.safe_load(listed.text)


def test_an_error_comes_in_the_language_that_was_asked_for(client: httpx.Client) -> None:
    answer = client.post("/v1/next", content="mcp_version: '2025-11'\ncrawler_id: c\n", headers=YAML)
    assert answer.status_code == 400
    assert yaml.safe_load(answer.text)["error"]["field"] == "budget"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a: &x [1]\nb: *x", "anchor"),
        ("a: 1\na: 2", "twice"),
        ("1: a", "words"),
        ("a: .nan", "finite"),
        ("a: -.inf", "finite"),
        ("a: !!python/object/apply:os.system [true]", "not YAML"),
        ("a: [", "not YAML"),
        ("a: " + "[" * 40 + "]" * 40, "levels"),
        ("a: !!binary aGk=", "JSON"),
    ],
)
def test_what_json_could_not_say_is_refused(body: str, said: str) -> None:
    with pytest.raises(MalformedRequest, match=said):
        door.to_json(body.encode())


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        door.to_json(body)
    except CrawlGuideError:
        return
