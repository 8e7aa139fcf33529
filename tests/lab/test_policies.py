"""The policies of the lab: each does what its name says, through the real guide."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide import strategies
from crawlguide.core import plugs, urls
from crawlguide.core.definition import Goal
from crawlguide.core.errors import ConfigError
from crawlguide.core.protocols import Learner
from crawlguide.lab import policies, policy_names, synthetic
from crawlguide.lab.policies import _shared, arms, feedstock, oracle_full, tres_reconstruction
from crawlguide.lab.policies._shared import share, topic_words
from crawlguide.lab.run import Settings, run

if TYPE_CHECKING:
    from crawlguide.lab.pages import Web
    from crawlguide.lab.results import Run

CALM = {"traps": 0.0, "dead": 0.0, "duplicates": 0.0, "redirects": 0.0, "failing": 0.0, "mirrors": 0}
WEB: Web = synthetic.make(5, pages=1_500, hosts=12, topics=5, **CALM)
TASK = WEB.tasks()[1]
BUDGET = 300


@cache
def made(policy: str, repeat: int = 0, batch: int = 10) -> Run:
    return run(WEB, TASK, policy, repeat, Settings(budget=BUDGET, batch=batch))


def harvest(policy: str) -> float:
    return sum(sum(made(policy, repeat).relevant) for repeat in range(2)) / (2 * BUDGET)


@pytest.mark.parametrize("kind", policies.kinds())
def test_every_policy_is_a_strategy_that_learns(kind: str) -> None:
    plug = plugs.module(policies, kind, "strategy.kind")
    built = plug.build(plugs.options(plug, {"kind": policies.plug(kind)}, "strategy"), 0, Goal(topic="cats"))
    assert isinstance(built.predictor, Learner)
    assert built.weights.relevance == 1.0
    assert built.weights.freshness == 0.0


@pytest.mark.parametrize("kind", [kind for kind in policies.kinds() if kind != "feedstock"])
def test_every_policy_spends_its_budget(kind: str) -> None:
    assert len(made(kind).relevant) == BUDGET


@pytest.mark.parametrize("kind", policies.kinds())
def test_one_seed_gives_one_history(kind: str) -> None:
    once = made(kind)
    again = run(WEB, TASK, kind, 0, Settings(budget=BUDGET))
    assert (once.relevant, once.host, once.p) == (again.relevant, again.host, again.p)


@pytest.mark.parametrize("kind", ["keyword", "ache"])
def test_whoever_looks_for_the_topic_finds_more_than_chance(kind: str) -> None:
    assert harvest(kind) > 1.3 * harvest("random")


def test_references_stand_above_all() -> None:
    best = max(harvest(kind) for kind in ("keyword", "relational", "ache", "tres-reconstruction", "arms"))
    assert harvest("ceiling") >= harvest("oracle-full") >= best
    assert harvest("oracle-full") >= harvest("oracle-one-hop")


def test_feedstock_starves_and_its_repair_does_not() -> None:
    assert len(made("feedstock-repaired").relevant) == BUDGET
    assert len(made("feedstock").relevant) < BUDGET


def test_words_of_a_topic_are_found_as_parts_of_others_too() -> None:
    words = topic_words(Goal(topic="audio_Music"))
    assert words == ("audio", "music")
    assert share(words, "https://a.org/Musical/") == 0.5


def test_keywords_come_before_the_topic() -> None:
    assert topic_words(Goal(topic="x", keywords=("SQL", "index"))) == ("sql", "index")


def test_groups_are_merged_into_the_smallest_of_their_kind() -> None:
    groups = {"same:a": [1, 2, 3], "same:b": [4, 5], "same:c": [6], "cross:d": [7, 8]}
    assert feedstock.merged(groups, 3) == {"same:a": [1, 2, 3], "same:b": [4, 5, 6], "cross:d": [7, 8]}


def test_a_link_group_is_nearness_and_first_segment() -> None:
    assert urls.link_group("https://a.org/docs/x", "a.org") == "same:docs"
    assert urls.link_group("https://b.org/", "a.org") == "cross:_root"


def test_q_moves_by_its_rate_towards_reward_and_best_next() -> None:
    assert feedstock.updated(q=0.5, reward=1.0, best_next=0.5, rate=0.2, discount=0.9) == pytest.approx(0.69)


def test_templates_forget_numbers_and_names_of_files() -> None:
    assert arms.template("https://a.org/v2/post/17/x.html?b=1&a=2") == arms.template(
        "https://a.org/v3/post/9/y.html?a=&b="
    )
    assert arms.template("https://a.org/v2/x.html") != arms.template("https://a.org/v2/x.pdf")


def test_a_tree_splits_where_it_separates_rewards_best() -> None:
    x = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 1.0], [1.0, 2.0]])
    assert tres_reconstruction.best_split(x, np.array([0.0, 0.0, 1.0, 1.0])) == (0, 0.0)
    assert tres_reconstruction.best_split(x, np.ones(4)) is None


def test_a_tree_routes_what_waits_to_the_new_leaves() -> None:
    features = np.array([[float(number % 2)] for number in range(20)])
    rewards, tree = features[:, 0].copy(), tres_reconstruction.Tree()
    tree.root.waiting = [10, 11, 12]
    for number in range(tres_reconstruction.MIN_SAMPLES):
        tree.experience(number, features, rewards)
    assert sorted(sorted(leaf.waiting) for leaf in tree.leaves) == [[10, 12], [11]]


def test_the_network_learns_a_simple_function() -> None:
    chance = np.random.default_rng(0)
    network, x = tres_reconstruction.Network((2, 30, 15, 1), chance), chance.random((64, 2))
    target = x[:, 0] - x[:, 1]
    first = np.abs(network.step(x, target, np.ones(64), 0.01)).mean()
    for _ in range(300):
        last = np.abs(network.step(x, target, np.ones(64), 0.01)).mean()
    assert last < 0.1 * first


def test_heads_are_the_best_before_and_after() -> None:
    count = 10 * _shared.HEAD
    before, after = np.arange(count, dtype=float), -np.arange(count, dtype=float)
    found = set(_shared.heads(before, after, np.arange(count)).tolist())
    assert found == {*range(_shared.HEAD), *range(count - _shared.HEAD, count)}


def test_foresight_takes_the_shortest_way_to_what_is_hidden() -> None:
    web = {"seed": ("a", "b"), "a": ("c",), "b": ("x",), "c": ("gold",), "x": (), "gold": (), "y": ()}
    order = oracle_full.Foresight(web, frozenset({"gold", "elsewhere"})).order(["seed"], 10)
    assert order == ["seed", "a", "c", "gold"]


def test_foresight_ends_with_its_budget() -> None:
    web = {"seed": ("a", "b", "c"), "a": (), "b": (), "c": ()}
    assert oracle_full.Foresight(web, frozenset({"a", "b", "c"})).order(["seed"], 3) == ["seed", "a", "b"]


def test_a_name_nobody_knows_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'keyword'"):
        policy_names.chosen(["keywrd"])


def test_oracle_means_all_references() -> None:
    assert policy_names.chosen(["oracle"]) == ["oracle-one-hop", "oracle-full", "ceiling"]


def test_all_means_the_policies_of_the_lab_the_classics_and_the_default() -> None:
    chosen = policy_names.chosen(["all"])
    assert set(chosen) == {*policies.kinds(), *policy_names.CLASSICS, "layered", "ceiling"}
    assert chosen[-3:] == ["oracle-one-hop", "oracle-full", "ceiling"]


def test_no_policy_of_the_lab_is_called_like_a_strategy_of_the_product() -> None:
    assert not set(policies.kinds()) & set(plugs.kinds(strategies))


def test_a_module_of_your_own_is_a_policy() -> None:
    assert policy_names.chosen(["tests.lab.oracles.random"]) == ["tests.lab.oracles.random"]
    with pytest.raises(ConfigError, match=r"expected a module, got 'tests.nothing'"):
        policy_names.chosen(["tests.nothing"])
    with pytest.raises(ConfigError, match=r"expected a module with Options and build; tests.lab.made has no Options"):
        policy_names.chosen(["tests.lab.made"])
