"""No request keeps others waiting, however much it brings: everything here is answered while /healthz is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.waiting import MOST_S, others_wait

if TYPE_CHECKING:
    import httpx
    from tests.gateway.conftest import Served

VERSION = "2025-11"
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}


def tell(crawl: str, fetches: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": fetches} | more


def ask(crawl: str, max_urls: int = 1, **more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls}} | more


PATTERNS = {
    "one of 27 characters": [r"((\pL|\pN|\pS){10}){100}b"],
    "forty": [rf"(\pL{{{200 + number}}})" for number in range(40)],
    "a thousand": [rf".*a.*b.*{number}.*c.*d" for number in range(1_000)],
}


@pytest.mark.parametrize("texts", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("field", ["include_patterns", "exclude_patterns", "trap_patterns"])
def test_while_patterns_are_refused(
    served: Served, client: httpx.Client, crawl: str, field: str, texts: list[str]
) -> None:
    with others_wait(served) as wait:
        answer = client.put(f"/v1/crawls/{crawl}", json={"policy": {field: texts}})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["field"].startswith(f"policy.{field}")
    assert wait.longest_s < MOST_S, wait


NAMES = [f"d{number}.example-{number % 1_000}.org" for number in range(60_000)]
DEFINITIONS: dict[str, dict[str, Any]] = {
    "names of domains": {"policy": {"allow_domains": NAMES}},
    "weights of domains": {"policy": {"domain_weights": dict.fromkeys(NAMES, 1.5)}},
    "hosts with a factor": {"rules": {"priority": {"hosts": dict.fromkeys(NAMES, 2)}}},
    "words": {"goal": {"topic": "word " * 20_000, "keywords": ["keyword" * 30] * 1_000}},
}


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_while_a_long_definition_is_put_changed_and_used(
    served: Served, client: httpx.Client, crawl: str, definition: dict[str, Any]
) -> None:
    with others_wait(served) as wait:
        client.put(f"/v1/crawls/{crawl}", json=definition).raise_for_status()
        client.patch(f"/v1/crawls/{crawl}", json={"limits": {"max_depth": 3}}).raise_for_status()
        client.post("/v1/next", json=ask(crawl)).raise_for_status()
    assert wait.longest_s < MOST_S, wait


def test_while_long_rules_are_edited(served: Served, client: httpx.Client, crawl: str) -> None:
    client.put(f"/v1/crawls/{crawl}", json={}).raise_for_status()
    with others_wait(served) as wait:
        client.post(f"/v1/crawls/{crawl}/rules", json={"ban": {"hosts": NAMES}}).raise_for_status()
        client.post(f"/v1/crawls/{crawl}/rules", json={"unban": {"hosts": NAMES[:-1]}}).raise_for_status()
    assert client.get(f"/v1/crawls/{crawl}/rules").json()["ban"]["hosts"] == NAMES[-1:]
    assert wait.longest_s < MOST_S, wait


def test_while_patterns_that_take_long_are_searched_in_links(served: Served, client: httpx.Client, crawl: str) -> None:
    """RE2 walks through all steps of these for each character of a URL."""
    costly = [rf"(a|b)*a(a|b){{{200 + number}}}c" for number in range(10)]
    links = [{"url": f"https://h{number}.example/" + "ab" * 1_500} for number in range(10)]
    client.put(f"/v1/crawls/{crawl}", json={"policy": FREE | {"exclude_patterns": costly}}).raise_for_status()
    fetch = {"url": "https://h.example/", "status": 200, "outlinks": links}
    with others_wait(served) as wait:
        client.post("/v1/report", json=tell(crawl, [fetch])).raise_for_status()
        assert len(client.post("/v1/next", json=ask(crawl, 20)).json()["assigned_urls"]) == len(links)
    assert wait.longest_s < MOST_S, wait


def test_changes_of_one_definition_at_once_all_count(client: httpx.Client, crawl: str) -> None:
    """Long ones are worked on beside the loop, and others may come meanwhile."""
    client.put(f"/v1/crawls/{crawl}", json={"policy": {"deny_domains": NAMES[:5_000]}}).raise_for_status()
    hosts = [f"h{number}.example" for number in range(6)]
    with ThreadPoolExecutor(len(hosts)) as threads:
        edits = [{"ban": {"hosts": [host]}} for host in hosts]
        for answer in threads.map(lambda edit: client.post(f"/v1/crawls/{crawl}/rules", json=edit), edits):
            answer.raise_for_status()
    assert sorted(client.get(f"/v1/crawls/{crawl}/rules").json()["ban"]["hosts"]) == hosts


def test_while_thousands_of_urls_are_asked_for_purged_and_deleted(
    served: Served, client: httpx.Client, crawl: str
) -> None:
    client.put(f"/v1/crawls/{crawl}", json={"policy": FREE}).raise_for_status()
    urls = [f"https://h{number}.example/{number}" for number in range(12_000)]
    client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": urls}).raise_for_status()
    budget = {"max_urls": 5_000, "timeout_ms": 3_600_000}
    with others_wait(served) as wait:
        assert len(client.post("/v1/next", json=ask(crawl, budget=budget)).json()["assigned_urls"]) == 5_000
        gone = client.delete("/v1/urls", params={"crawl_id": crawl, "state": "queued"}).json()["deleted"]
        client.delete(f"/v1/crawls/{crawl}").raise_for_status()
    assert gone == 7_000
    assert wait.longest_s < MOST_S, wait


def test_while_pages_with_ten_thousand_links_are_told(served: Served, client: httpx.Client, crawl: str) -> None:
    links = [{"url": f"https://t{number}.example/", "anchor": f"word {number}"} for number in range(10_000)]
    with others_wait(served) as wait:
        fetch = {"url": "https://h.example/", "status": 200, "relevance": 0.5, "outlinks": links}
        assert client.post("/v1/report", json=tell(crawl, [fetch])).json()["discovered"] == 10_000
    assert wait.longest_s < MOST_S, wait


def test_while_an_ask_brings_very_many_seeds(served: Served, client: httpx.Client, crawl: str) -> None:
    context = {"seed_urls": [f"https://s{number}.example/" for number in range(10_000)]}
    with others_wait(served) as wait:
        client.post("/v1/next", json=ask(crawl, 10, context=context)).raise_for_status()
    assert client.get("/v1/stats", params={"crawl_id": crawl}).json()["crawls"][crawl]["discovered"] == 10_000
    assert wait.longest_s < MOST_S, wait


def test_while_an_ask_names_very_many_signals_of_a_url(served: Served, client: httpx.Client, crawl: str) -> None:
    signals = {"https://h.example/": {f"s{number}": number for number in range(250_000)}}
    with others_wait(served) as wait:
        client.post("/v1/next", json=ask(crawl, context={"external_features": signals})).raise_for_status()
    assert wait.longest_s < MOST_S / 2, wait


@pytest.mark.parametrize("line", [b"\n", b"\r", b"ab\n", b"{}\r\n"], ids=["empty", "other ends", "no JSON", "no URL"])
def test_while_millions_of_lines_are_imported(served: Served, client: httpx.Client, crawl: str, line: bytes) -> None:
    body = line * (4_000_000 // len(line))
    with others_wait(served) as wait:
        answer = client.post(
            f"/v1/crawls/{crawl}/import", content=body, headers={"content-type": "application/x-ndjson"}
        )
    assert answer.status_code in (200, 400), answer.text
    assert wait.longest_s < MOST_S / 2, wait


@pytest.mark.parametrize("parts", [4_000, 90_000])
def test_while_lines_with_very_much_metadata_are_imported(
    served: Served, client: httpx.Client, crawl: str, parts: int
) -> None:
    line = b'{"url": "https://h.example/", "state": "queued", "metadata": {"a": [%b]}}\n' % b",".join([b"[]"] * parts)
    with others_wait(served) as wait:
        body = line * (4_000_000 // len(line))
        answer = client.post(
            f"/v1/crawls/{crawl}/import", content=body, headers={"content-type": "application/x-ndjson"}
        )
    assert answer.json()["lines"] == 0, answer.text
    assert wait.longest_s < MOST_S / 2, wait


def test_while_a_name_is_looked_for_among_many_that_are_like_it(served: Served, client: httpx.Client) -> None:
    """To compare two names of 200 characters may take 15 ms."""
    names = ["".join("ab"[number >> place & 1] for place in range(8)) * 24 for number in range(200)]
    for name in names:
        client.put(f"/v1/crawls/{name}", json={}).raise_for_status()
    try:
        with others_wait(served) as wait:
            assert client.get(f"/v1/crawls/{'ba' * 95}c").status_code == 404
        assert wait.longest_s < MOST_S / 2, wait
    finally:
        for name in names:
            client.delete(f"/v1/crawls/{name}")


def test_while_many_strategies_learn_from_one_page(served: Served, client: httpx.Client, crawl: str) -> None:
    """Sixteen of them took more than a second for it."""
    blend = {"kind": "blend", "predict": [{"kind": "groups"}] * 8}
    strategy = {"kind": "blend", "predict": [blend, blend]}
    client.put(f"/v1/crawls/{crawl}", json={"policy": FREE, "strategy": strategy}).raise_for_status()
    links = [{"url": f"https://t{number}.example/", "anchor": f"word {number}"} for number in range(9_900)]
    fetch = {"url": "https://h.example/", "status": 200, "relevance": 0.5, "outlinks": links}
    with others_wait(served) as wait:
        assert client.post("/v1/report", json=tell(crawl, [fetch])).json()["discovered"] == 9_900
    assert wait.longest_s < MOST_S, wait


WORDLESS: dict[str, dict[str, Any]] = {
    "hosts of thousands of labels": {"outlinks": [{"url": f"https://{'a.' * 3_800}x{n}.org/"} for n in range(400)]},
    "words for robots": {"robots_meta": ["," * 3_900_000]},
    "texts for robots": {"robots_meta": [""] * 1_000_000},
}


@pytest.mark.parametrize("more", WORDLESS.values(), ids=WORDLESS)
def test_while_a_page_is_told_of_which_nobody_can_use_most(
    served: Served, client: httpx.Client, crawl: str, more: dict[str, Any]
) -> None:
    fetch = {"url": "https://h.example/", "status": 200} | more
    with others_wait(served) as wait:
        assert client.post("/v1/report", json=tell(crawl, [fetch])).json()["discovered"] == 0
    assert wait.longest_s < MOST_S / 2, wait
