"""Whatever a predictor does, an answer goes out within the request, and says what stood in for what."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core.errors import ModelUnavailable, StoreUnavailable
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage
from crawlguide.lab.run import refuse_fallback
from crawlguide.strategies.layered.learner import Layered
from crawlguide.strategies.tres.learner import Tres
from tests import tally
from tests.composition import models
from tests.composition.conftest import A, defined, degraded, model, opened, paths
from tests.support import ask, asked, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.testing import ManualClock

HEURISTIC = "heuristic_fallback"
TWO = ("0.1", "0.9")


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.event for record in caplog.records if getattr(record, "event", "").startswith("predictor_")]  # type: ignore[attr-defined]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "crawlguide")
    return caplog


# broken


def test_one_that_raises_is_replaced_in_the_same_answer(guide: Guide) -> None:
    defined(guide, model(), *TWO)
    models.FAULTS["model"] = models.raises
    answer = ask(guide)
    assert sorted(paths(answer)) == sorted(TWO)
    assert degraded(answer) == (HEURISTIC, f"{models.PLUG} raised RuntimeError")
    assert answer["metadata"]["last_model_version"] == "relational-1"
    assert answer["metadata"]["strategy"] == models.PLUG


@pytest.mark.parametrize("nonsense", models.NONSENSE)
def test_one_that_gives_nonsense_is_replaced(guide: Guide, nonsense: str) -> None:
    defined(guide, model(), *TWO)
    models.FAULTS["model"] = models.NONSENSE[nonsense]
    answer = ask(guide)
    assert sorted(paths(answer)) == sorted(TWO)
    assert degraded(answer)[0] == HEURISTIC
    assert all(np.isfinite(one["score"]) for one in answer["assigned_urls"])


def test_the_heuristic_goes_by_relevant_parents(guide: Guide) -> None:
    defined(guide, model())
    models.FAULTS["model"] = models.raises
    tell(guide, fetched(A + "1", A + "0.1", relevance=1.0), fetched(A + "0", A + "0.9", relevance=0.0))
    assert paths(ask(guide)) == ["0.1", "0.9"]


def test_a_tell_and_seeds_are_taken_while_it_is_broken(guide: Guide) -> None:
    models.FAULTS["model"] = models.raises
    defined(guide, model(), *TWO)
    assert tell(guide, fetched(A + "0.5", A + "0.6"))["accepted"] == 1
    assert len(asked(guide)) == 3


def test_what_is_raised_is_told_to_the_log_and_not_to_crawlers(guide: Guide, log: pytest.LogCaptureFixture) -> None:
    defined(guide, model(), *TWO)
    models.FAULTS["model"] = models.raises
    answer = ask(guide)
    assert "the model is gone" not in str(answer)
    (record,) = [one for one in log.records if getattr(one, "event", "") == "predictor_failed"]
    fields: dict[str, Any] = record.fields  # type: ignore[attr-defined]
    assert fields == {
        "crawl": "default", "predictor": models.PLUG, "why": "raised RuntimeError", "problem": "the model is gone"
    }  # fmt: skip


def test_the_log_hears_of_it_once_and_again_when_it_is_over(
    guide: Guide, clock: ManualClock, log: pytest.LogCaptureFixture
) -> None:
    defined(guide, model(), "0.1", "0.2", "0.3", "0.4")
    models.FAULTS["model"] = models.raises
    for _ in range(3):
        assert degraded(ask(guide, max_urls=1))[0] == HEURISTIC
        clock.advance(100)
    assert events(log) == ["predictor_failed"]
    models.FAULTS.clear()
    assert degraded(ask(guide, max_urls=1)) == (None, None)
    assert events(log) == ["predictor_failed", "predictor_recovered"]


def test_one_that_is_broken_is_tried_now_and_then(guide: Guide, clock: ManualClock) -> None:
    defined(guide, model(), *TWO)
    models.FAULTS["model"] = models.raises
    models.SEEN.clear()
    tried = []
    for _ in range(300):
        ask(guide, max_urls=1, timeout_ms=1)
        guide.release("default", "c-1")
        tried.append(len(models.SEEN))
        clock.advance(1.0)
    assert tried[0] == 1
    assert 8 <= tried[-1] <= 12  # after 1, 2, 4, … 60 seconds
    assert degraded(ask(guide))[0] == HEURISTIC


@pytest.mark.parametrize("part", ["predict", "exploration_bonus", "draw", "draw_bonus"])
def test_the_default_degrades_too(guide: Guide, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    defined(guide, {"kind": "layered"}, *TWO)
    tell(guide, fetched(A + "1", A + "2", relevance=1.0))
    monkeypatch.setattr(Layered, part, _raising)
    answer = ask(guide)
    assert len(paths(answer)) == 3
    assert degraded(answer) == (HEURISTIC, "layered raised ZeroDivisionError")
    assert tell(guide, fetched(A + "2", A + "3"))["accepted"] == 1


def _raising(*_: Any) -> Any:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("part", "nonsense"), [("draw", 7), ("draw_bonus", "x"), ("exploration_bonus", [1.0]), ("learn", "x")]
)
def test_nonsense_of_any_kind_is_replaced(
    guide: Guide, monkeypatch: pytest.MonkeyPatch, part: str, nonsense: Any
) -> None:
    defined(guide, {"kind": "layered"}, *TWO)
    monkeypatch.setattr(Layered, part, lambda *_: nonsense)
    assert tell(guide, fetched(A + "1", A + "2", relevance=1.0))["accepted"] == 1
    answer = ask(guide)
    assert len(paths(answer)) == 3
    assert degraded(answer)[0] in (HEURISTIC, "learning_failed")


def test_one_without_a_version_is_called_by_its_name(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(models.Model, "version")
    defined(guide, model(), *TWO)
    assert ask(guide)["metadata"]["last_model_version"] == models.PLUG


def test_a_sampler_that_fails_is_replaced(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    defined(guide, {"kind": "tres"}, *TWO)
    monkeypatch.setattr(Tres, "sample", _raising)
    answer = ask(guide)
    assert len(paths(answer)) == 2
    assert degraded(answer) == (HEURISTIC, "tres raised ZeroDivisionError")


def test_who_cannot_explain_or_count_may_still_judge(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    defined(guide, {"kind": "layered"}, *TWO)
    monkeypatch.setattr(Layered, "explain", _raising)
    monkeypatch.setattr(Layered, "stats", _raising)
    assert "layered raised ZeroDivisionError when asked why" in guide.explain("default", A + "0.1")["words"]
    assert guide.stats("default")["crawls"]["default"]["learner"] == {}
    assert degraded(ask(guide)) == (None, None)


def test_an_explanation_says_that_another_stood_in(guide: Guide) -> None:
    defined(guide, model(), *TWO)
    models.FAULTS["model"] = models.raises
    ask(guide, max_urls=1)
    assert f"heuristic_fallback: {models.PLUG} raised RuntimeError" in guide.explain("default", A + "0.1")["words"]


def test_a_store_that_is_gone_is_not_the_predictors_fault(guide: Guide) -> None:
    defined(guide, model(), *TWO)

    def lost(values: Any) -> Any:
        raise StoreUnavailable("gone")

    models.FAULTS["model"] = lost
    with pytest.raises(StoreUnavailable):
        ask(guide)
    models.FAULTS.clear()
    assert degraded(ask(guide)) == (None, None)


# learning


def test_a_lesson_that_fails_is_said_and_the_next_one_is_heard(
    guide: Guide, monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture
) -> None:
    defined(guide, {"kind": tally.PLUG}, "a", "b")
    with monkeypatch.context() as broken:
        broken.setattr(tally.Tally, "learn", _raising)
        for url in ("c", "d"):
            assert tell(guide, fetched(A + url, A + url + "1", relevance=1.0))["accepted"] == 1
            asked(guide, max_urls=1)  # what was given out it hears well
    answer = ask(guide, max_urls=1)
    assert degraded(answer) == ("learning_failed", f"{tally.PLUG} raised ZeroDivisionError in a lesson")
    assert answer["metadata"]["last_model_version"] == "tally-1"
    tell(guide, fetched(A + "e", relevance=1.0))
    assert degraded(ask(guide, max_urls=1)) == (None, None)
    assert events(log) == ["predictor_failed", "predictor_recovered"]


def test_a_slow_learner_with_a_budget_misses_lessons_for_a_while(
    guide: Guide, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    defined(guide, {"kind": tally.PLUG, "budget_ms": 50}, "a")
    learn, heard = tally.Tally.learn, []

    def slow(self: tally.Tally, lesson: Any) -> Any:
        clock.advance(0.2)
        heard.append(lesson)
        return learn(self, lesson)

    monkeypatch.setattr(tally.Tally, "learn", slow)
    for number in range(5):
        tell(guide, fetched(f"{A}{number}", relevance=1.0))
    assert len(heard) == 1
    assert degraded(ask(guide)) == ("learning_failed", f"{tally.PLUG} took 200 ms where 50 are allowed in a lesson")


# remembering


def test_one_that_cannot_remember_is_out_and_its_crawl_goes_on(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, clock) as guide:
        defined(guide, {"kind": tally.PLUG}, *TWO)
        tell(guide, fetched(A + "1", relevance=1.0))
    with monkeypatch.context() as broken, opened(tmp_path, clock) as guide:
        broken.setattr(tally.Tally, "remember", _raising)
        for _ in range(3):
            why = f"{tally.PLUG} raised ZeroDivisionError when it should remember; {tally.PLUG} is out in a lesson"
            assert degraded(ask(guide, max_urls=1)) == (f"{HEURISTIC}+learning_failed", why)
            tell(guide, fetched(A + "2"))
            guide.release("default", "c-1")
            clock.advance(1_000)
    with opened(tmp_path, clock) as guide:
        assert degraded(ask(guide)) == (None, None)


def test_the_lab_does_not_take_the_figures_of_a_stand_in_for_those_of_a_policy(guide: Guide) -> None:
    defined(guide, model(), *TWO)
    question = AskMessage(VERSION, "c", BudgetMessage(1))
    refuse_fallback(guide.ask(question))
    models.FAULTS["model"] = models.raises
    failing = guide.ask(question)
    with pytest.raises(ModelUnavailable, match=r"heuristic_fallback: .* raised RuntimeError"):
        refuse_fallback(failing)


def test_a_look_at_which_a_predictor_fails_does_not_put_it_aside(guide: Guide) -> None:
    defined(guide, model(), *TWO)
    models.FAULTS["model"] = models.raises
    assert guide.explain("default", f"{A}0.9")["url"] == f"{A}0.9"
    models.FAULTS.clear()
    answer = ask(guide)
    assert not answer["metadata"].get("degraded")
    assert answer["metadata"]["last_model_version"] != "relational-1"


def test_statistics_of_a_predictor_may_be_numbers_of_any_kind(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally.Tally, "stats", lambda _: {"odd": np.float32(0.5)}, raising=False)
    defined(guide, {"kind": tally.PLUG}, *TWO)
    assert guide.stats("default")["crawls"]["default"]["learner"]["odd"] == 0.5


@pytest.mark.parametrize("ids", [np.uint64(1), np.zeros((2, 2), np.uint64)])
def test_a_lesson_that_returns_no_column_of_ids_is_kept_and_named(
    guide: Guide, monkeypatch: pytest.MonkeyPatch, ids: Any
) -> None:
    monkeypatch.setattr(tally.Tally, "learn", lambda *_: ids)
    defined(guide, {"kind": tally.PLUG}, *TWO)
    assert tell(guide, fetched(f"{A}0.1", relevance=1.0))["accepted"] == 1
    assert degraded(ask(guide))[0] == "learning_failed"


def test_an_exception_that_cannot_say_what_it_is_does_no_harm(guide: Guide) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def raises(_: Any) -> Any:
        raise Mute

    defined(guide, model(), *TWO)
    models.FAULTS["model"] = raises
    assert degraded(ask(guide)) == (HEURISTIC, f"{models.PLUG} raised Mute")
