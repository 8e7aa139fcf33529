"""The parts of `tres`, each against what can be worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xxhash

from crawlguide.core.definition import Goal
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.tres import features
from crawlguide.strategies.tres import network as network_kernels
from crawlguide.strategies.tres import replay as replay_kernels
from crawlguide.strategies.tres import tree as tree_kernels
from crawlguide.strategies.tres.learner import Tres
from crawlguide.strategies.tres.options import Options
from crawlguide.strategies.tres.records import (
    CRAWL,
    DOMAIN_BEFORE,
    FEATURES,
    NEXT,
    ONLINE,
    QUEUE,
    SAMPLES,
    TARGET,
    TRANSITION,
    WEIGHTS,
    X,
)
from crawlguide.strategies.tres.replay import ReplayBuffer
from crawlguide.strategies.tres.tables import Tables
from tests.strategies import lessons
from tests.strategies.lessons import ids
from tests.support import batch

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import F32, F64

PARENT = FEATURES.index("parent_score")
# kernels have no annotations: their signatures say more
network: Any = network_kernels
replay: Any = replay_kernels
tree: Any = tree_kernels


def empty(seed: int = 1) -> Tables:
    return Tables(Notebook(), seed, 64, 0.6, None)


def waiting(tables: Tables, leaf: int) -> list[int]:
    count = int(tables.leaves.rows["waiting"][leaf])
    return sorted(tables.links.rows["id"][tables.queues.rows[leaf * QUEUE : leaf * QUEUE + count]].tolist())


def arrive(tables: Tables, ids: list[int], **columns: list[float]) -> None:
    """URLs of these features wait."""
    rows = tables.claim(np.array(ids, np.uint64))
    for name, values in columns.items():
        tables.links.rows["x"][rows, FEATURES.index(name)] = values
    tables.enter(rows)


def fetch(tables: Tables, reward: float, **columns: float) -> int:
    x = np.zeros(X, np.float32)
    for name, value in columns.items():
        x[FEATURES.index(name)] = value
    return int(tree.add_sample(tables.nodes.rows, tables.leaves.rows, tables.samples.rows, x, reward))


def split_of(tables: Tables, leaf: int) -> F64:
    found = np.empty(3)
    count = min(int(tables.leaves.rows["heard"][leaf]), SAMPLES)
    tree.best_split(tables.samples.rows, leaf * SAMPLES, count, found)
    return found


# the tree


def test_a_split_is_where_the_variance_of_rewards_falls_most() -> None:
    tables = empty()
    for parent, path, reward in ((0.1, 0.5, 0), (0.2, 0.1, 0), (0.3, 0.9, 1), (0.8, 0.2, 1), (0.9, 0.6, 1)):
        fetch(tables, reward, parent_score=parent, path_depth=path)
    feature, threshold, gain = split_of(tables, 0)
    assert (feature, threshold) == (PARENT, pytest.approx(0.2))
    assert gain == pytest.approx(5 * 0.24)  # the variance, all of it, times the number of samples


def test_equal_rewards_are_not_split() -> None:
    tables = empty()
    for number in range(10):
        fetch(tables, 0.5, parent_score=number / 10)
    assert split_of(tables, 0)[0] == -1


def test_equal_features_are_not_split() -> None:
    tables = empty()
    for number in range(10):
        fetch(tables, number % 2, parent_score=0.5)
    assert split_of(tables, 0)[0] == -1


def test_the_queue_and_the_samples_of_a_leaf_are_divided_when_it_is_split() -> None:
    tables = empty()
    arrive(tables, [1, 2, 3], parent_score=[0.1, 0.9, 0.2])
    for parent in (0.1, 0.2, 0.8, 0.9, 1.0):
        fetch(tables, float(parent > 0.5), parent_score=parent)
    tables.split(0, PARENT, 0.5)
    assert (waiting(tables, 0), waiting(tables, 1)) == ([1, 3], [2])
    assert tables.leaves.rows["heard"][:2].tolist() == [2, 3]
    assert tables.leaves.rows["total"][:2].tolist() == [0.0, 3.0]
    assert tables.leaves.rows["depth"][:2].tolist() == [1, 1]
    arrive(tables, [4, 5], parent_score=[0.5, 0.6])  # at most the threshold goes left
    assert (waiting(tables, 0), waiting(tables, 1)) == ([1, 3, 4], [2, 5])


def test_a_fetch_changes_only_its_own_leaf() -> None:
    tables = empty()
    tables.split(0, PARENT, 0.5)
    before = tables.leaves.rows[0].copy()
    assert fetch(tables, 1.0, parent_score=0.9) == 1
    assert tables.leaves.rows[0] == before


def test_of_many_samples_a_leaf_is_split_by_the_newest() -> None:
    tables = empty()
    for number in range(SAMPLES + 3):
        fetch(tables, float(number >= SAMPLES), parent_score=float(number >= SAMPLES))
    assert split_of(tables, 0)[0] == PARENT
    assert tables.leaves.rows["total"][0] == 3.0


# the queues of leaves


def test_a_url_that_leaves_its_queue_is_drawn_no_more() -> None:
    tables = empty()
    arrive(tables, [1, 2, 3])
    tables.leave(tables.find(np.array([2], np.uint64)), 2)
    assert waiting(tables, 0) == [1, 3]
    tables.leave(tables.find(np.array([2, 3], np.uint64)), 2)
    assert waiting(tables, 0) == [1]


def test_a_full_queue_holds_an_even_sample_of_all_that_came() -> None:
    tables = empty()
    for start in range(0, 4 * QUEUE, 512):
        arrive(tables, list(range(start + 1, start + 513)))
    kept = np.array(waiting(tables, 0))
    assert len(kept) == QUEUE
    quarters = np.bincount((kept - 1) // QUEUE, minlength=4) / QUEUE
    assert quarters == pytest.approx([0.25] * 4, abs=0.04)
    assert tables.live == QUEUE


def drawn(tables: Tables, wanted: int, most: int) -> list[int]:
    out = np.empty(tables.leaves.used + wanted, np.int64)
    leaves = tables.leaves.rows[: tables.leaves.used]
    count = tree.draw(leaves, tables.queues.rows, tables.crawl, tables.seed, wanted, most, out)
    found: list[int] = tables.links.rows["id"][out[:count]].tolist()
    return found


def test_one_is_drawn_of_each_leaf_and_several_where_leaves_are_few() -> None:
    tables = empty()
    arrive(tables, list(range(1, 101)), parent_score=[0.0] * 50 + [1.0] * 50)
    tables.split(0, PARENT, 0.5)
    low, high = drawn(tables, wanted=2, most=10)
    assert low <= 50 < high
    assert len(drawn(tables, wanted=20, most=1)) == 2
    several = drawn(tables, wanted=20, most=20)
    assert len(set(several)) == 20
    assert sum(one <= 50 for one in several) == 10
    assert len(set(drawn(tables, wanted=1_000, most=1_000))) == 100


def test_every_url_of_a_leaf_is_drawn_as_often_as_the_others() -> None:
    tables = empty()
    arrive(tables, list(range(10)))
    counts = np.bincount([drawn(tables, 1, 1)[0] for _ in range(5_000)], minlength=10)
    assert counts.min() > 400
    assert counts.max() < 600


def test_epsilon_says_how_often_the_order_is_left_to_chance() -> None:
    tables, by_value = empty(), np.arange(100)[::-1].copy()
    order = np.empty(100, np.int64)
    tree.epsilon_greedy(0.0, tables.crawl, 1, by_value, order)
    assert order.tolist() == by_value.tolist()
    firsts = []
    for _ in range(2_000):
        short = np.empty(1, np.int64)
        tree.epsilon_greedy(0.5, tables.crawl, 1, by_value, short)
        firsts.append(int(short[0]))
    assert firsts.count(99) / 2_000 == pytest.approx(0.505, abs=0.04)
    tree.epsilon_greedy(1.0, tables.crawl, 1, by_value, order)
    assert sorted(order.tolist()) == list(range(100))
    assert order.tolist() != by_value.tolist()


# the network


def by_hand(weights: F32 | F64, x: F32) -> F64:
    """The same network in numpy."""
    w = weights.astype(np.float64)
    first = x @ w[:330].reshape(11, 30) + w[330:360]
    first = np.where(first > 0, first, 0.1 * first)
    second = first @ w[360:810].reshape(30, 15) + w[810:825]
    second = np.where(second > 0, second, 0.1 * second)
    value: F64 = second @ w[825:840] + w[840]
    return value


def some_weights(seed: int) -> F32:
    weights = np.empty(WEIGHTS, np.float32)
    network.randomise(weights, seed)
    return weights


def some_transitions(count: int = 5) -> Records:
    chance, made = np.random.default_rng(3), np.zeros(count, TRANSITION)
    made["x"], made["next"] = chance.random((count, X)), chance.random((count, NEXT, X))
    made["reward"] = chance.random(count)
    made["ways"] = np.arange(count) % (NEXT + 1)  # the first leads nowhere
    return made


def test_the_network_says_what_numpy_says() -> None:
    x, found = np.random.default_rng(1).random((50, X)).astype(np.float32), np.empty(50)
    network.values(some_weights(2), x, found)
    assert found == pytest.approx(by_hand(some_weights(2), x), rel=1e-4, abs=1e-5)


def test_the_target_is_the_target_networks_value_of_the_online_networks_choice() -> None:
    online, target, made = some_weights(1), some_weights(2), some_transitions()
    found = np.empty(len(made))
    replay.targets(made, online, target, 0.9, found)
    for one, value in zip(made, found, strict=True):
        following = 0.0
        if one["ways"]:
            ways = one["next"][: one["ways"]]
            following = by_hand(target, ways)[by_hand(online, ways).argmax()]
        assert value == pytest.approx(one["reward"] + 0.9 * following, rel=1e-4)


def train(weights: list[F32], made: Records, gamma: float = 0.0, steps: int = 1) -> tuple[Records, F64]:
    crawl, priorities, sums = np.zeros(1, CRAWL), np.ones(len(made)), np.zeros(16)
    replay.build_sums(sums, priorities, 0.6)
    for _ in range(steps):
        settings = np.array([0.01, gamma, 0.6, 1e-4])
        replay.train(made, priorities, sums, *weights, settings, crawl, 7, np.empty(64, np.int64))
    return crawl, priorities


def test_the_first_step_of_adam_goes_against_the_slope_of_every_weight() -> None:
    made = some_transitions(1)  # one transition: whatever is looked at, it is this
    before = some_weights(4)
    weights = [before.copy(), before.copy(), np.zeros(WEIGHTS, np.float32), np.zeros(WEIGHTS, np.float32)]
    train(weights, made)
    error = by_hand(before, made["x"])[0] - made["reward"][0]
    for place in (0, 100, 345, 500, 700, 815, 830, 840):
        shifted = before.astype(np.float64)
        shifted[place] += 1e-5
        slope = 2 * error * (by_hand(shifted, made["x"])[0] - by_hand(before, made["x"])[0]) / 1e-5
        assert weights[0][place] - before[place] == pytest.approx(-0.01 * np.sign(slope), abs=1e-4)


def test_training_learns_rewards_and_what_follows_them() -> None:
    made = some_transitions(8)
    weights = [some_weights(4), some_weights(5), np.zeros(WEIGHTS, np.float32), np.zeros(WEIGHTS, np.float32)]
    crawl, priorities = train(weights, made, gamma=0.9, steps=3_000)
    wanted = np.empty(len(made))
    replay.targets(made, weights[0], weights[1], 0.9, wanted)
    assert by_hand(weights[0], made["x"]) == pytest.approx(wanted, abs=0.1)
    assert priorities.max() < 0.2  # what is learned is looked at seldom
    assert crawl["trained"][0] == 3_000


def test_transitions_are_looked_at_as_often_as_their_priorities_say() -> None:
    priorities, sums = np.array([1.0, 0.0, 3.0, 4.0]), np.zeros(16)
    replay.build_sums(sums, priorities, 1.0)
    shares = (np.arange(800) + 0.5) / 800
    counts = np.bincount([replay.pick(sums, share) for share in shares], minlength=4)
    assert counts.tolist() == [100, 0, 300, 400]


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        ({"target_update_unit": "steps", "target_update_freq": 3}, [72, 84, 96]),  # training begins at 64, every 4
        ({"target_update_unit": "transitions", "target_update_freq": 30}, [90]),
        ({"target_update_unit": "rounds", "target_update_freq": 2, "pages_per_round": 20}, [80]),
    ],
)
def test_the_target_network_follows_every_so_many_steps_transitions_or_rounds(
    options: dict[str, Any], moves: list[int]
) -> None:
    tables = empty()
    buffer = ReplayBuffer(Options(min_replay_size=64, replay_capacity=64, **options), tables)
    chance, found = np.random.default_rng(1), []
    for number in range(1, 100):
        before = tables.weights(TARGET).copy()
        buffer.add(chance.random(X).astype(np.float32), chance.random(), np.zeros(0, np.int64))
        if not np.array_equal(tables.weights(TARGET), before):
            found.append(number)
            assert np.array_equal(tables.weights(TARGET), tables.weights(ONLINE))
    assert found == moves


def test_by_default_the_target_network_moves_every_400_fetches() -> None:
    options = Options()
    assert options.target_update_unit == "steps"
    assert options.target_update_freq * options.replay_period == 400


# features


def test_features_are_named_and_ordered_as_foragers() -> None:
    assert FEATURES == (
        "depth", "domain_relevance", "domain_count", "domain_failure_rate", "parent_score", "anchor_similarity",
        "sibling_score", "path_depth", "has_query", "domain_weight", "round_discovered",
    )  # fmt: skip


def test_features_follow_from_the_columns_of_a_batch_as_far_as_they_go() -> None:
    rows = batch(
        ["https://a.org/x/y?q=1", "https://b.org/"], depth=[3.0, 0.0], parents=[2.0, 0.0], parent_sum=[1.0, 0.0],
        pages=[3.0, 0.0], failures=[1.0, 0.0], judged=[3.0, 0.0], relevance_sum=[1.5, 0.0],
    )  # fmt: skip
    first, second = features.Describer(features.AnchorSimilarity(Goal()), {"a.org": 3.0}).of_batch(rows, np.arange(2))
    by_name = dict(zip(FEATURES, first.tolist(), strict=True))
    assert by_name["depth"] == pytest.approx(0.3)
    assert by_name["domain_relevance"] == pytest.approx(0.5)
    assert by_name["domain_failure_rate"] == pytest.approx(0.25)
    assert by_name["parent_score"] == pytest.approx(0.5)
    assert (by_name["path_depth"], by_name["has_query"]) == (pytest.approx(0.2), 1.0)
    assert by_name["domain_weight"] == pytest.approx(0.75)
    assert second[FEATURES.index("domain_weight")] == 0.5


def features_of(tres: Tres, url: str) -> dict[str, float]:
    (row,) = tres.tables.find(ids(url))
    return dict(zip(FEATURES, tres.tables.links.rows["x"][row].tolist(), strict=True))


def test_domain_features_are_those_of_the_registrable_domain() -> None:
    tres = Tres(Options(), 1, Goal())
    tres.learn(lessons.told({"url": "https://www.site.co.uk/", "status": 200, "relevance": 1.0}))
    tres.learn(lessons.told({"url": "https://docs.site.co.uk/", "status": 500}))
    tres.learn(lessons.seeds("https://shop.site.co.uk/new", "https://other.co.uk/new"))
    same, other = features_of(tres, "https://shop.site.co.uk/new"), features_of(tres, "https://other.co.uk/new")
    assert same["domain_count"] == pytest.approx(np.log1p(2.0) / 8.0)
    assert same["domain_failure_rate"] == pytest.approx(0.5)
    assert (other["domain_count"], other["domain_failure_rate"]) == (0.0, 0.0)


def test_domain_relevance_is_the_mean_of_judged_pages_also_of_those_judged_late() -> None:
    tres = Tres(Options(), 1, Goal())
    pages = [{"url": f"https://a.org/{number}", "status": 200} for number in range(4)]
    tres.learn(lessons.told(pages[0] | {"relevance": 0.8}, pages[1], pages[2], pages[3]))
    tres.learn(lessons.seeds("https://a.org/early"))
    tres.learn(lessons.told({"url": "https://a.org/1", "reward": 0.2}))
    tres.learn(lessons.seeds("https://a.org/later"))
    assert features_of(tres, "https://a.org/early")["domain_relevance"] == pytest.approx(0.8)
    assert features_of(tres, "https://a.org/later")["domain_relevance"] == pytest.approx(0.5)
    assert features_of(tres, "https://a.org/later")["domain_count"] == pytest.approx(np.log1p(4.0) / 8.0)


def test_of_a_batch_too_the_hosts_of_a_domain_count_together() -> None:
    rows = batch(["https://a.site.org/", "https://b.site.org/", "https://c.org/"], pages=[2.0, 1.0, 5.0])
    x = features.Describer(features.AnchorSimilarity(Goal()), {}).of_batch(rows, np.arange(3))
    assert x[:, features.DOMAIN_COUNT] == pytest.approx(np.log1p([3.0, 3.0, 5.0]) / 8.0)


def test_path_depth_is_the_number_of_segments() -> None:
    urls = ["https://a.org/", "https://a.org/x", "https://a.org/x/", "https://a.org/x/y?z=/a/b", "https://a.org//x"]
    assert features.path_depth(urls).tolist() == [0.0, 0.1, 0.1, 0.2, 0.1]


def test_domains_of_version_0_1_0_are_taken_over() -> None:
    notebook = Notebook()
    before = notebook.sheet("t.domain", DOMAIN_BEFORE)
    before.fit(1)
    before.rows[0] = (xxhash.xxh3_64_intdigest(b"a.org"), 4.0, 1.0, 2.0)
    tables = Tables(notebook, 1, 64, 0.6, None)
    (row,) = tables.domain_rows(["www.a.org"])
    assert tables.domains.rows[row].tolist()[1:] == (4.0, 1.0, 4.0, 2.0)


def test_records_that_version_0_1_0_kept_for_hosts_are_added_to_their_domains_once() -> None:
    notebook = Notebook()
    before = notebook.sheet("t.domain", DOMAIN_BEFORE)
    before.fit(2)
    before.rows[0] = (xxhash.xxh3_64_intdigest(b"a.org"), 4.0, 1.0, 2.0)
    before.rows[1] = (xxhash.xxh3_64_intdigest(b"www.a.org"), 6.0, 0.0, 3.0)
    tables = Tables(notebook, 1, 64, 0.6, None)
    for _ in range(2):
        (row,) = tables.domain_rows(["www.a.org"])
        assert tables.domains.rows[row].tolist()[1:] == (10.0, 1.0, 10.0, 5.0)


def test_words_like_the_goal_count_and_words_like_the_anti_reference_count_against() -> None:
    anchors, urls = (
        ["classical music and orchestras", "car tyres", ""],
        ["https://a.org/1"] * 2 + ["https://a.org/music"],
    )
    music, tyres, bare = features.AnchorSimilarity(Goal(topic="music")).of(anchors, urls)
    assert music > tyres
    assert bare > tyres
    less, _, _ = features.AnchorSimilarity(Goal(topic="music", anti_reference="orchestras")).of(anchors, urls)
    assert less < music
    assert features.AnchorSimilarity(Goal()).of(anchors, urls).tolist() == [0.0, 0.0, 0.0]
