"""Several predictors speak as one: a cascade, a blend, a fallback, and one within another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide.strategies.composed.cascade import behind
from tests.composition import models
from tests.composition.conftest import A, defined, degraded, model, paths
from tests.support import ask, asked, fetched, tell

if TYPE_CHECKING:
    from crawlguide import Guide


def cascade(*stages: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "cascade", "predict": list(stages)}


def blend(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "blend", "predict": list(parts)}


def fallback(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "fallback", "predict": list(parts)}


def chances(answer: dict[str, Any]) -> list[float]:
    return [round(one["p"], 6) for one in answer["assigned_urls"]]


def seen(name: str) -> list[set[str]]:
    return [{url.removeprefix(A) for url in urls} for who, urls in models.SEEN if who == name]


# cascade

FIVE = ("0.9-0.3", "0.8-0.5", "0.7-0.4", "0.6-0.9", "0.1-0.8")


def test_the_best_of_a_stage_go_on_and_the_others_stand_behind(guide: Guide) -> None:
    defined(guide, cascade(model("cheap", 0, top=3), model("dear", 1)), *FIVE)
    models.SEEN.clear()
    answer = ask(guide)
    assert paths(answer) == ["0.8-0.5", "0.7-0.4", "0.9-0.3", "0.6-0.9", "0.1-0.8"]
    assert seen("cheap") == [set(FIVE)]
    assert seen("dear") == [set(FIVE[:3])]
    assert degraded(answer) == (None, None)
    assert answer["metadata"]["strategy"] == "cascade"
    assert answer["metadata"]["last_model_version"] == "model-1>model-1"


def test_what_stands_behind_keeps_its_value_as_far_as_it_lies_behind(guide: Guide) -> None:
    defined(guide, cascade(model("cheap", 0, top=3), model("dear", 1)), *FIVE)
    assert chances(ask(guide)) == [0.5, 0.4, 0.3, 0.3, 0.05]  # 0.6 and 0.1, by 0.3/0.6
    defined(guide, cascade(model("cheap", 0, top=1), model("dear", 1)), "0.9-0.8", "0.4-0.1", "0.3-0.1")
    assert chances(ask(guide)) == [0.8, 0.4, 0.3]


def test_a_stage_without_top_lets_all_go_on(guide: Guide) -> None:
    defined(guide, cascade(model("cheap", 0), model("dear", 1)), *FIVE)
    assert paths(ask(guide)) == ["0.6-0.9", "0.1-0.8", "0.8-0.5", "0.7-0.4", "0.9-0.3"]


def test_every_stage_passes_on_fewer(guide: Guide) -> None:
    defined(guide, cascade(model("a", 0, top=3), model("b", 1, top=1), model("c", 2)), "0.9-0.3-1", "0.8-0.5-0.2",
            "0.7-0.4-1", "0.6-0.9-1")  # fmt: skip
    models.SEEN.clear()
    assert paths(ask(guide)) == ["0.8-0.5-0.2", "0.7-0.4-1", "0.9-0.3-1", "0.6-0.9-1"]
    assert [len(seen(name)[0]) for name in "abc"] == [4, 3, 1]


def test_urls_wait_by_the_first_stage_and_after_a_look_by_the_last_that_saw_them(guide: Guide) -> None:
    defined(guide, cascade(model("cheap", 0, top=2), model("dear", 1)), "0.9-0.1", "0.8-0.7", "0.5-0.9")
    waiting = {one["url"].removeprefix(A): one["priority"] for one in guide.urls("default")}
    assert waiting == pytest.approx({"0.9-0.1": 0.9, "0.8-0.7": 0.8, "0.5-0.9": 0.5})
    assert asked(guide, max_urls=1) == [A + "0.8-0.7"]
    waiting = {one["url"].removeprefix(A): one["priority"] for one in guide.urls("default", state="queued")}
    assert waiting == pytest.approx({"0.9-0.1": 0.1, "0.5-0.9": 0.5})  # what the dear one refused makes room


def test_what_a_dear_stage_refused_does_not_keep_others_from_it(guide: Guide) -> None:
    """More URLs that only the cheap stage likes than an ask looks at."""
    bad = [f"0.9-0.0{number:04d}1" for number in range(600)]
    defined(guide, cascade(model("cheap", 0, top=50), model("dear", 1)), *bad, "0.6-0.9")
    rounds = [paths(ask(guide, max_urls=1)) for _ in range(20)]
    assert ["0.6-0.9"] in rounds


@pytest.mark.parametrize(
    ("value", "level", "placed"),
    [
        ([0.9, 0.5], [0, 1], [0.5, 0.5]),
        ([0.2, 0.5], [0, 1], [0.2, 0.5]),
        ([0.8, 0.4, 0.5], [0, 0, 1], [0.5, 0.25, 0.5]),
        ([0.8, 0.4, 0.0], [0, 0, 1], [0.0, 0.0, 0.0]),
        ([0.8, 0.4, -1.0], [0, 0, 1], [-1.0, -1.0, -1.0]),
        ([0.9, 0.8, 0.7], [0, 1, 2], [0.7, 0.7, 0.7]),
        ([0.3, 0.2], [0, 0], [0.3, 0.2]),
        ([], [], []),
    ],
)
def test_places_behind(value: list[float], level: list[int], placed: list[float]) -> None:
    assert behind(np.array(value), np.array(level, np.int64)).tolist() == pytest.approx(placed)


def test_a_first_stage_that_fails_is_replaced_by_counting_and_the_next_still_judges_few(guide: Guide) -> None:
    defined(guide, cascade(model("cheap", 0, top=2), model("dear", 1)))
    tell(guide, fetched(A + "1-1", A + "0.6-0.4", A + "0.7-0.6", relevance=1.0))
    tell(guide, fetched(A + "0-0", A + "0.9-0.9", A + "0.8-0.8", relevance=0.0))
    models.FAULTS["cheap"] = models.raises
    models.SEEN.clear()
    answer = ask(guide)
    assert seen("dear") == [{"0.6-0.4", "0.7-0.6"}]
    assert paths(answer)[:2] == ["0.7-0.6", "0.6-0.4"]
    assert degraded(answer) == ("predictor_fallback", f"{models.PLUG} raised RuntimeError")


def test_a_later_stage_that_fails_is_passed_over(guide: Guide) -> None:
    defined(guide, cascade(model("cheap", 0, top=3), model("dear", 1)), *FIVE)
    models.FAULTS["dear"] = models.raises
    answer = ask(guide)
    assert paths(answer) == list(FIVE)
    assert degraded(answer) == ("predictor_fallback", f"{models.PLUG}#2 raised RuntimeError")


# blend


def test_a_blend_is_the_weighted_mean(guide: Guide) -> None:
    defined(guide, blend(model("a", 0, weight=3), model("b", 1)), "0.8-0.4", "0.5-0.9")
    assert chances(ask(guide)) == [0.7, 0.6]


def test_without_weights_all_count_alike(guide: Guide) -> None:
    defined(guide, blend(model("a", 0), model("b", 1)), "0.8-0.4", "0.5-0.9")
    assert chances(ask(guide)) == [0.7, 0.6]


def test_one_that_fails_counts_nothing(guide: Guide) -> None:
    defined(guide, blend(model("a", 0, weight=3), model("b", 1)), "0.8-0.4", "0.5-0.9")
    models.FAULTS["a"] = models.raises
    answer = ask(guide)
    assert chances(answer) == [0.9, 0.4]
    assert degraded(answer) == ("predictor_fallback", f"{models.PLUG} raised RuntimeError")


# fallback


def test_the_first_that_works_speaks(guide: Guide) -> None:
    defined(guide, fallback(model("a", 0), model("b", 1)), "0.8-0.4", "0.5-0.9")
    models.SEEN.clear()
    answer = ask(guide)
    assert chances(answer) == [0.8, 0.5]
    assert seen("b") == []
    assert degraded(answer) == (None, None)


def test_the_next_speaks_in_the_same_answer(guide: Guide) -> None:
    defined(guide, fallback(model("a", 0), model("b", 1)), "0.8-0.4", "0.5-0.9")
    models.FAULTS["a"] = models.raises
    answer = ask(guide)
    assert chances(answer) == [0.9, 0.4]
    assert degraded(answer) == ("predictor_fallback", f"{models.PLUG} raised RuntimeError")


def test_where_none_works_the_heuristic_does(guide: Guide) -> None:
    defined(guide, fallback(model("a", 0), model("b", 1)), "0.8-0.4", "0.5-0.9")
    models.FAULTS |= {"a": models.raises, "b": models.raises}
    answer = ask(guide)
    assert chances(answer) == [0.5, 0.5]  # nothing links to seeds: what they are is not known
    assert degraded(answer)[0] == "heuristic_fallback"
    assert answer["metadata"]["last_model_version"] == "relational-1"


# one within another


def test_a_stage_may_be_a_blend_or_a_fallback(guide: Guide) -> None:
    second = {**blend(model("b", 1), fallback(model("c", 2), model("d", 3))), "top": 1}
    defined(guide, cascade(model("a", 0, top=2), second, model("e", 4)), "0.9-0.2-0.4-0-0.5", "0.8-0.6-0.6-0-0.1",
            "0.05-1-1-1-1")  # fmt: skip
    assert chances(ask(guide)) == [0.1, 0.1, 0.05]


def test_learners_of_all_stages_learn_explore_and_tell(guide: Guide) -> None:
    strategy = cascade({"kind": "layered", "top": 50}, {"kind": "groups", "top": 20}, {"kind": "relational"})
    defined(guide, strategy, "x/1", "x/2", goal={"topic": "music"})
    for _ in range(6):
        given = asked(guide, max_urls=4)
        tell(guide, *(fetched(url, f"{url}/a", f"{url}/b", relevance=0.9) for url in given))
    learner = guide.stats("default")["crawls"]["default"]["learner"]
    assert learner["layered.examples"] > 5
    assert learner["groups.total_updates"] > 5
    url = asked(guide, max_urls=1)[0]
    words = guide.explain("default", url)["words"]
    assert "layered says 0." in words
    assert "groups says 0." in words
    assert "layered: " in words.replace("layered says", "")


def test_exploration_of_a_stage_counts_behind_others_too(guide: Guide) -> None:
    defined(guide, cascade({"kind": "layered"}, {"kind": "relational"}), "x/1")
    tell(guide, fetched(A, *(f"{A}x/{number}" for number in range(2, 9)), relevance=0.5))
    terms = [one["terms"]["exploration"] for one in ask(guide)["assigned_urls"]]
    assert any(term > 0 for term in terms)
