"""The file name is the plug's name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from crawlguide import strategies
from crawlguide.core import plugs
from crawlguide.core.definition import Goal
from crawlguide.core.errors import MalformedRequest
from crawlguide.strategies import best_first

if TYPE_CHECKING:
    from pathlib import Path


def test_a_kind_is_the_file_of_that_name() -> None:
    assert plugs.module(strategies, "best-first", "strategy.kind") is best_first


def test_a_dotted_kind_is_that_module() -> None:
    name = "crawlguide.strategies.best_first"
    assert plugs.module(strategies, name, "strategy.kind", [name]) is best_first


def test_a_dotted_kind_that_nobody_trusts_is_not_even_imported() -> None:
    sys.modules.pop("wave", None)
    with pytest.raises(MalformedRequest, match="expected one of"):
        plugs.module(strategies, "wave.open", "strategy.kind")
    assert "wave" not in sys.modules


def test_kinds_are_the_files_of_a_package_with_dashes_in_order() -> None:
    found = plugs.kinds(strategies)
    assert {"best-first", "breadth-first", "depth-first", "layered", "random"} <= set(found)
    assert [*found] == sorted(found)
    assert plugs.kinds(strategies) is found  # the folder is read once


def test_private_files_are_no_kinds(tmp_path: Path) -> None:
    for name in ("_shared.py", "open_one.py"):
        (tmp_path / name).touch()
    package = ModuleType("package")
    package.__path__ = [str(tmp_path)]
    assert plugs.kinds(package) == ("open-one",)


def test_an_unknown_kind_is_refused_with_the_kinds_there_are_and_the_nearest() -> None:
    with pytest.raises(MalformedRequest, match=r"strategy\.kind: expected one of .*layered.*did you mean 'layered'"):
        plugs.module(strategies, "layerd", "strategy.kind")


def test_a_kind_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(MalformedRequest) as refusal:
        plugs.module(strategies, "zzzzzz", "strategy.kind")
    assert "did you mean" not in refusal.value.message


def test_a_refusal_names_the_field() -> None:
    with pytest.raises(MalformedRequest) as refusal:
        plugs.module(strategies, "nothing", "strategy.kind")
    assert refusal.value.field == "strategy.kind"


def test_a_dotted_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(MalformedRequest, match=r"expected a module, got 'acme\.models\.mine'"):
        plugs.module(strategies, "acme.models.mine", "strategy.kind", ["acme.models.mine"])


def test_options_of_a_plug_come_from_what_is_given() -> None:
    assert plugs.options(best_first, {"kind": "best-first"}, "strategy") == best_first.Options()


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(MalformedRequest, match=r"strategy\.epsilom: unknown option"):
        plugs.options(best_first, {"epsilom": 0.1}, "strategy")


@pytest.mark.parametrize("kind", plugs.kinds(strategies))
def test_every_strategy_can_be_built_from_its_own_defaults(kind: str) -> None:
    plug = plugs.module(strategies, kind, "strategy.kind")
    built = plug.build(plugs.options(plug, {"kind": kind}, "strategy"), 0, Goal())
    assert built.predictor.version


@pytest.mark.parametrize("kind", plugs.kinds(strategies))
def test_the_kind_in_the_options_of_a_strategy_is_the_name_of_its_file(kind: str) -> None:
    assert plugs.module(strategies, kind, "strategy.kind").Options().kind == kind
