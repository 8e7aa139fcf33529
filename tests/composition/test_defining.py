"""How a crawl and the operator name predictors: what is taken, what is refused, and changes while a crawl runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from crawlguide import Guide
from crawlguide.core import config as configuration
from crawlguide.core.errors import ConfigError, MalformedRequest
from tests import tally
from tests.composition import models
from tests.composition.conftest import CONFIG, PLUGINS, POLICY, A, defined, degraded, model, opened, paths
from tests.support import ask, asked, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.testing import ManualClock

RELATIONAL = {"kind": "relational"}


def nested(levels: int) -> dict[str, Any]:
    return RELATIONAL if not levels else {"kind": "blend", "predict": [nested(levels - 1)]}


@pytest.mark.parametrize(
    ("strategy", "field", "said"),
    [
        ({"kind": "cascade"}, "strategy.predict", "expected a list of 1 to 8 predictors, got null"),
        ({"kind": "cascade", "predict": []}, "strategy.predict", r"expected a list of 1 to 8 predictors, got \[\]"),
        ({"kind": "blend", "predict": [RELATIONAL] * 9}, "strategy.predict", "expected a list of 1 to 8"),
        ({"kind": "blend", "predict": {"kind": "x"}}, "strategy.predict", "expected a list .* got {"),
        ({"kind": "blend", "predict": ["layered"]}, "strategy.predict[0]", 'expected a predictor .* got "layered"'),
        ({"kind": "blend", "predict": [{"top": 3}]}, "strategy.predict[0].kind", "required, but missing"),
        ({"kind": "blend", "predict": [RELATIONAL, {"kind": 7}]}, "strategy.predict[1].kind", "expected a name, got 7"),
        (
            {"kind": "cascade", "predict": [RELATIONAL, {"kind": "layerd"}]},
            "strategy.predict[1].kind",
            "expected one of .*cascade.* got 'layerd' .did you mean 'layered'",
        ),
        (
            {"kind": "cascade", "predict": [{**RELATIONAL, "top": -1}]},
            "strategy.predict[0].top",
            "expected an integer from 0 to 1000000 .* got -1",
        ),
        (
            {"kind": "cascade", "predict": [{**RELATIONAL, "top": "many"}]},
            "strategy.predict[0].top",
            "expected an integer .* got many",
        ),
        (
            {"kind": "blend", "predict": [{**RELATIONAL, "weight": 0}]},
            "strategy.predict[0].weight",
            "expected a number above 0, up to 1000, got 0",
        ),
        (
            {"kind": "fallback", "predict": [{**RELATIONAL, "budget_ms": "soon"}]},
            "strategy.predict[0].budget_ms",
            "expected a number above 0, up to 600000, got soon",
        ),
        ({**RELATIONAL, "budget_ms": 0}, "strategy.budget_ms", "expected a number above 0, up to 600000, got 0"),
        ({**RELATIONAL, "top": 5}, "strategy.top", "unknown option; expected one of kind"),
        (
            {"kind": "blend", "predict": [{**RELATIONAL, "top": 5}]},
            "strategy.predict[0].top",
            "unknown option; expected one of kind",
        ),
        ({"kind": "blend", "stages": []}, "strategy.stages", "unknown option; expected one of kind, predict"),
        (
            {"kind": "blend", "predict": [{"kind": "groups", "epsilom": 1}]},
            "strategy.predict[0].epsilom",
            "unknown option; expected one of kind, epsilon",
        ),
        ({"kind": "blend", "predict": [{"kind": "os.path"}]}, "strategy.predict[0].kind", "expected one of"),
        ({"kind": "blend", "predict": [model(fails=True)]}, "strategy.predict[0]", "cannot be built: FileNotFound"),
        (nested(4), "strategy.predict[0].predict[0].predict[0].predict[0]", "no more than 4 levels of predict"),
        (
            {"kind": "blend", "predict": [{"kind": "blend", "predict": [RELATIONAL] * 6}] * 3},
            "strategy.predict[2].predict[4]",
            "expected at most 16 predictors in all",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(guide: Guide, strategy: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(MalformedRequest, match=said) as refused:
        guide.define("default", {"strategy": strategy})
    assert refused.value.field == field
    assert refused.value.message.startswith(f"{field}: ")
    assert "default" not in guide.stats()["crawls"]


def test_three_levels_are_fine(guide: Guide) -> None:
    guide.define("default", {"strategy": nested(3)})


# while it runs


def test_a_crawl_gets_other_predictors_while_it_runs(guide: Guide) -> None:
    defined(guide, model("a", 0), "0.9-0.1", "0.1-0.9", "0.5-0.5")
    assert paths(ask(guide, max_urls=1)) == ["0.9-0.1"]
    guide.define("default", {"strategy": {"kind": "blend", "predict": [model("b", 1)]}, "policy": POLICY})
    assert paths(ask(guide, max_urls=1)) == ["0.1-0.9"]
    with pytest.raises(MalformedRequest):
        guide.define("default", {"strategy": {"kind": "blend", "predict": [{"kind": "no"}]}, "policy": POLICY})
    answer = ask(guide, max_urls=1)
    assert (paths(answer), answer["metadata"]["strategy"]) == (["0.5-0.5"], "blend")


def test_what_one_learned_alone_it_knows_as_a_stage_and_alone_again(guide: Guide) -> None:
    layered = {"kind": "layered"}
    defined(guide, layered, "a")
    tell(guide, *(fetched(f"{A}{number}", f"{A}{number}/x", relevance=1.0) for number in range(9)))
    known = guide.stats("default")["crawls"]["default"]["learner"]
    guide.define("default", {"strategy": {"kind": "cascade", "predict": [layered, RELATIONAL]}, "policy": POLICY})
    staged = guide.stats("default")["crawls"]["default"]["learner"]
    assert {name.removeprefix("layered."): value for name, value in staged.items()} == known
    guide.define("default", {"strategy": layered, "policy": POLICY})
    assert guide.stats("default")["crawls"]["default"]["learner"] == known


def test_a_patch_changes_the_stages(guide: Guide) -> None:
    defined(guide, {"kind": "cascade", "predict": [model("a", 0, top=1), model("b", 1)]}, "0.9-0.1", "0.8-0.7")
    guide.patch("default", {"strategy": {"predict": [model("a", 0, top=2), model("b", 1)]}})
    assert paths(ask(guide)) == ["0.8-0.7", "0.9-0.1"]


def test_a_crawl_begins_with_what_a_stage_of_another_has_learned(guide: Guide) -> None:
    strategy = {"kind": "cascade", "predict": [{"kind": tally.PLUG, "top": 9}, {"kind": tally.PLUG, "shy": True}]}
    defined(guide, strategy, "a")
    tell(guide, fetched(A + "a", relevance=1.0))
    guide.define("second", {"strategy": {**strategy, "warm_start": "default"}, "policy": POLICY})
    crawls = {crawl.name: found for crawl, found in guide._guide._guide.crawls.known.items()}
    taught = [part.predictor.hosts.rows["pages"][0] for part in crawls["second"].strategy.guarded.parts]  # type: ignore[attr-defined]
    assert taught == [1, 1]


# the operator's choice


def by_operator(*tables: dict[str, Any]) -> configuration.Config:
    return configuration.Config(crawls=PLUGINS, predict=tables)


def test_crawls_that_name_no_strategy_have_the_operators(clock: ManualClock) -> None:
    config = by_operator(model("a", 0, top=2), model("b", 1))
    with opened(clock=clock, config=config) as guide:
        guide.define("default", {"policy": POLICY})
        guide.seed("default", [A + "0.9-0.1", A + "0.8-0.7", A + "0.2-0.9"])
        answer = ask(guide)
        assert paths(answer) == ["0.8-0.7", "0.9-0.1", "0.2-0.9"]
        assert answer["metadata"]["strategy"] == "cascade"
        asked(guide, crawl_id="created by an ask")
        assert guide.stats("created by an ask")["crawls"]["created by an ask"]["strategy"] == "cascade"
        guide.define("own", {"strategy": {"kind": "layered"}})
        assert guide.stats("own")["crawls"]["own"]["strategy"] == "layered"
        assert guide.patch("default", {})["definition"]["strategy"]["kind"] == "cascade"


def test_one_table_alone_is_that_strategy(clock: ManualClock) -> None:
    with opened(clock=clock, config=by_operator({"kind": "groups", "epsilon": 0.2})) as guide:
        asked(guide)
        assert guide.stats("default")["crawls"]["default"]["strategy"] == "groups"


def test_without_tables_it_is_layered(guide: Guide) -> None:
    asked(guide)
    assert guide.patch("default", {})["definition"]["strategy"] == {"kind": "layered"}


def test_a_crawl_without_a_choice_follows_the_operator_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    for kind in ("relational", "groups"):
        with opened(tmp_path, clock, by_operator({"kind": kind})) as guide:
            asked(guide)
            assert guide.stats("default")["crawls"]["default"]["strategy"] == kind


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([{"kind": "layerd"}], r"predict\[0\]\.kind: expected one of .*did you mean 'layered'"),
        ([{"kind": "layered"}, {"kind": "groups", "epsilon": 7}], r"predict\[1\]\.epsilon: expected a number .* got 7"),
        ([{"kind": "layered", "top": "x"}], r"predict\[0\]\.top: expected an integer .* got x"),
        ([{"kind": "blend", "predict": []}], r"predict\[0\]\.predict: expected a list"),
    ],
)
def test_a_guide_does_not_open_with_tables_that_cannot_be_built(tables: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Guide.open(":memory:", config=configuration.Config(predict=tuple(tables)))


def test_tables_are_read_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "crawlguide.toml"
    path.write_text('[[predict]]\nkind = "layered"\ntop = 50\n\n[[predict]]\nkind = "relational"\nbudget_ms = 20\n')
    loaded = configuration.load(path)
    assert loaded.predict == ({"kind": "layered", "top": 50}, {"kind": "relational", "budget_ms": 20})


@pytest.mark.parametrize("text", ["predict = 3\n", '[predict]\nkind = "layered"\n', "predict = [3]\n"])
def test_what_is_no_list_of_tables_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "crawlguide.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"predict: expected tables \[\[predict\]\]"):
        configuration.load(path)


# what is gone


def test_a_crawl_whose_plugin_is_gone_opens_without_it(tmp_path: Path, clock: ManualClock) -> None:
    stages = [model("a", 0, top=5), {"kind": "relational"}]
    with opened(tmp_path, clock) as guide:
        defined(guide, {"kind": "cascade", "predict": stages}, "0.9", "0.1")
    without = msgspec.structs.replace(CONFIG, crawls=configuration.CrawlsOptions())
    with opened(tmp_path, clock, without) as guide:
        answer = ask(guide, max_urls=1)
        assert degraded(answer) == ("predictor_fallback", f"{models.PLUG} raised LookupError")
        with pytest.raises(MalformedRequest, match=r"strategy\.predict\[0\]\.kind: expected one of"):
            guide.define("default", {"strategy": {"kind": "cascade", "predict": stages}})
    with opened(tmp_path, clock) as guide:
        assert degraded(ask(guide)) == (None, None)
