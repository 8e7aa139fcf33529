"""/v1/crawls: definitions, seeds, pause and resume."""

from __future__ import annotations

import httpx
from tests.gateway.http_door.common import (
    DEFINITION,
    ask,
    done,
    refused,
)


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


def test_crawls_are_listed_page_by_page(client: httpx.Client, crawl: str) -> None:
    names = [f"{crawl}-{number}" for number in range(5)]
    for name in names:
        done(client.put(f"/v1/crawls/{name}", json={}), 201)
    listed, cursor = [], crawl
    while cursor is not None:
        page = done(client.get("/v1/crawls", params={"limit": 2, "cursor": cursor}))
        assert len(page["crawls"]) <= 2
        listed += [one["crawl_id"] for one in page["crawls"]]
        cursor = page["cursor"]
    assert listed[: len(names)] == names
    assert len(listed) == len(set(listed))


def test_a_page_of_crawls_with_long_definitions_ends_early(client: httpx.Client, crawl: str) -> None:
    long = {"goal": {"reference": "x" * 100_000, "anti_reference": "y" * 100_000}}
    for number in range(30):
        done(client.put(f"/v1/crawls/{crawl}-{number:02}", json=long), 201)
    page = done(client.get("/v1/crawls", params={"cursor": crawl}))
    assert 20 < len(page["crawls"]) < 30
    assert page["cursor"] == page["crawls"][-1]["crawl_id"]


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
