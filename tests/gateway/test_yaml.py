"""The same messages in YAML, by Content-Type and Accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.waiting import MOST_S, others_wait

from crawlguide.core.errors import CrawlGuideError, MalformedRequest
from crawlguide.gateway import yaml as door

if TYPE_CHECKING:
    import httpx
    from tests.gateway.conftest import Served

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
        ("a: 1.0e+999", "finite"),
        ("a: !!python/object/apply:os.system [true]", "tag"),
        ("a: [", "not YAML"),
        ("a: 0x_", "not YAML"),
        ("a: " + "[" * 40 + "]" * 40, "levels"),
        ("a: !!binary aGk=", "tag"),
        ("a: !!int ''", "tag"),
        ("a: !!float x", "tag"),
        ("a: !!set {x}", "tag"),
        ("a: !!str {x: 1}", "tag"),
        ("!!map {a: 1}", "tag"),
        ("%TAG ! tag:x,2000:\n---\na: !x 1", "tag"),
        ("<<: {a: 1}", "merge"),
        ("? [1]\n: 2", "words"),
        ("a: 18446744073709551616", "JSON"),
        ("a: 0b" + "1" * 100, "JSON"),
        ("--- {}\n--- {}", "one document"),
        ("%YAML 9.9\n--- {}", "not YAML"),
        ('a: "\\ud800"', "not YAML"),
    ],
)
def test_what_json_could_not_say_is_refused(body: str, said: str) -> None:
    with pytest.raises(MalformedRequest, match=said):
        door.to_json(body.encode())


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("12", 12),
        ("-0x1F", -31),
        ("017", 15),
        ("+1_000", 1000),
        (".5", 0.5),
        ("1.5e+3", 1500.0),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ("", None),
        ("2025-11-03", "2025-11-03"),
        ("12:30", "12:30"),
        ("1:" * 400 + "1.5", "1:" * 400 + "1.5"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("[a, {b: null}]", ["a", {"b": None}]),
    ],
)
def test_what_json_can_say_is_read(body: str, value: Any) -> None:
    assert orjson.loads(door.to_json(f"a: {body}".encode())) == {"a": value}
    assert orjson.loads(door.to_json(f"a: {body}".encode("utf-16"))) == {"a": value}


NESTED = ("[", "{", "- ", "? ", "{a: ", "[{a: ", "? [", "a:\n ", "!!seq [", "&a [")


@pytest.mark.parametrize("opening", NESTED)
@pytest.mark.parametrize("times", [33, 5_000, 100_000])
def test_deep_nesting_is_refused_before_it_is_followed(client: httpx.Client, opening: str, times: int) -> None:
    answer = client.post("/v1/next", content=opening * times, headers={"content-type": "application/yaml"})
    assert answer.status_code == 400, answer.text


DIRECTIVES = "".join(f"%TAG !a{number}! tag:x{number}\n" for number in range(30_000)) + "---\na: 1"
WIDE: dict[str, str | bytes] = {
    "keys": "".join(f"k{number}: 1\n" for number in range(30_000)),
    "flow keys": "{" + ", ".join(f"k{number}: 1" for number in range(30_000)) + "}",
    "a key twice at the end": "".join(f"k{number}: 1\n" for number in range(30_000)) + "k29999: 1",
    "numbers": "[" + "1," * 500_000 + "]",
    "comments": "#\n" * 500_000,
    "a long text": "a: " + "x" * 1_000_000,
    "a folded text": "a: >\n" + " x\n\n" * 250_000,
    "escapes": 'a: "' + "\\u0041" * 150_000 + '"',
    "a number to the base of 60": "a: " + "1:" * 400_000 + "5.5",
    "documents": "---\n" * 250_000,
    "directives": DIRECTIVES,
    "directives of a second document": "a: 1\n...\n" + DIRECTIVES,
    "directives in UTF-16": DIRECTIVES[:500_000].encode("utf-16"),
}


@pytest.mark.parametrize("body", WIDE.values(), ids=WIDE)
def test_nobody_waits_while_long_yaml_is_read(served: Served, client: httpx.Client, body: str | bytes) -> None:
    with others_wait(served) as wait:
        answer = client.post("/v1/next", content=body, headers={"content-type": "application/yaml"})
    assert answer.status_code in {400, 413}, answer.text
    assert wait.longest_s < MOST_S, wait


def test_nobody_waits_while_a_long_answer_is_written_in_yaml(served: Served, client: httpx.Client, crawl: str) -> None:
    seeds = {"urls": [f"https://{crawl}.example/{number}" for number in range(5_000)]}
    assert client.post(f"/v1/crawls/{crawl}/seeds", json=seeds).status_code == 200
    with others_wait(served) as wait:
        answer = client.get("/v1/urls", params={"crawl_id": crawl, "limit": 5_000}, headers=YAML)
    assert answer.text.count("state: queued") == 5_000
    assert wait.longest_s < MOST_S, wait


TEXTS = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(JSON_VALUES)
def test_whatever_is_written_means_the_same_when_it_is_read(value: Any) -> None:
    text = door.from_json(orjson.dumps({"a": value}))
    assert orjson.loads(door.to_json(text)) == {"a": value}
    assert yaml.safe_load(text) == {"a": value}


@pytest.mark.parametrize(
    ("header", "is_yaml"),
    [
        ("application/yaml", True),
        ("Text/YAML; charset=utf-8", True),
        ('application/x-yaml;a="b,c"', True),
        ("text/plain;a=,application/yaml", False),
        ('text/plain;a="x", application/yaml', False),
        ("application/yaml, text/plain", False),
        ("application/yamlx", False),
        ("", False),
    ],
)
def test_a_content_type_is_one_media_type(header: str, is_yaml: bool) -> None:
    assert door.sent(header) is is_yaml


@pytest.mark.parametrize(
    ("header", "is_yaml"),
    [
        ("application/yaml", True),
        ("text/html, application/yaml;q=0.9", True),
        ("application/yaml, */*;q=0.5", True),
        ("application/json;q=0.5, application/yaml", True),
        ("application/json, application/yaml;q=0.5", False),
        ("*/*, application/yaml;q=0.5", False),
        ("application/yaml;q=0", False),
        ("application/yaml;q=0.000", False),
        ("application/yaml;q=high", False),
        ('text/html;a="x,application/yaml"', False),
        ('application/yaml;a=";q=0"', True),
        ('text/html;a="x\\", application/yaml', False),
        ("*/*", False),
        ("", False),
        (",;=,", False),
        ('"\\"' * 30_000, False),
    ],
)
def test_an_accept_is_a_list_with_qualities(header: str, is_yaml: bool) -> None:
    assert door.wanted(header) is is_yaml


def test_a_type_within_a_parameter_makes_no_yaml(client: httpx.Client) -> None:
    answer = client.post("/v1/next", content="a: 1", headers={"content-type": "application/json;a=,application/yaml"})
    assert "not JSON" in answer.json()["error"]["message"]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        door.to_json(body)
    except CrawlGuideError:
        return
