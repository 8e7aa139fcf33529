"""OPIC, PageRank, in-degree and the mean of the pages that link here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crawlguide import strategies
from crawlguide.core import plugs, urls
from crawlguide.scoring import SLOW_COST
from crawlguide.strategies.best_first_mean import Mean
from crawlguide.strategies.in_degree import InDegree
from crawlguide.strategies.opic import HALF
from crawlguide.strategies.pagerank import FOLLOWED
from tests.strategies.site import HOME, POLICY, crawled, opened, web
from tests.support import ask, asked, batch, fetched, tell

A, B = "https://a.org/", "https://b.org/"


def predictor(guide: Any) -> Any:
    return next(iter(guide._guide._guide.crawls.known.values())).strategy.guarded.parts[0].predictor


def record(guide: Any, url: str) -> Any:
    """What OPIC or PageRank knows of a URL."""
    found = predictor(guide)
    table = found._accounts if found.version == "opic-1" else found._urls
    return table.records[table.find(np.array([urls.identity(url)], np.uint64))[0]]


def test_cash_flows_along_links_and_none_is_lost_on_the_way() -> None:
    with opened({"kind": "opic"}) as guide:
        guide.seed("default", [A + "1", A + "2"])
        tell(guide, fetched(A + "1", A + "3", A + "4", A + "3"))
        assert record(guide, A + "1")["cash"] == 0.0
        assert record(guide, A + "3")["cash"] == 0.25
        tell(guide, fetched(A + "3", A + "4"))
        assert record(guide, A + "4")["cash"] == 0.5
        assert predictor(guide).stats()["cash"] == 1.0


def test_the_richest_url_comes_first() -> None:
    with opened({"kind": "opic"}) as guide:
        guide.seed("default", [A + "1", A + "2"])
        tell(guide, fetched(A + "1", A + "3", A + "4"), fetched(A + "2", A + "4", A + "5"))
        assert asked(guide, max_urls=1) == [A + "4"]


def test_cash_becomes_a_value_from_0_to_1() -> None:
    with opened({"kind": "opic"}) as guide:
        guide.seed("default", [A + "1"])
        rows = batch([A + "1", A + "unknown"])
        value = predictor(guide).predict(rows)
        assert value[0] == pytest.approx(1.0 / (1.0 + HALF), rel=1e-4)
        assert value[1] == 0.0


def exact(site: dict[str, list[str]], fetched: list[str]) -> dict[str, float]:
    """By iteration, until nothing changes: rank = 0.15 + 0.85 · Σ rank / links over fetched pages."""
    known = {url for page in fetched for url in site.get(page, ())} | set(fetched)
    rank = dict.fromkeys(known, 1.0)
    for _ in range(200):
        flow = dict.fromkeys(known, 1.0 - FOLLOWED)
        for page in fetched:
            links = {link for link in site.get(page, ()) if link != page}
            for link in links:
                flow[link] += FOLLOWED * rank[page] / len(links)
        rank = flow
    return rank


def test_pagerank_comes_close_to_what_iteration_finds() -> None:
    site = web()
    with opened({"kind": "pagerank"}) as guide:
        guide.seed("default", [HOME])
        order = crawled(guide, site, 150)
        wanted = exact(site, order)
        ours = np.array([record(guide, url)["rank"] for url in wanted])
        theirs = np.array(list(wanted.values()))
        assert np.abs(ours / theirs - 1.0).max() < 0.35
        assert np.corrcoef(ours, theirs)[0, 1] > 0.999
        owed = predictor(guide).stats()["owed"]
    assert 0.0 <= owed < 0.1 * theirs.sum()


def test_a_page_fetched_again_does_not_pass_on_twice() -> None:
    with opened({"kind": "pagerank"}) as guide:
        guide.seed("default", [A])
        tell(guide, fetched(A, A + "1", fetch_time="2025-11-03T14:18:02Z"))
        before = record(guide, A + "1")["rank"]
        tell(guide, fetched(A, A + "1", A + "2", fetch_time="2025-11-04T14:18:02Z"))
        assert record(guide, A + "1")["rank"] == before


def test_the_most_linked_comes_first() -> None:
    rows = batch([A + "1", A + "2", A + "3"], parents=[3.0, 1.0, 10.0])
    value = InDegree(seed=1).predict(rows)
    assert value == pytest.approx([3 / 13, 1 / 11, 0.5], abs=1e-5)


def test_the_mean_relevance_of_all_pages_counts() -> None:
    rows = batch([A + "1", A + "2", A + "3"], parents=[2.0, 4.0, 0.0], parent_sum=[2.0, 1.0, 0.0])
    assert Mean(seed=1).predict(rows) == pytest.approx([1.0, 0.25, 0.0], abs=1e-5)


@pytest.mark.parametrize("kind", ["opic", "pagerank", "in-degree", "best-first-mean"])
def test_of_equals_another_one_comes_first_with_another_seed(kind: str) -> None:
    def first(seed: int) -> list[str]:
        with opened({"kind": kind}, seed=seed) as guide:
            guide.seed("default", [A + str(number) for number in range(50)])
            return asked(guide, max_urls=5)

    assert first(1) == first(1)
    assert first(1) != first(2)


def score_on_a_slow_host(kind: str, policy: dict[str, Any], **more: Any) -> tuple[float, float]:
    """The scores of a URL of a slow host and of one of a fast host."""
    with opened({"kind": kind}, policy={**POLICY, **policy}, **more) as guide:
        guide.seed("default", [A + "1", B + "1"])
        tell(guide, fetched(A + "1", A + "2", elapsed_ms=4_000), fetched(B + "1", B + "2", elapsed_ms=40))
        found = {one["url"]: one["score"] for one in ask(guide)["assigned_urls"]}
        return found[A + "2"], found[B + "2"]


@pytest.mark.parametrize("kind", [kind for kind in plugs.kinds(strategies) if kind != "layered"])
def test_a_slow_host_costs_in_every_strategy_where_the_crawl_says_what_is_slow(kind: str) -> None:
    slow, fast = score_on_a_slow_host(kind, {})
    slower, as_fast = score_on_a_slow_host(kind, {"slow_domain_ms": 1_000})
    assert slower - slow == pytest.approx(-SLOW_COST)
    assert as_fast == pytest.approx(fast)


def test_layered_weighs_cost_and_slow_domain_ms_is_where_it_is_highest() -> None:
    slow, fast = score_on_a_slow_host("layered", {"slow_domain_ms": 100_000})
    slower, as_fast = score_on_a_slow_host("layered", {"slow_domain_ms": 1_000})
    assert slower - slow < as_fast - fast <= 0.0


def test_a_crawl_that_weighs_cost_itself_gets_what_it_asks_for() -> None:
    weights = {"weights": {"cost": 0.0}}
    assert score_on_a_slow_host("random", {"slow_domain_ms": 1_000}, **weights) == score_on_a_slow_host("random", {})
