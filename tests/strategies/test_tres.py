"""`tres` through a guide: what it asks for, what it refuses, what it learns, and that a restart changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from crawlguide.strategies.tres.learner import Tres
from crawlguide.strategies.tres.records import MOST_MISSES
from crawlguide.testing import ManualClock
from tests.strategies.site import HOME, POLICY, crawled, harvest, opened, web
from tests.support import asked, fetched, running, tell

if TYPE_CHECKING:
    from pathlib import Path

QUICK = {"kind": "tres", "min_replay_size": 64, "decay_steps": 64}


def hosts(count: int, pages: int) -> list[str]:
    return [f"https://h{host}.org/{page}" for host in range(count) for page in range(pages)]


def learner_of(guide: Guide) -> Tres:
    """The strategy's predictor, as it runs."""
    found = running(guide).strategy.guarded.parts[0].predictor
    assert isinstance(found, Tres)
    return found


def stats(guide: Guide) -> dict[str, float]:
    told: dict[str, float] = guide.stats("default")["crawls"]["default"]["learner"]
    return told


# Tune


@pytest.mark.parametrize(("unit", "pages"), [("transitions", 1), ("rounds", 50)])
def test_epsilon_falls_evenly_to_its_floor(unit: str, pages: int) -> None:
    with opened({"kind": "tres", "decay_unit": unit}) as guide:
        learner = learner_of(guide)
        for done, epsilon in ((0, 1.0), (250, 0.525), (500, 0.05), (5_000, 0.05)):
            learner.tables.crawl[0]["transitions"] = done * pages
            assert learner.epsilon() == pytest.approx(epsilon)


def test_training_begins_after_so_many_transitions_and_goes_on_every_so_many() -> None:
    with opened(QUICK) as guide:
        guide.seed("default", [HOME])
        crawled(guide, web(), 60)
        assert stats(guide)["trained"] == 0
        crawled(guide, web(), 40)
        told = stats(guide)
        assert told["trained"] == len(range(64, int(told["transitions"]) + 1, 4))


def test_the_section_that_pays_is_found_and_kept_to() -> None:
    with opened(QUICK) as guide:
        guide.seed("default", [HOME])
        assert harvest(crawled(guide, web(), 60)) > 0.3  # of all pages an eighth pays
        assert stats(guide)["leaves"] > 1


def test_failures_are_transitions_without_reward() -> None:
    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(1, 2))
        given = asked(guide, max_urls=2)
        tell(guide, {"url": given[0], "error": "timeout"}, fetched(given[1], relevance=1.0))
        learner = learner_of(guide)
        assert sorted(learner.tables.transitions.rows["reward"][:2].tolist()) == [0.0, 1.0]
        assert stats(guide)["waiting"] == 0


def test_what_comes_back_unused_waits_again() -> None:
    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(1, 3))
        given = asked(guide, max_urls=2)
        assert stats(guide)["waiting"] == 1
        tell(guide, {"url": given[0], "error": "released"})
        assert stats(guide)["waiting"] == 2
        assert stats(guide)["transitions"] == 0


def test_late_feedback_is_another_transition() -> None:
    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(1, 1))
        (given,) = asked(guide, max_urls=1)
        tell(guide, fetched(given, relevance=0.0))
        tell(guide, {"url": given, "reward": 0.75})
        assert learner_of(guide).tables.transitions.rows["reward"][:2].tolist() == [0.0, 0.75]


def test_a_page_of_which_nobody_says_what_it_is_worth_teaches_nothing_until_somebody_does() -> None:
    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(1, 1))
        (given,) = asked(guide, max_urls=1)
        tell(guide, fetched(given))
        assert stats(guide)["transitions"] == 0
        tell(guide, {"url": given, "reward": 0.75})
        assert learner_of(guide).tables.transitions.rows["reward"][:1].tolist() == [0.75]


# Select


@pytest.mark.parametrize("wanted", [1, 10, 50, 200])
def test_an_answer_is_full_although_there_is_one_leaf(wanted: int) -> None:
    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(20, 20))
        assert len(asked(guide, max_urls=wanted)) == wanted


def test_by_the_letter_a_leaf_gives_one_url() -> None:
    with opened({"kind": "tres", "per_leaf": "one"}) as guide:
        guide.seed("default", hosts(20, 20))
        assert len(asked(guide, max_urls=50)) == 1


def full_domain(**options: Any) -> list[str]:
    """An answer of ten after one domain of eleven has given all it may; nothing paid so far."""
    with opened({"kind": "tres", "epsilon": 0.0, **options}) as guide:
        guide.seed("default", [f"https://full.org/{page}" for page in range(5)])
        for url in asked(guide, max_urls=5):
            tell(guide, fetched(url, relevance=0.0))
        for page, other in enumerate(hosts(10, 4)):
            guide.seed("default", [f"https://full.org/more/{page}", other])
        return asked(guide, max_urls=10)


def test_a_full_domain_makes_room_for_others_and_the_answer_is_full() -> None:
    found = full_domain(domain_max_pages=5)
    assert len(found) == 10
    assert not any("full.org" in url for url in found)


def test_cut_before_refusing_an_answer_stays_short() -> None:
    assert len(full_domain(domain_max_pages=5, cut="before")) < 10


def capped(limit: Any) -> int:
    """How many pages of the only domain are given, five at a time, where none of them pays."""
    with opened({"kind": "tres", "domain_max_pages": limit}) as guide:
        guide.seed("default", [f"https://a.org/{page}" for page in range(100)])
        count = 0
        while given := asked(guide, max_urls=5):
            tell(guide, *(fetched(url, relevance=0.0) for url in given))
            count += len(given)
        return count


def test_a_fixed_limit_holds_a_learned_one_gives_way_and_a_range_has_an_end() -> None:
    assert capped(10) == 10
    assert capped({"value": 10, "mode": "fixed"}) == 10
    assert capped({"value": 10, "mode": "range", "min": 5, "max": 30}) == 30
    assert capped({"value": 10}) == 100


def test_a_domain_that_pays_more_than_others_may_go_on() -> None:
    with opened({"kind": "tres", "domain_max_pages": {"value": 4}, "epsilon": 0.0}) as guide:
        guide.seed("default", [f"https://{name}.org/{page}" for name in ("good", "poor") for page in range(30)])
        given = [url for _ in range(6) for url in told_of(guide)]
        assert sum("good.org" in url for url in given) > 4


def told_of(guide: Guide) -> list[str]:
    given = asked(guide, max_urls=4)
    tell(guide, *(fetched(url, relevance=float("good.org" in url)) for url in given))
    return given


def slow_places(mode: str) -> list[bool]:
    """Which URLs of an answer lie on a slow host; its limit is fixed."""
    with opened({"kind": "tres", "slow_domains": mode, "slow_domain_ms": 1_000, "epsilon": 0.0}) as guide:
        seeds = ["https://slow.org/", "https://quick.org/"]
        guide.seed("default", seeds)
        asked(guide, max_urls=2)
        tell(guide, *(fetched(url, relevance=0.5, elapsed_ms=5_000 if "slow" in url else 50) for url in seeds))
        guide.seed("default", [f"{home}{page}" for home in seeds for page in range(5)])
        return ["slow.org" in url for url in asked(guide, max_urls=10)]


def test_slow_domains_come_last_or_not_at_all() -> None:
    assert slow_places("penalty") == [False] * 5 + [True] * 5
    assert slow_places("filter") == [False] * 5
    mixed = slow_places("off")
    assert sorted(mixed) == [False] * 5 + [True] * 5
    assert mixed != sorted(mixed)


def test_hosts_that_fail_are_passed_over_unless_nothing_else_is_left() -> None:
    with opened({"kind": "tres", "unreliable_threshold": 0.3, "epsilon": 0.0}) as guide:
        guide.seed("default", [f"https://broken.org/{page}" for page in range(12)])
        for url in asked(guide, max_urls=12):
            tell(guide, {"url": url, "error": "timeout"})
        guide.seed("default", [f"https://broken.org/more/{page}" for page in range(10)])
        guide.seed("default", [f"https://fine.org/{page}" for page in range(10)])
        found = asked(guide, max_urls=20)
        assert found
        assert all("fine.org" in url for url in found)


def test_urls_that_were_dropped_are_not_drawn_for_ever() -> None:
    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(2, 10))
        guide.define("default", {"strategy": {"kind": "tres"}, "policy": {**POLICY, "deny_domains": ["h0.org"]}})
        assert len(asked(guide, max_urls=20)) == 10
        for _ in range(MOST_MISSES):
            assert asked(guide, max_urls=20) == []
        assert stats(guide)["waiting"] == 0


def test_a_priority_set_by_hand_goes_before_every_draw_or_behind() -> None:
    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(3, 10))
        guide.seed("default", [{"url": "https://h1.org/first", "priority": 1.0}])
        guide.seed("default", [{"url": "https://h1.org/last", "priority": 0.0}])
        found = asked(guide, max_urls=32)
        assert (found[0], found[-1]) == ("https://h1.org/first", "https://h1.org/last")
        assert len(found) == 32


def test_the_domain_weights_of_the_policy_count_before_and_after_a_change() -> None:
    def order(**weights: float) -> list[str]:
        guide.define("default", {"strategy": {"kind": "tres"}, "policy": {**POLICY, "domain_weights": weights}})
        found = asked(guide, max_urls=9)
        guide.release("default", "c-1")
        return [url.split("/")[2] for url in found]

    with opened({"kind": "tres"}) as guide:
        guide.seed("default", hosts(3, 10))
        assert set(order(**{"h1.org": 50.0, "h0.org": 0.1})[:5]) == {"h1.org"}
        assert set(order(**{"h2.org": 50.0})[:5]) == {"h2.org"}
        assert "h2.org" not in order(**{"h2.org": 0.0})


def test_weights_among_the_options_of_the_strategy_go_before_those_of_the_policy() -> None:
    policy = {**POLICY, "domain_weights": {"h0.org": 2.0, "H1.org": 50.0, "h2.org": -1.0}}
    with opened({"kind": "tres", "domain_weights": {"h1.org": 0.5}}, policy=policy) as guide:
        assert learner_of(guide)._describer.weights == {"h0.org": 2.0, "h1.org": 0.5, "h2.org": 0.0}


# a restart


def test_the_same_urls_follow_with_a_restart_and_without(tmp_path: Path) -> None:
    with opened(QUICK, tmp_path / "a", goal={"topic": "birds"}) as guide:
        guide.seed("default", [HOME])
        without, told = crawled(guide, web(), 160), stats(guide)
        sheets = kept(guide)
    with opened(QUICK, tmp_path / "b", goal={"topic": "birds"}) as guide:
        guide.seed("default", [HOME])
        order = crawled(guide, web(), 40)
    for pages in (50, 30, 40):
        with Guide.open(tmp_path / "b", clock=ManualClock(1_700_000_000.0), seed=1) as guide:
            order += crawled(guide, web(), pages)
            again, after = stats(guide), kept(guide)
    assert order == without
    assert again == pytest.approx(told)
    assert after.keys() == sheets.keys()
    assert np.array_equal(after["t.net"], sheets["t.net"])
    assert np.array_equal(after["t.step"], sheets["t.step"])


def kept(guide: Guide) -> dict[str, Any]:
    tables = learner_of(guide).tables
    sheets = {"t.net": tables.networks, "t.step": tables.transitions, "t.node": tables.nodes}
    return {name: sheet.rows[: sheet.used].copy() for name, sheet in sheets.items()}


def test_another_crawl_may_begin_with_the_network() -> None:
    with opened(QUICK) as guide:
        guide.seed("default", [HOME])
        crawled(guide, web(), 100)
        weights = learner_of(guide).tables.weights(0).copy()
        guide.define("next", {"strategy": {**QUICK, "warm_start": "default"}, "policy": POLICY})
        guide.seed("next", [HOME])
        predictor: Any = running(guide, "next").strategy.predictor
        tables = predictor.tables
        assert np.array_equal(tables.weights(0), weights)
        assert np.array_equal(tables.weights(1), weights)
        assert not tables.weights(2).any()  # Adam begins anew
        assert tables.crawl[0]["taught"] == 1  # and the network speaks at once


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"domain_max_pages": {"value": 10, "mode": "free"}}, "mode"),
        ({"slow_domains": "never"}, "slow_domains"),
        ({"pages_per_rond": 5}, "pages_per_rond"),
        ({"model": "/nowhere/at/all.onnx"}, "strategy.model"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, Any], what: str) -> None:
    with opened({"kind": "tres"}) as guide, pytest.raises(MalformedRequest, match=what):
        guide.define("default", {"strategy": {"kind": "tres", **options}})


def test_the_topic_counts_before_anything_was_learned() -> None:
    with opened({"kind": "tres", "epsilon": 0.0}, goal={"topic": "birds"}) as guide:
        guide.seed("default", [HOME])
        (home,) = asked(guide, max_urls=1)
        links = [{"url": f"{HOME}{word}", "anchor": word} for word in ("cars", "owls and birds", "tax", "trade")]
        tell(guide, fetched(home, outlinks=links, relevance=0.0))
        assert "birds" in asked(guide, max_urls=1)[0]
