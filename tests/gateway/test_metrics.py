"""/metrics: what Prometheus reads is well formed, complete as documented, and bounded whatever comes in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.gateway.conftest import Served, serving

from crawlguide.core.messages import CrawlStats, StatsMessage
from crawlguide.gateway.metrics import COUNTERS, FRESHNESS, OTHERS, SHOWN, TENANTS, TENANTS_SHOWN, Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text()
ME = {"mcp_version": "2025-11", "crawler_id": "c-1", "crawl_id": "books"}
NAME = re.compile(r"[a-z][a-z0-9_]*")
UNITS = ("_seconds", "_bytes", "_total", "_info", "_fds")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a folder, that has served something of everything."""
    folder = tmp_path_factory.mktemp("metrics")
    with serving(folder, data=folder / "kept") as server:
        _talk(server.url)
        yield server
        assert server.stop() == 0


def _talk(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False) as client:
        seeds = {"urls": [f"https://{host}.example/{page}" for host in "abc" for page in range(9)]}
        client.put("/v1/crawls/books", json={"strategy": {"kind": "relational", "budget_ms": 0.0001}})  # always late
        client.post("/v1/crawls/books/seeds", json=seeds)
        given = client.post("/v1/next", json={**ME, "budget": {"max_urls": 3}}).json()["assigned_urls"]
        answers: list[dict[str, Any]] = [{"status": 200, "relevance": 1.0}, {"status": 404}, {"error": "timeout"}]
        fetches = [{"url": one["url"], **answer} for one, answer in zip(given, answers, strict=True)]
        client.post("/v1/report", json={**ME, "report_id": "r", "fetches": fetches})
        client.post("/v1/report", json={**ME, "report_id": "r", "fetches": fetches})  # told twice, counted once
        client.post("/v1/next", json={**ME, "budget": {"max_urls": -3}})
        client.get("/no/such/page")


def families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def scraped(server: Served) -> dict[str, Metric]:
    answer = httpx.get(f"{server.url}/metrics", trust_env=False)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return families(answer.text)


def value(found: dict[str, Metric], sample: str, **labels: str) -> float:
    return next(
        one.value
        for family in found.values()
        for one in family.samples
        if one.name == sample and one.labels.items() >= labels.items()
    )


def test_what_is_read_is_well_formed(kept: Served) -> None:
    text = httpx.get(f"{kept.url}/metrics", trust_env=False).text
    for name, family in families(text).items():
        assert NAME.fullmatch(name)
        assert family.documentation.endswith(".")
        assert family.type in {"counter", "gauge", "histogram"}
        seen = [(one.name, *sorted(one.labels.items())) for one in family.samples]
        assert len(seen) == len(set(seen))
        assert text.count(f"# TYPE {name} ") + text.count(f"# TYPE {name}_total ") == 1
    assert text.endswith("\n")


def documented() -> dict[str, tuple[str, list[str], str]]:
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| (.*?) ?\| (.*) \|$", PAGE, re.MULTILINE)
    return {name: (kind, re.findall(r"`([a-z]+)`", labels), words) for name, kind, labels, words in rows}


def test_the_page_lists_what_is_there_in_the_same_words(kept: Served) -> None:
    there = {}
    for name, family in scraped(kept).items():
        used = {label for one in family.samples for label in one.labels} - {"le"}
        known = {name: labels for name, (_, labels) in COUNTERS.items()} | {
            name: one[0] for name, one in FRESHNESS.items()
        }
        labels = sorted(used or known.get(name.removeprefix("crawlguide_"), ()))  # nothing was counted yet
        whole = f"{name}_total" if family.type == "counter" else name
        words = family.documentation if name.startswith("crawlguide_") else documented()[whole][2]
        there[whole] = (family.type, labels, words)
    assert {name: (kind, sorted(labels), words) for name, (kind, labels, words) in documented().items()} == there


def test_asks_tells_and_what_became_of_them_are_counted(kept: Served) -> None:
    found = scraped(kept)
    assert value(found, "crawlguide_degraded_total", part="heuristic_fallback") == 1
    assert value(found, "crawlguide_asks_total") == 1
    assert value(found, "crawlguide_tells_total") == 1
    assert value(found, "crawlguide_assigned_total") == 3
    counted = {
        one.labels["outcome"]: one.value for one in found["crawlguide_fetches"].samples if one.name.endswith("_total")
    }
    assert counted == {"2xx": 1, "4xx": 1, "timeout": 1}
    assert value(found, "crawlguide_errors_total", code="malformed_request") == 1
    assert value(found, "crawlguide_errors_total", code="not_found") == 1
    assert value(found, "crawlguide_drops_total", filter="diversity") > 0
    assert value(found, "crawlguide_request_seconds_count", route="/v1/next") == 2
    assert value(found, "crawlguide_sync_seconds_count") > 0


def test_what_the_crawl_and_the_store_hold_is_shown(kept: Served) -> None:
    found = scraped(kept)
    assert value(found, "crawlguide_crawl_urls", crawl="books", state="queued") == 25
    assert value(found, "crawlguide_crawl_urls", crawl="books", state="done") == 2
    assert value(found, "crawlguide_crawl_relevant", crawl="books") == 1
    for name in ("disk_bytes", "log_bytes", "columns_bytes", "open_seconds"):
        assert value(found, f"crawlguide_store_{name}") > 0
    assert value(found, "process_resident_memory_bytes") > 10_000_000


def test_no_url_host_or_crawler_becomes_a_series(kept: Served) -> None:
    text = httpx.get(f"{kept.url}/metrics", trust_env=False).text
    assert not [word for word in ("example", "://", "c-1", "no/such") if word in text]


# many of everything

MOST_SERIES = 5_000


def series(found: dict[str, Metric]) -> int:
    return sum(len(family.samples) for family in found.values())


def test_hosts_pages_and_crawlers_make_no_series_however_many_they_are(own_server: Served) -> None:
    with httpx.Client(base_url=own_server.url, trust_env=False, timeout=60.0) as client:

        def all_kinds(first: int) -> None:
            for number in range(first, first + 3):
                fetches = [{"url": f"https://h{number}-{host}.example/", "status": 200} for host in range(200)]
                who = {"mcp_version": "2025-11", "crawler_id": f"crawler-{number}", "crawl_id": "books"}
                client.post("/v1/report", json={**who, "fetches": fetches}).raise_for_status()
                client.post("/v1/next", json={**who, "budget": {"max_urls": 1}}).raise_for_status()
                client.get(f"/page-{number}")
                client.request(f"METHOD{number}", "/v1/next")
                client.get("/v1/stats", params={"crawl_id": f"crawl-{number}"})

        all_kinds(0)
        before = series(scraped(own_server))
        all_kinds(3)
    assert series(scraped(own_server)) == before < MOST_SERIES


def counted(tenants: int) -> Metrics:
    metrics = Metrics()
    for number in range(tenants):
        metrics.count("asks", tenant=f"t{number}")
        metrics.count("fetches", 2, tenant=f"t{number}", outcome="2xx")
    return metrics


def test_a_tenant_sees_its_own_counters_also_where_there_are_many() -> None:
    text = counted(200).page_of_tenant("t150", StatsMessage("0", 0.0, 0, {})).decode()
    assert 'crawlguide_asks_total{tenant="t150"} 1.0' in text
    assert 'crawlguide_fetches_total{outcome="2xx",tenant="t150"} 2.0' in text
    assert text.count('tenant="') == 2


def test_tenants_beyond_the_first_are_summed() -> None:
    stats = {f"t{number}": StatsMessage("0", 0.0, 0, {"c": crawl(1)}) for number in range(5_000)}
    metrics = counted(5_000)
    found = families(metrics.page(stats, {}).decode())
    fetches = {one.labels["tenant"]: one.value for one in found["crawlguide_fetches"].samples}
    assert (len(fetches), fetches["t0"], sum(fetches.values())) == (TENANTS_SHOWN + 1, 2, 10_000)
    urls = [one.value for one in found["crawlguide_crawl_urls"].samples if one.labels["state"] == "queued"]
    assert (len(urls) <= 2 * SHOWN + 2, sum(urls)) == (True, 5_000)
    assert len(metrics._series) <= 2 * (TENANTS + 1)


def crawl(queued: int) -> CrawlStats:
    numbers: dict[str, Any] = dict.fromkeys(CrawlStats.__struct_fields__, 0)
    return CrawlStats(**{**numbers, "dropped": {}, "queued": queued})


def page(crawls: dict[str, int]) -> dict[str, float]:
    stats = StatsMessage("0", 0.0, 0, {name: crawl(queued) for name, queued in crawls.items()})
    text = Metrics().page({"default": stats}, {}).decode()
    urls = families(text)["crawlguide_crawl_urls"]
    return {one.labels["crawl"]: one.value for one in urls.samples if one.labels["state"] == "queued"}


def test_only_the_biggest_crawls_are_named() -> None:
    shown = page({f"crawl-{number}": number for number in range(1_000)})
    assert len(shown) == SHOWN + 1
    assert shown["crawl-999"] == 999
    assert sum(shown.values()) == sum(range(1_000))


def test_a_crawl_that_is_called_like_the_others_is_one_of_them() -> None:
    assert page({OTHERS: 5, "a": 1}) == {OTHERS: 5, "a": 1}


@pytest.mark.parametrize("name", ['quote"', "back\\slash", "line\nend", "\u2028", "{}", "=,", "# HELP x"])
def test_any_name_of_a_crawl_can_be_read_back(name: str) -> None:
    assert page({name: 7}) == {name: 7}
