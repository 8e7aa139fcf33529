"""The figures of the lab, against cases worked out by hand and against what must hold for any run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from crawlguide.core.errors import DataError
from crawlguide.lab import metrics
from crawlguide.lab.metrics import Trace
from crawlguide.lab.results import Results, Run, encode, read_json, write_json
from tests.lab.made import made, results, run

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENTED = (Path(__file__).resolve().parents[2] / "docs" / "lab-results.md").read_text()


def test_the_harvest_is_the_share_of_requests_that_hit() -> None:
    trace = Trace(run([1, 0, 1, 0]))
    assert metrics.curve(trace).tolist() == [1, 1 / 2, 2 / 3, 1 / 2]
    assert metrics.harvest(trace, 3) == 2 / 3
    assert metrics.auc(trace) == pytest.approx((1 + 1 / 2 + 2 / 3 + 1 / 2) / 4)


def test_a_run_that_ended_early_found_nothing_with_the_rest() -> None:
    trace = Trace(run([1, 1], budget=8))
    assert metrics.harvest(trace, 8) == 2 / 8
    assert metrics.curve(trace).tolist()[2:4] == [2 / 3, 2 / 4]


def test_five_checkpoints() -> None:
    assert metrics.checkpoints(2_000) == [100, 200, 500, 1_000, 2_000]
    assert list(metrics.measured([run([0] * 40)]))[:5] == [f"harvest@{k}" for k in (2, 4, 10, 20, 40)]


def test_recall_counts_targets_that_nobody_could_reach() -> None:
    assert metrics.recall(Trace(run([1, 0, 1], targets=8, reachable=4))) == 2 / 8
    assert np.isnan(metrics.recall(Trace(run([0], targets=0))))


def test_requests_until_a_share_of_the_targets_is_found() -> None:
    trace = Trace(run([0, 1, 1, 0, 1, 0], targets=4))
    assert metrics.requests_to(trace, 0.5) == 3
    assert metrics.requests_to(trace, 0.9) == np.inf
    assert np.isnan(metrics.requests_to(Trace(run([0], targets=0)), 0.5))


def test_hosts_count_once_and_only_with_a_hit() -> None:
    assert metrics.relevant_hosts(Trace(run([1, 0, 1, 1], host=[0, 1, 2, 0]))) == 2


def test_ndcg_by_hand() -> None:
    """Hits at 2 and 3, two attainable: (1/log2 3 + 1/log2 4) / (1/log2 2 + 1/log2 3)"""
    expected = (1 / np.log2(3) + 1 / 2) / (1 + 1 / np.log2(3))
    assert metrics.ndcg(Trace(run([0, 1, 1, 0]))) == pytest.approx(expected)
    assert np.isnan(metrics.ndcg(Trace(run([0, 0]))))


def test_waste_is_a_share_of_the_requests_that_were_made() -> None:
    found = metrics.measured([run([1, 0, 0, 0], outcome="pttd", budget=400)])
    assert (found["traps"][0], found["dead"][0], found["duplicates"][0]) == (0.5, 0.25, 0.0)


def told(p: Sequence[float | None], y: list[int]) -> Run:
    """A run whose fetches from the 501st on were given these chances and came out like this."""
    early = 500
    return run([0] * early + y, p=[0.9] * early + list(p), budget=3_000)


def test_calibration_by_hand() -> None:
    """Two bins are filled: .2 said and 1 in 4 seen, .6 said and 3 in 4 seen."""
    found = metrics.calibration([told([0.2] * 4 + [0.6] * 4, [1, 0, 0, 0, 1, 1, 1, 0])])
    assert found is not None
    assert [*found.predicted, *found.observed] == pytest.approx([0.2, 0.6, 0.25, 0.75])
    assert found.ece == pytest.approx((0.05 + 0.15) / 2)
    assert found.brier == pytest.approx((0.64 + 3 * 0.04 + 3 * 0.16 + 0.36) / 8)
    assert (found.base, found.fetches) == (0.25, 8)


def test_ten_bins_of_equal_mass() -> None:
    chances = [number / 1_000 for number in range(1_000)]
    found = metrics.calibration([told(chances, [0] * 1_000)])
    assert found is not None
    assert found.weight.tolist() == [0.1] * 10


def test_calibration_looks_at_fetches_501_to_2000_that_have_a_chance() -> None:
    assert metrics.calibration([run([0] * 500, p=[0.5] * 500)]) is None
    assert metrics.calibration([told([None, None], [1, 0])]) is None
    found = metrics.calibration([told([0.5] * 2_000, [0] * 2_000), told([0.5, None], [1, 1])])
    assert found is not None
    assert found.fetches == 1_501


def test_saying_the_base_rate_is_perfectly_calibrated_and_says_nothing() -> None:
    found = metrics.measured([told([0.25] * 400, [1, 0, 0, 0] * 100)])
    assert found["ece"][0] == pytest.approx(0.0)
    assert found["brier_skill"][0] == pytest.approx(0.0)


hits = some.lists(some.integers(0, 1), min_size=1, max_size=300)


@given(hits, some.integers(0, 100), some.integers(0, 50))
def test_shares_stay_between_none_and_all(relevant: list[int], unspent: int, unreachable: int) -> None:
    found = sum(relevant)
    one = run(relevant, budget=len(relevant) + unspent, targets=found + unreachable, reachable=found)
    for name, values in metrics.measured([one]).items():
        if name not in {"hosts", "to_50", "to_90", "cpu_us"}:
            assert np.isnan(values[0]) or -1e-12 <= values[0] <= 1 + 1e-12


@given(hits, some.randoms(use_true_random=False))
def test_the_best_order_has_all_hits_first(relevant: list[int], chance: Any) -> None:
    shuffled = relevant.copy()
    chance.shuffle(shuffled)
    best, other = (Trace(run(order)) for order in (sorted(relevant, reverse=True), shuffled))
    assert metrics.auc(best) >= metrics.auc(other) - 1e-12
    assert metrics.harvest(best, len(relevant)) == metrics.harvest(other, len(relevant))
    if any(relevant):
        assert metrics.ndcg(best) == pytest.approx(1.0)
        assert metrics.ndcg(other) <= 1 + 1e-12


@given(some.lists(some.tuples(some.floats(0, 1), some.integers(0, 1)), min_size=1, max_size=200), some.randoms())
def test_calibration_does_not_depend_on_the_order_of_fetches(pairs: list[tuple[float, int]], chance: Any) -> None:
    def of(rows: list[tuple[float, int]]) -> metrics.Calibration:
        found = metrics.calibration([told([p for p, _ in rows], [y for _, y in rows])])
        assert found is not None
        return found

    before = of(pairs)
    chance.shuffle(pairs)
    after = of(pairs)
    assert (after.ece, after.brier) == pytest.approx((before.ece, before.brier))
    assert before.weight.sum() == pytest.approx(1.0)


def test_results_come_back_from_their_file_as_they_went(tmp_path: Path) -> None:
    before = made(tasks=1, repeats=1, budget=600)
    write_json(before, tmp_path / "out.json")
    after = read_json(tmp_path / "out.json")
    assert encode(after) == encode(before)
    assert sorted(after.runs, key=lambda one: one.policy) == sorted(before.runs, key=lambda one: one.policy)


def test_equal_runs_are_equal_to_the_byte_times_aside() -> None:
    first, second = made(2, 2, 600), made(2, 2, 600)
    second.runs.reverse()
    for one in second.runs:
        one.seconds, one.cpu_us_per_fetch = 9.0, 9.0
    assert encode(first) != encode(second)
    assert encode(first, times=False) == encode(second, times=False)
    second.runs[0].relevant[0] ^= 1
    assert encode(first, times=False) != encode(second, times=False)


def test_an_unknown_chance_is_null() -> None:
    document = msgspec.json.decode(encode(results([run([1, 0], p=[float("nan"), 1 / 3])])))
    assert document["runs"][0]["p"] == [None, 0.333333]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"p": [0.5]}, "p: expected 2 places as `relevant` has, got 1"),
        ({"p": [0.5, 1.5]}, "p: expected chances from 0 to 1, got 1.5"),
        ({"outcome": "px"}, "outcome: expected letters of 'pdruet', got 'x'"),
        ({"relevant": [0, 2]}, "relevant: expected 0 or 1, got 2"),
        ({"budget": 1}, "relevant: expected at most 1 fetches, as the budget says, got 2"),
    ],
)
def test_a_run_that_does_not_fit_together_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run(changes.pop("relevant", [1, 0]), **changes)


def test_a_file_whose_run_does_not_fit_together_names_the_run_and_the_field(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(encode(results([run([1, 0]), run([1, 0], task="b")])).replace(b'"pp"', b'"px"', 1))
    with pytest.raises(DataError, match=r"odd\.json: .*outcome: expected letters .* - at `\$\.runs\[0\]`"):
        read_json(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected results of the lab"),
        ('{"schema":1,"command":[],"versions":{},"runs":[{}]}', r"\$\.runs\[0\]"),
        ('{"schema":7,"command":[],"versions":{},"runs":[]}', "schema: expected 1, got 7"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(DataError, match=f"other.json: .*{said}"):
        read_json(path)
    with pytest.raises(DataError, match=r"none\.json: cannot be read"):
        read_json(tmp_path / "none.json")


@pytest.mark.parametrize("name", [*Run.__struct_fields__, *Results.__struct_fields__])
def test_every_field_of_the_document_is_documented(name: str) -> None:
    assert f"| `{name}` |" in DOCUMENTED


@pytest.mark.parametrize("name", metrics.FIGURES)
def test_every_figure_is_documented(name: str) -> None:
    assert f"| `{name}` |" in DOCUMENTED
