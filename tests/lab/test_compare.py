"""Comparisons: differences over the same tasks, and how sure one may be of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from crawlguide.core.errors import DataError
from crawlguide.lab import compare as comparing
from crawlguide.lab.compare import compare, interval
from crawlguide.lab.report.formatting import saturation
from crawlguide.lab.results import Run
from crawlguide.lab.summary import Summary
from tests.lab.made import made, results, run

BUDGET = 100


def found(policy: str, task: str, hits: int, repeat: int = 0) -> Run:
    return run([1] * hits + [0] * (BUDGET - hits), policy=policy, task=task, repeat=repeat, reachable=2 * BUDGET)


def summary(*runs: Run) -> Summary:
    return Summary(results(list(runs)))


def test_a_comparison_by_hand() -> None:
    """Task a: +.20 and +.10 in its two repeats; b: -.05; c: even. The mean over tasks is (.15 - .05 + 0) / 3."""
    said = compare(
        summary(
            found("x", "a", 50), found("y", "a", 30), found("x", "a", 40, repeat=1), found("y", "a", 30, repeat=1),
            found("x", "b", 10), found("y", "b", 15), found("x", "c", 7), found("y", "c", 7),
        ),
        "x", "y",
    )  # fmt: skip
    assert said.difference == pytest.approx((0.15 - 0.05 + 0.0) / 3)
    assert (said.wins, said.ties, said.losses) == (1, 1, 1)
    assert (said.worst, said.pairs) == (("made", "b"), 4)
    assert said.worst_difference == pytest.approx(-0.05)
    assert said.low < said.difference < said.high
    assert not said.settled


def test_only_what_both_have_run_counts() -> None:
    said = compare(
        summary(found("x", "a", 50), found("y", "a", 30), found("x", "b", 99), found("y", "c", 99)), "x", "y"
    )
    assert (said.difference, said.pairs) == pytest.approx((0.2, 1))
    assert np.isnan(said.low)


def test_where_everything_was_found_the_way_there_decides() -> None:
    early, late = [1] * 20 + [0] * (BUDGET - 20), [0] * (BUDGET - 20) + [1] * 20
    ways = {"early": early, "late": late}
    table = summary(*(run(hits, policy=name, task="a", reachable=20) for name, hits in ways.items()))
    assert table.saturated
    assert table.deciding == "auc"
    assert table.policies == ["early", "late"]
    assert compare(table, "early", "late", table.last).difference == 0
    assert compare(table, "early", "late").difference > 0.1
    assert "This run is saturated" in saturation(table)
    unended = summary(*(run(hits, policy=name, task="a", reachable=40) for name, hits in ways.items()))
    assert (unended.saturated, unended.deciding, saturation(unended)) == (False, f"harvest@{BUDGET}", "")


def test_policies_that_never_met_cannot_be_compared() -> None:
    said = compare(summary(found("x", "a", 50), found("y", "b", 30)), "x", "y")
    assert np.isnan(said.difference)
    assert (said.worst, said.pairs, said.settled) == (None, 0, False)


def test_a_comparison_turned_round_changes_its_signs() -> None:
    table = Summary(made(4, 2, 600))
    one, other = compare(table, "layered", "keyword"), compare(table, "keyword", "layered")
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)


def test_one_seed_gives_one_interval() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.2, (8, 3))
    assert interval(values, np.random.default_rng(5)) == interval(values, np.random.default_rng(5))
    assert interval(values, np.random.default_rng(5)) != interval(values, np.random.default_rng(6))


def test_repeats_of_one_task_are_not_taken_for_tasks() -> None:
    """Eight tasks that differ, each repeated with the same outcome: repeating must not make us surer."""
    tasks = np.random.default_rng(2).normal(0.0, 0.2, (8, 1))
    once, often = (interval(np.repeat(tasks, times, axis=1), np.random.default_rng(0)) for times in (1, 10))
    assert often[1] - often[0] == pytest.approx(once[1] - once[0], rel=0.05)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng, truth, covered, trials = np.random.default_rng(3), 0.1, 0, 100
    for _ in range(trials):
        low, high = interval(truth + rng.normal(0, 0.1, (20, 1)) + rng.normal(0, 0.05, (20, 3)), rng)
        covered += low <= truth <= high
    assert 85 <= covered <= 100


@given(some.lists(some.lists(some.floats(-1, 1), min_size=1, max_size=3), min_size=2, max_size=6))
def test_an_interval_lies_within_what_was_seen_whatever_is_missing(rows: list[list[float]]) -> None:
    values = np.full((len(rows), 3), np.nan)
    for task, row in zip(values, rows, strict=True):
        task[-len(row) :] = row
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "RESAMPLES", 200)
        low, high = interval(values, np.random.default_rng(0))
    assert np.nanmin(values) - 1e-12 <= low <= high <= np.nanmax(values) + 1e-12


def test_every_task_counts_the_same_however_often_it_was_repeated() -> None:
    table = summary(found("x", "a", 10), found("x", "a", 30, repeat=1), found("x", "b", 80))
    assert table.mean("x", table.last) == pytest.approx((0.2 + 0.8) / 2)


def test_the_best_come_first_and_references_stand_apart() -> None:
    table = Summary(made(3, 1, 600))
    assert (table.policies[0], table.policies[-1]) == ("layered", "random")
    assert table.references == ["oracle-full", "oracle-one-hop"]


def test_a_share_of_an_oracle_is_a_ratio_of_means_over_common_tasks() -> None:
    oracle = [found("oracle", task, hits) for task, hits in (("a", 60), ("b", 20))]
    for one in oracle:
        one.reference = True
    table = summary(*oracle, found("x", "a", 30), found("x", "b", 10), found("x", "c", 100))
    assert table.over("x", "oracle", table.last) == pytest.approx(0.5)
    assert table.missing == {"oracle": 1}


def test_medians_know_what_never_happened() -> None:
    """x finds half of 40 targets with request 20, twice; the third run never does."""
    hits = {"a": 20, "b": 30, "c": 5}
    table = summary(*(run([1] * count + [0] * (100 - count), task=task, targets=40) for task, count in hits.items()))
    assert table.middle("x", "to_50") == 20
    assert table.middle("x", "to_90") == np.inf


def test_runs_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(DataError, match=r"runs: expected runs of one budget, got \[1, 2\]"):
        summary(run([1]), run([1, 0], task="b"))
    with pytest.raises(DataError, match="runs: expected each run once"):
        summary(run([1]), run([0]))
    with pytest.raises(DataError, match="got no runs"):
        summary()
