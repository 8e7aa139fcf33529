"""`layered` through a guide: what it finds, that its choices can be had again, and what it says of itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from crawlguide.lab import synthetic
from crawlguide.lab.run import Settings, run
from crawlguide.strategies.layered.learner import Layered
from tests.strategies.site import HOME, POLICY, crawled, harvest, opened, web
from tests.support import ask, asked, batch, fetched, tell

LAYERED = {"kind": "layered"}
WEB = synthetic.make(5, pages=1_500, hosts=12, topics=5)
TASK = WEB.tasks()[2]
BUDGET = 200


def learner_of(guide: Guide, name: str = "default") -> Layered:
    """The strategy's predictor, as it runs."""
    local: Any = guide._guide._guide
    (active,) = [active for crawl, active in local.crawls.known.items() if crawl.name == name]
    found = active.strategy.guarded.parts[0].predictor
    assert isinstance(found, Layered)
    return found


def order(strategy: dict[str, Any], seed: int = 1, pages: int = 100, **more: Any) -> list[str]:
    with opened(strategy, seed=seed, **more) as guide:
        guide.seed("default", [HOME])
        return crawled(guide, web(), pages)


@cache
def made(policy: str, crawlers: int = 1, repeat: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which fetches of a run in the lab were of worth, and on which hosts they were."""
    found = run(WEB, TASK, policy, repeat, Settings(budget=BUDGET, crawlers=crawlers))
    assert len(found.relevant) == BUDGET
    return tuple(found.relevant), tuple(found.host)


def test_it_is_the_strategy_of_a_crawl_that_names_none() -> None:
    with Guide.open(":memory:") as guide:
        guide.define("default", {"policy": POLICY})
        guide.seed("default", [HOME])
        assert ask(guide)["metadata"]["strategy"] == "layered"
        assert ask(guide)["metadata"]["last_model_version"] == Layered.version


def test_the_section_that_pays_is_found_and_kept_to_without_any_goal() -> None:
    assert harvest(order(LAYERED, pages=60)) > 0.5  # of all pages an eighth pays


def test_no_link_is_thrown_away() -> None:
    assert set(order(LAYERED, pages=1_000)) == set(web())


def test_it_finds_clearly_more_than_chance() -> None:
    assert sum(made("layered")[0]) > 2 * sum(made("random")[0])


def test_eight_crawlers_find_clearly_more_than_chance_too() -> None:
    assert sum(made("layered", crawlers=8)[0]) > 1.5 * sum(made("random", crawlers=8)[0])


def test_the_same_seed_makes_the_same_choices() -> None:
    with_cache, again = made("layered"), made.__wrapped__("layered")
    assert with_cache == again
    assert with_cache != made("layered", repeat=1)
    assert order(LAYERED) == order(LAYERED)


def test_the_topic_counts_before_anything_was_learned() -> None:
    with opened(LAYERED, goal={"topic": "music"}) as guide:
        guide.seed("default", [HOME])
        tell(guide, fetched(asked(guide)[0], f"{HOME}cars/", f"{HOME}music/", f"{HOME}news/", relevance=0.0))
        assert asked(guide, max_urls=1) == [f"{HOME}music/"]


def test_what_is_given_back_is_given_again() -> None:
    with opened(LAYERED) as guide:
        guide.seed("default", [HOME])
        assert asked(guide) == [HOME]
        tell(guide, {"url": HOME, "error": "released"})
        assert asked(guide) == [HOME]


def test_late_rewards_alone_are_enough_to_learn_from() -> None:
    with opened(LAYERED) as guide:
        guide.seed("default", [f"https://{name}.org/{number}" for name in ("good", "bad") for number in range(40)])
        for _ in range(5):
            given = asked(guide, max_urls=6)
            tell(guide, *(fetched(url) for url in given))
            tell(guide, *({"url": url, "reward": float("good" in url)} for url in given))
        assert sum("good" in url for url in asked(guide, max_urls=10)) >= 9


def test_a_host_that_fails_is_left_alone() -> None:
    with opened(LAYERED) as guide:
        guide.seed("default", [f"https://{name}.org/{number}" for name in ("well", "ill") for number in range(40)])
        for _ in range(4):
            given = asked(guide, max_urls=6)
            tell(guide, *({"url": url, "error": "dns"} if "ill" in url else fetched(url) for url in given))
        assert sum("ill" in url for url in asked(guide, max_urls=10)) <= 2


def test_it_says_in_words_what_its_opinion_rests_on() -> None:
    with opened(LAYERED, goal={"topic": "birds"}) as guide:
        guide.seed("default", [HOME])
        fetches = crawled(guide, web(), 40)
        waiting = next(url for url in web() if "/birds/" in url and url not in fetches)
        said = learner_of(guide).explain(batch([waiting]))
        assert 1 <= len(said) <= 3
        assert any("birds" in one or "paid" in one or "goal" in one for one in said)


def test_without_a_goal_nothing_is_said_of_it() -> None:
    with opened(LAYERED) as guide:
        guide.seed("default", [HOME])
        crawled(guide, web(), 20)
        found = learner_of(guide)
        said = [one for url in web() for one in found.explain(batch([url]))]
    assert any("paid" in one for one in said)
    assert not any("goal" in one or "topic" in one for one in said)


def test_statistics() -> None:
    with opened(LAYERED) as guide:
        guide.seed("default", [HOME])
        fetches = crawled(guide, web(), 50)
        told = guide.stats("default")["crawls"]["default"]["learner"]
    assert told.keys() == {"urls", "pages", "places", "hit_rate", "luck", "examples"}
    assert told["pages"] == told["examples"] == len(fetches)
    assert told["urls"] >= len(fetches)
    assert 0.0 < told["hit_rate"] <= 1.0
    assert 0.0 < told["luck"] <= 1.0


def test_a_warm_start_brings_weights_and_nothing_else() -> None:
    with opened(LAYERED) as guide:
        guide.seed("default", [HOME])
        crawled(guide, web(), 60)
        guide.define("next", {"strategy": {**LAYERED, "warm_start": "default"}, "policy": POLICY})
        guide.seed("next", [HOME])
        first, second = learner_of(guide).memory, learner_of(guide, "next").memory
        for name in ("weights", "word_weights", "hub_weights", "hub_word_weights"):
            before, after = getattr(first, name), getattr(second, name)
            assert np.array_equal(before.rows["weight"][: before.used], after.rows["weight"][: after.used])
        assert np.count_nonzero(second.word_weights.rows["weight"]) > 5
        assert (second.links.used, second.pages.used, second.crawl.rows["examples"][0]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"without": ["lukc"]}, r"strategy\.without: expected some of parents.*'lukc'"),
        ({"most_urls": 10}, r"strategy\.most_urls: expected an integer from 10000"),
        ({"witout": []}, r"strategy\.witout: unknown option"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, Any], what: str) -> None:
    with opened(LAYERED) as guide, pytest.raises(MalformedRequest, match=what):
        guide.define("default", {"strategy": LAYERED | options})


def test_parts_that_are_left_out_change_the_order() -> None:
    assert order({**LAYERED, "without": ["learning", "places", "yield"]}) != order(LAYERED)
