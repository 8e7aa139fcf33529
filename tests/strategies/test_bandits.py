"""`bandit`, `ucb`, `scorer`: strategies over arms, and what they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide.core import urls
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.arms.naming import by_folder, by_group, by_host, by_place, by_template
from crawlguide.strategies.bandit import Ridge
from crawlguide.strategies.shared.draws import gamma_by_id, uniform_by_id
from tests.strategies.site import HOME, crawled, harvest, opened, web
from tests.support import asked, fetched, tell

if TYPE_CHECKING:
    from crawlguide.strategies.arms.naming import Naming

A, B = "https://a.org/", "https://b.org/"
ARMED = ["bandit", "ucb", "scorer", "groups"]


def order(pages: int, seed: int = 1, **strategy: Any) -> list[str]:
    with opened(strategy, seed=seed) as guide:
        guide.seed("default", [HOME])
        return crawled(guide, web(), pages)


@pytest.mark.parametrize("strategy", [*({"kind": kind} for kind in ARMED), {"kind": "bandit", "algorithm": "linucb"}])
def test_whoever_learns_what_pays_finds_more(strategy: dict[str, Any]) -> None:
    found = np.mean([harvest(order(60, seed, **strategy)) for seed in range(4)])
    assert found > 1.8 * harvest(order(60, kind="breadth-first"))


@pytest.mark.parametrize("kind", ARMED)
def test_one_seed_gives_one_history_and_everything_is_fetched_once(kind: str) -> None:
    once = order(1_000, kind=kind)
    assert once == order(1_000, kind=kind)
    assert sorted(once) == sorted(web())


@pytest.mark.parametrize("kind", ["bandit", "ucb", "groups"])
def test_a_host_with_many_urls_that_pays_no_more_is_left_at_once(kind: str) -> None:
    """All its URLs were promising; only those in line are ranked anew, and no other stands in the way."""
    with opened({"kind": kind}) as guide:
        guide.seed("default", [A, B])
        many = [f"{A}x/{number}" for number in range(2_000)]
        tell(guide, fetched(A, *many, relevance=1.0), fetched(B, f"{B}y/1", f"{B}y/2", relevance=0.6))
        for _ in range(6):
            given = asked(guide, max_urls=10)
            tell(guide, *(fetched(url, relevance=float(url.startswith(B))) for url in given))
            if any(url.startswith(B) for url in given):
                return
    raise AssertionError("the other host was never tried")


@pytest.mark.parametrize("kind", ARMED)
def test_urls_that_were_imported_are_not_forgotten(kind: str) -> None:
    with opened({"kind": "random"}) as guide:
        guide.seed("default", [A + "1", A + "2"])
        guide.define("default", {"strategy": {"kind": kind}, "policy": {"default_delay_s": 0, "max_per_host": 0}})
        assert sorted(asked(guide)) == [A + "1", A + "2"]


@pytest.mark.parametrize("kind", ARMED)
def test_links_that_are_dropped_on_sight_do_not_stand_in_line(kind: str) -> None:
    with opened({"kind": kind}, policy={"deny_domains": ["b.org"], "default_delay_s": 0, "max_per_host": 0}) as guide:
        guide.seed("default", [A])
        tell(guide, fetched(A, *(f"{B}{number}" for number in range(100)), A + "1", relevance=1.0))
        assert asked(guide) == [A + "1"]


@pytest.mark.parametrize("kind", ["bandit", "ucb", "scorer"])
def test_statistics_say_how_much_was_learned(kind: str) -> None:
    with opened({"kind": kind}) as guide:
        guide.seed("default", [HOME])
        crawled(guide, web(), 20)
        found = guide.stats("default")["crawls"]["default"]["learner"]
    assert found["updates"] >= 19
    assert found["arms"] >= 1


def test_feedstocks_bandit_tries_every_template_twice_before_it_trusts_any() -> None:
    with opened({"kind": "ucb", "faithful": True}) as guide:
        guide.seed("default", [A])
        tell(guide, fetched(A, A + "x/1", A + "x/2", A + "x/3", A + "y", relevance=1.0))
        tell(guide, fetched(A + "x/1", relevance=1.0), fetched(A + "x/2", relevance=1.0))
        assert asked(guide, max_urls=1) == [A + "y"]


def named(naming: Naming, url: str, home: str = "a.org") -> str:
    return naming([url], ["a.org"], [home])[0]


def test_arms_are_named_by_what_urls_have_in_common() -> None:
    url = "https://a.org/docs/v2/item-17.html?b=1&a=2"
    assert named(by_host, url) == "a.org"
    assert named(by_place, url) == "a.org/docs"
    assert named(by_place, "https://a.org/about?of=/us/") == "a.org"
    assert named(by_folder, url) == "a.org/docs/v#/.html?a&b"
    assert named(by_template, "https://a.org/item/17/deadbeef99?b=1") == "a.org/item/{id}/{id}?b"


@pytest.mark.parametrize("url", ["https://a.org/", "https://a.org/?q=1", "https://a.org/x", "https://a.org/x/y?z=/"])
def test_link_groups_are_those_of_feedstock(url: str) -> None:
    assert named(by_group, url) == urls.link_group(url, "a.org")
    assert named(by_group, url, "b.org") == urls.link_group(url, "b.org")


def test_ridge_finds_the_weights_of_a_linear_rule_and_is_surer_where_it_has_seen_more() -> None:
    rng, model = np.random.default_rng(3), Ridge(Notebook(), "model", [0.0, 0.0, 0.0])
    x = rng.random((500, 3))
    x[:, 2] = 0.0
    model.learn(x, x @ np.array([0.5, -0.25, 9.0]))
    assert model.weights == pytest.approx([0.5, -0.25, 0.0], abs=0.01)
    seen, unseen = model.width(np.eye(3)[[0, 2]])
    assert seen < 0.2
    assert unseen == pytest.approx(1.0)
    direct = np.linalg.inv(np.eye(3) + x.T @ x)
    assert model._sheet.rows["inverse"][0] == pytest.approx(direct)


def test_draws_are_the_same_for_the_same_number_and_spread_as_they_should() -> None:
    salt = np.arange(20_000, dtype=np.uint64)
    assert (uniform_by_id(7, 5, salt) == uniform_by_id(7, 5, salt)).all()
    assert not (uniform_by_id(7, 5, salt) == uniform_by_id(7, 6, salt)).any()
    assert not (uniform_by_id(7, 5, salt) == uniform_by_id(8, 5, salt)).any()
    assert uniform_by_id(7, 5, salt).mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("shape", [0.05, 0.2, 1.0, 5.0])
def test_a_gamma_draw_has_the_mean_and_variance_of_its_shape(shape: float) -> None:
    """An arm that was never tried has a small shape: with a smaller mean it would hardly ever be drawn."""
    count = 100_000
    found = gamma_by_id(np.full(count, shape), 7, 5, np.arange(count, dtype=np.uint64))
    assert found.mean() == pytest.approx(shape, abs=5.0 * np.sqrt(shape / count))
    assert found.var() == pytest.approx(shape, rel=0.1)
