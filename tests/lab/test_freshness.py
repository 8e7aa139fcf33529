"""The virtual clock of `lab freshness`: what it counts is what happened, and policies see no more than a crawler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.core.errors import ConfigError, DataError
from crawlguide.freshness.value import periodic_optimum
from crawlguide.lab.freshness import experiment, measure, policies, results
from crawlguide.lab.freshness.histories import Histories, from_events
from crawlguide.lab.freshness.policies import crawl_value, feedstock, nutch, optimal_rates
from crawlguide.lab.freshness.policies.memory import Memory
from crawlguide.lab.freshness.policies.rates import LearnedRates
from crawlguide.lab.freshness.recorded import recorded, settled
from crawlguide.lab.freshness.replay import STEPS, Known, Visits, replay
from crawlguide.lab.freshness.synthetic import KINDS, synthetic

if TYPE_CHECKING:
    from crawlguide.core.tables import Rows
    from crawlguide.lab.freshness.replay import Log

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "changes" / "changes.parquet"
DAY = 86_400


def history(*changes: list[float], days: int = 10, **columns: object) -> Histories:
    """Pages with these changes, all known from the beginning unless `born` says otherwise."""
    pages = np.repeat(np.arange(len(changes)), [len(one) for one in changes])
    first, at = from_events(pages, np.concatenate([np.zeros(0), *changes]), len(changes))
    usual: dict[str, object] = {
        "importance": np.ones(len(changes)), "born": np.zeros(len(changes)), "gone": np.full(len(changes), np.inf)
    }  # fmt: skip
    urls = [f"https://a.example/{page}" for page in range(len(changes))]
    return Histories(name="made", urls=urls, first=first, at=at, days=days, **(usual | columns))  # type: ignore[arg-type]


def known(histories: Histories, share: float = 0.5) -> Known:
    return Known(histories.urls, histories.importance, share, 0)


class Script:
    """Visits a page at certain days, and writes down what it is shown."""

    def __init__(self, *visits: tuple[float, int]) -> None:
        self.visits, self.shown, self.found = list(visits), list[Visits](), dict[int, float]()

    def discover(self, pages: Rows, at: float) -> None:
        self.found.update(dict.fromkeys(pages.tolist(), at))

    def choose(self, now: float, count: int) -> Rows:
        due = [page for day, page in self.visits if abs(day - now) < 0.5 / STEPS]
        return np.array(due[:count], np.intp)

    def learn(self, visits: Visits) -> None:
        self.shown.append(visits)


def run(histories: Histories, *visits: tuple[float, int], share: float = 24.0) -> tuple[Script, Log]:
    script = Script(*visits)
    return script, replay(histories, script, share)


# the clock


def test_a_visit_shows_one_bit_whatever_happened_meanwhile() -> None:
    script, _ = run(history([1.2, 1.4, 1.6, 5.0]), (1.0, 0), (2.0, 0), (3.0, 0), (6.0, 0))
    assert [(one.at, one.gap[0], one.changed[0]) for one in script.shown] == [
        (1.0, 1.0, False), (2.0, 1.0, True), (3.0, 1.0, False), (6.0, 3.0, True)
    ]  # fmt: skip


def test_a_page_is_found_when_it_appears_and_gone_when_it_has_gone() -> None:
    histories = history([4.0], [7.0], born=np.array([0.0, 3.0]), gone=np.array([4.0, np.inf]))
    script, _ = run(histories, (3.5, 0), (4.5, 0), (5.0, 1))
    assert script.found == {0: 0.0, 1: 3.0}
    assert [one.gone[0] for one in script.shown] == [False, True, False]


def test_freshness_is_the_time_until_the_first_change_that_was_not_seen() -> None:
    histories = history([2.0, 5.5], [1.0], importance=np.array([3.0, 1.0]))
    _, log = run(histories, (4.0, 0), (8.0, 0))
    found = measure.measured(histories, log)
    current = 3.0 * (2.0 + 1.5 + 2.0) + 1.0
    old = 3.0 * (2.0**2 + 2.5**2) / 2 + 9.0**2 / 2
    assert measure.mean(found) == pytest.approx((current / 40.0, old / 40.0))
    assert found.freshness[[0, 2, 3, 8]].tolist() == pytest.approx([1.0, 0.0, 0.0, 0.75])
    assert (found.requests.sum(), found.for_nothing.sum()) == (2, 0)


def test_a_page_that_has_gone_counts_until_it_was_found_gone_or_a_month_later() -> None:
    histories = history([10.0], [], days=60, gone=np.array([10.0, np.inf]))
    for visits, fresh in (((), 10.0), (((20.0, 0),), 30.0)):
        found = measure.measured(histories, run(histories, *visits)[1])
        assert found.freshness @ found.weight == pytest.approx(60.0 + fresh)
        assert found.weight.sum() == pytest.approx(60.0 + 40.0)


@pytest.mark.parametrize("share", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("name", [*policies.BUILDERS, *policies.REFERENCES])
def test_nobody_spends_more_than_the_budget_or_visits_a_page_twice_at_once(name: str, share: float) -> None:
    histories = synthetic("dead", 100, 20, 3)
    log = replay(histories, policies.build(name, known(histories, share), histories), share)
    found = measure.measured(histories, log)
    assert found.requests.sum() <= share * 100 * 20
    assert (found.requests <= np.ceil(share * 100) + 1).all()
    visits = np.stack([log.page, log.at])
    assert len(np.unique(visits, axis=1).T) == len(log.page)
    assert np.isfinite(found.freshness).all()


def test_equal_seeds_give_equal_runs() -> None:
    job = experiment.Job(web=web("mislabelled"), policy="crawl-value", share=0.2, repeat=1, seed=5)
    first, second = experiment.do(job), experiment.do(job)
    second.seconds = first.seconds
    assert first == second


def web(name: str, pages: int = 300, days: int = 40) -> experiment.Web:
    return experiment.Web(name=name, file=None, pages=pages, days=days)


# the webs


@pytest.mark.parametrize("kind", KINDS)
def test_a_made_up_web_changes_at_its_rates(kind: str) -> None:
    histories = synthetic(kind, 2_000, 60, 1)
    assert len(histories) == 2_000
    assert histories.rates is not None
    changes = np.array([histories.rates.on(day) for day in range(60)]).sum()
    if kind == "bursty":
        changes *= 5
    if kind != "dead":
        assert len(histories.at) == pytest.approx(changes, rel=0.05)
    rising = np.diff(histories.at) >= 0
    assert rising[np.setdiff1d(np.arange(len(rising)), histories.first[1:-1] - 1)].all()


def test_weekly_webs_rest_at_weekends_and_daily_ones_at_night() -> None:
    for kind, period in (("daily", 1.0), ("weekly", 7.0)):
        histories = synthetic(kind, 100, 70, 1)
        counts, _ = np.histogram(histories.at % period, 14)
        assert counts.max() > 3 * counts.min()


def test_in_drift_half_of_the_hosts_become_three_times_as_lively() -> None:
    histories = synthetic("drift", 1_000, 40, 1)
    assert histories.rates is not None
    ratio = histories.rates.on(30) / histories.rates.on(3)
    assert sorted(np.unique(ratio.round(6))) == [1.0, 3.0]
    assert (ratio > 2).mean() == 0.5


# histories of one's own


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_of_histories_is_prepared_as_a_crawler_could_have_seen_them(tmp_path: Path) -> None:
    hour = 3_600
    file = write(
        tmp_path / "mine.ndjson",
        f'{{"url": "https://a.example/", "ts": [0, {DAY}, {DAY + hour // 2}, {5 * DAY}, {9 * DAY}],'
        ' "op": "AMMMM", "bulk": [1, 1, 1, 500, 1]}',
        f'{{"url": "https://a.example/moved", "ts": [{2 * DAY}, {3 * DAY}], "op": "AD"}}',
        f'{{"url": "https://a.example/moved", "ts": [{3 * DAY}, {6 * DAY}, {8 * DAY}], "op": "AMD"}}',
        f'{{"url": "https://a.example/late", "ts": [{4 * DAY}, {10 * DAY}], "importance": 2}}',
    )
    (made,) = recorded(file, 10)
    assert (made.name, made.urls, made.days) == (
        "mine",
        [f"https://a.example/{one}" for one in ("", "moved", "late")],
        10,
    )
    assert made.at[made.first[0] : made.first[1]] == pytest.approx([1.0 + 0.5 / 24, 9.0])  # a burst once, no mass edit
    assert made.at[made.first[1] : made.first[2]] == pytest.approx([3.0, 6.0, 8.0])  # it moved, changed and went
    assert made.born.tolist() == [0.0, 2.0, 4.0]
    assert made.gone.tolist() == [np.inf, 8.0, np.inf]
    assert made.importance.tolist() == [1.0, 1.0, 2.0]


def test_only_the_last_days_are_replayed(tmp_path: Path) -> None:
    file = write(
        tmp_path / "mine.ndjson",
        f'{{"url": "https://a.example/", "ts": [0, {DAY}, {90 * DAY}, {100 * DAY}]}}',
        f'{{"url": "https://a.example/gone", "ts": [0, {50 * DAY}], "op": "AD"}}',
    )
    (made,) = recorded(file, 20)
    assert (made.urls, made.at.tolist(), made.born.tolist()) == (["https://a.example/"], [10.0], [0.0])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1"),
        ('{"url": "", "ts": [1]}', "url"),
        ('{"url": "https://a.example/"}', "ts"),
        ('{"url": "https://a.example/", "ts": []}', "ts: expected at least"),
        ('{"url": "https://a.example/", "ts": [1, 2], "op": "A"}', "op: expected 2 as in ts, got 1"),
        ('{"url": "https://a.example/", "ts": [1], "op": "X"}', "op: expected letters of AMD, got 'X'"),
        ('{"url": "https://a.example/", "ts": [1, 2], "bulk": [1]}', "bulk: expected 2"),
        ('{"url": "https://a.example/", "ts": [1], "importance": 0}', "importance"),
    ],
)
def test_a_wrong_line_is_named(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        recorded(write(tmp_path / "wrong.ndjson", line), 10)


def test_a_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--histories: expected a file"):
        recorded(tmp_path / "missing.parquet", 10)
    with pytest.raises(DataError, match="expected histories"):
        recorded(write(tmp_path / "odd.parquet", "text"), 10)
    with pytest.raises(DataError, match="expected a line for each page, got none"):
        recorded(write(tmp_path / "empty.ndjson", ""), 10)


def test_bursts_are_one_change_at_their_end() -> None:
    assert settled(np.array([0.0, 1_000.0, 4_000.0, 9_000.0])).tolist() == [4_000.0, 9_000.0]
    assert settled(np.zeros(0)).tolist() == []


@pytest.mark.skipif(not REAL.is_file(), reason="there are no recorded histories beside the checkout")
def test_real_histories_are_read() -> None:
    webs = recorded(REAL, 365)
    assert len(webs) == 3
    assert all(len(set(one.urls)) == len(one) > 500 and len(one.at) > 300 for one in webs)


# rivals


def memory(*waits: float) -> Memory:
    count = len(waits)
    return Memory(np.ones(count), np.ones(count, bool), -np.array(waits), np.full(count, -100.0))


def test_nutch_stretches_and_shrinks_intervals() -> None:
    order, pages = nutch.Adaptive(2), np.arange(2)
    its = memory(30.0, 30.0)
    its.since[:] = -30.0
    order.learn(its, Visits(pages, 0.0, np.full(2, 30.0), np.array([True, False]), np.zeros(2, bool)))
    assert order.interval.tolist() == pytest.approx([24.0, 42.0])
    assert order.due.tolist() == pytest.approx([24.0, 42.0 - 0.3 * 30.0])


def test_feedstock_scores_as_it_says() -> None:
    no, yes = np.array([False]), np.array([True])
    assert feedstock.score(np.array([0.4]), no, no) == pytest.approx([0.0])
    assert feedstock.score(np.array([2.0]), no, no) == pytest.approx([1.0])
    assert feedstock.score(np.array([2.0]), yes, no) == pytest.approx([0.4 / 1.4])
    assert feedstock.score(np.array([0.1]), yes, yes) == pytest.approx([1.0 / (0.4 * 0.55 + 1.0)])


@pytest.mark.parametrize("formula", [optimal_rates.harmonic, optimal_rates.binary])
def test_optimal_rates_spend_the_budget(formula: object) -> None:
    rng = np.random.default_rng(1)
    rates = optimal_rates.solved(formula, rng.random(100) + 0.1, rng.random(100) + 0.01, 20.0)  # type: ignore[arg-type]
    assert rates.sum() == pytest.approx(20.0, rel=1e-3)


def test_rivals_learn_the_most_likely_rate() -> None:
    """Against a fine grid of rates."""
    rng, rates = np.random.default_rng(2), LearnedRates(1)
    gaps, grid = rng.uniform(0.5, 3.0, 40), np.linspace(0.001, 3.0, 30_000)
    posterior = 0.5 * np.log(grid) - 6.0 * grid
    for gap in gaps.tolist():
        changed = bool(rng.random() < 1.0 - np.exp(-0.4 * gap))
        rates.learn(Visits(np.zeros(1, np.intp), 0.0, np.array([gap]), np.array([changed]), np.zeros(1, bool)))
        posterior += np.log(1.0 - np.exp(-grid * gap)) if changed else -grid * gap
    assert rates.rate[0] == pytest.approx(grid[posterior.argmax()], abs=2e-4)


# what comes out


def test_the_oracle_is_the_optimum_and_foresight_more() -> None:
    """Expected freshness of the crawl value with known rates is that of the best periodic schedule."""
    histories = synthetic("poisson", 1_000, 60, 1)
    assert histories.rates is not None
    best = periodic_optimum(histories.rates.on(0), histories.importance, 200.0).freshness
    log = replay(histories, crawl_value.oracle(known(histories, 0.2), histories.rates), 0.2)
    expected = measure.expected(histories, histories.rates, log)
    assert expected[30:].mean() / best == pytest.approx(1.0, abs=0.002)
    seen = measure.mean(measure.measured(histories, log), 30)[0]
    assert seen == pytest.approx(expected[30:].mean(), abs=0.03)
    log = replay(histories, policies.build("foresight", known(histories, 0.2), histories), 0.2)
    assert measure.mean(measure.measured(histories, log), 30)[0] > seen + 0.1


@pytest.mark.parametrize(
    ("kind", "since", "least"), [("poisson", 30, 0.985), ("mislabelled", 30, 0.97), ("drift", 30, 0.97)]
)
def test_our_order_comes_near_the_optimum(kind: str, since: int, least: float) -> None:
    """In `drift` from ten days after it on."""
    job = experiment.Job(web=web(kind, 1_000), policy=results.OURS, share=0.2, repeat=0, seed=1)
    assert results.of_optimum(experiment.do(job), since) > least


@pytest.mark.skipif(not REAL.is_file(), reason="there are no recorded histories beside the checkout")
def test_on_real_histories_our_order_is_at_most_a_point_behind_anybody() -> None:
    webs = [one for one in experiment.webs_of(REAL, 240) if "peps" in one.name or "scp" in one.name]
    names = [results.OURS, "uniform", "lambda-crawl", "crawl-value", "nutch", "feedstock"]
    runs = list(experiment.completed(experiment.jobs(webs, names, [0.01, 0.05], 1, 0), 1))
    summary = results.Summary(results.Results(command=[], versions={}, runs=results.ordered(runs)))
    assert summary.policies[0] == results.OURS
    assert all(one.worst_difference > -0.01 for one in summary.differences())


def test_summaries_pair_webs_budgets_and_repeats() -> None:
    todo = experiment.jobs([web("poisson", 100, 10), web("dead", 100, 10)], ["crawlguide", "uniform"], [0.1, 0.2], 2, 0)
    runs = results.ordered(list(experiment.completed(todo, 1)))
    assert len(runs) == 16
    summary = results.Summary(results.Results(command=[], versions={}, runs=runs))
    assert summary.tasks == [("dead", 0.1), ("dead", 0.2), ("poisson", 0.1), ("poisson", 0.2)]
    (one,) = summary.differences()
    by_hand = [results.freshness(a) - results.freshness(b) for a, b in zip(*_halves(runs), strict=True)]
    assert one.other == "uniform"
    assert one.mean == pytest.approx(np.mean(by_hand))
    assert one.low <= one.mean <= one.high


def _halves(runs: list[results.Run]) -> tuple[list[results.Run], list[results.Run]]:
    return [run for run in runs if run.policy == "crawlguide"], [run for run in runs if run.policy == "uniform"]


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    runs = list(experiment.completed(experiment.jobs([web("poisson", 100, 5)], ["uniform"], [0.1], 1, 0), 1))
    document = results.Results(command=["crawlguide"], versions={"a": "1"}, runs=runs)
    results.write_json(document, tmp_path / "out.json")
    assert results.read_json(tmp_path / "out.json") == document
    with pytest.raises(DataError, match="expected results of lab freshness"):
        results.read_json(write(tmp_path / "odd.json", "{}"))
    with pytest.raises(DataError, match="cannot be read"):
        results.read_json(tmp_path / "missing.json")
