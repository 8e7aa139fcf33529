"""A predictor that takes too long is passed over: nobody waits for it twice, and for some not even once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide import Guide
from tests import tally
from tests.composition import models
from tests.composition.conftest import CONFIG, defined, degraded, model, opened, paths
from tests.support import ask

if TYPE_CHECKING:
    from crawlguide.testing import ManualClock

HEURISTIC = "heuristic_fallback"
TWO = ("0.1", "0.9")


def slow_for(clock: ManualClock, seconds: float) -> Any:
    def wait(values: Any) -> Any:
        clock.advance(seconds)
        return values

    return wait


def test_one_that_takes_too_long_is_not_called_again_for_a_while(guide: Guide, clock: ManualClock) -> None:
    defined(guide, model(), "0.1", "0.2", "0.3", "0.4", "0.5")
    models.FAULTS["model"] = slow_for(clock, 0.3)
    models.SEEN.clear()
    answer = ask(guide, max_urls=1)
    assert degraded(answer) == (HEURISTIC, f"{models.PLUG} took 300 ms where 250 are allowed")
    assert len(models.SEEN) == 1
    for _ in range(5):
        assert degraded(ask(guide, max_urls=1, crawl_id="default"))[0] == HEURISTIC
        guide.release("default", "c-1")
    assert len(models.SEEN) == 1
    clock.advance(1.0)
    models.FAULTS.clear()
    answer = ask(guide, max_urls=1)
    assert (paths(answer), degraded(answer)) == (["0.5"], (None, None))


def test_many_urls_may_take_longer(guide: Guide, clock: ManualClock) -> None:
    many = [f"0.{number}" for number in range(100, 1_100)]
    defined(guide, model(), *many)
    models.FAULTS["model"] = slow_for(clock, 0.3)
    assert degraded(ask(guide, max_urls=1_000)) == (None, None)
    guide.release("default", "c-1")
    assert degraded(ask(guide, max_urls=1))[0] == HEURISTIC


def test_the_operator_says_how_long_is_too_long(clock: ManualClock) -> None:
    config = msgspec.structs.replace(CONFIG, guide=msgspec.structs.replace(CONFIG.guide, predict_budget_ms=400.0))
    with opened(clock=clock, config=config) as guide:
        defined(guide, model(), *TWO)
        models.FAULTS["model"] = slow_for(clock, 0.3)
        assert degraded(ask(guide)) == (None, None)


def test_a_predictor_may_have_a_budget_of_its_own(guide: Guide, clock: ManualClock) -> None:
    defined(guide, {"kind": tally.PLUG, "budget_ms": 400}, *TWO)
    assert degraded(ask(guide)) == (None, None)
    defined(guide, model(budget_ms=400), *TWO)
    models.FAULTS["model"] = slow_for(clock, 0.3)
    assert degraded(ask(guide)) == (None, None)


def test_nobody_waits_for_one_that_sleeps_longer_than_its_budget() -> None:
    with Guide.open(":memory:", config=CONFIG) as guide:  # on a real clock
        defined(guide, {"kind": "fallback", "predict": [model(budget_ms=50), {"kind": "relational"}]}, *TWO)
        models.FAULTS["model"] = models.sleeps
        models.SEEN.clear()
        began = time.monotonic()
        answers = [ask(guide, max_urls=1) for _ in range(2)]
        assert time.monotonic() - began < 3.0  # it sleeps five seconds
        assert [degraded(answer)[0] for answer in answers] == ["predictor_fallback"] * 2
        assert degraded(answers[0])[1] == f"{models.PLUG} took 50 ms where 50 are allowed"
        assert len(models.SEEN) == 1


def dozes(values: Any) -> Any:
    time.sleep(0.5)
    return values


def test_one_that_sleeps_without_a_budget_of_its_own_is_waited_for_once() -> None:
    with Guide.open(":memory:", config=CONFIG) as guide:
        defined(guide, model(), *TWO)
        models.FAULTS["model"] = dozes
        models.SEEN.clear()
        assert degraded(ask(guide, max_urls=1))[0] == HEURISTIC
        began = time.monotonic()
        assert degraded(ask(guide, max_urls=1))[0] == HEURISTIC
        assert time.monotonic() - began < 0.45
        assert len(models.SEEN) == 1


def test_what_a_thread_raises_is_heard(guide: Guide) -> None:
    defined(guide, model(budget_ms=10_000), *TWO)
    models.FAULTS["model"] = models.raises
    assert degraded(ask(guide)) == (HEURISTIC, f"{models.PLUG} raised RuntimeError")
