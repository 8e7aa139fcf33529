"""From what a crawl or the operator says of predictors to the predictors: one, or several as one, each guarded."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from crawlguide.core import plugs
from crawlguide.core.crawls import Fixed
from crawlguide.core.errors import MalformedRequest
from crawlguide.guide import strategies
from crawlguide.predictors import composed
from crawlguide.predictors.composed.part import Part, Terms

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from crawlguide.core.crawls import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.predictors.composed.opinion import Member

MOST_STAGES, DEEPEST, MOST_PARTS = 8, 4, 16
PREDICT = "predict"


class Guarded(Fixed, frozen=True):
    """What every predictor may say beside its kind and its own options."""

    budget_ms: Annotated[float, Meta(gt=0, le=600_000, description="a number above 0, up to 600000")] | None = None


@dataclass(frozen=True)
class House:
    """What all crawls of a guide have in common for their predictors."""

    seed: int = 0
    plugins: Collection[str] = ()  # modules that the operator trusts
    predict: Sequence[Mapping[str, Any]] = ()  # the operator's own, for crawls that name none
    budget_ms: float = 250.0
    now: Callable[[], float] = time.monotonic


@dataclass
class Composer:
    """Builds one crawl's predictors; `first` is the strategy whose weights count where there are several."""

    house: House
    goal: Goal
    crawl: str = ""
    missing: Callable[[str], Strategy] | None = None  # stands where nothing can be built; None: that is an error
    known: dict[str, int] = field(default_factory=dict)  # how many there are of each kind
    first: Strategy | None = None

    def member(self, table: Mapping[str, Any], where: str, depth: int = 1) -> Member:
        """What one table says; `where` it stands is named in errors."""
        kind = table.get("kind", "layered")
        if not isinstance(kind, str):
            raise wrong(_at(where, "kind"), "a name", kind)
        if kind in plugs.kinds(composed):
            return self._composite(kind, table, where, depth)
        return self._part(kind, dict(table), where, alone=depth == 1)

    def _composite(self, kind: str, table: Mapping[str, Any], where: str, depth: int) -> Member:
        plug = plugs.module(composed, kind, _at(where, "kind"))
        for name in table:
            if name not in ("kind", PREDICT):
                place = _at(where, name[:80])
                raise MalformedRequest(f"{place}: unknown option; expected one of kind, {PREDICT}", field=place)
        members, stages = [], []
        listed = _at(where, PREDICT)
        for number, one in enumerate(_tables(table.get(PREDICT), listed)):
            place = f"{listed}[{number}]"
            if depth == DEEPEST:
                raise wrong(place, f"no more than {DEEPEST} levels of {PREDICT}", one)
            if "kind" not in one:
                raise MalformedRequest(f"{place}.kind: required, but missing", field=f"{place}.kind")
            stage, rest = _taken(plug.Stage, one, place)
            members.append(self.member(rest, place, depth + 1))
            stages.append(stage)
        built: Member = plug.build(members, stages)
        return built

    def _part(self, kind: str, table: dict[str, Any], where: str, alone: bool) -> Part:
        guarded, given = _taken(Guarded, table, where)
        number = self.known[kind] = self.known.get(kind, 0) + 1
        if sum(self.known.values()) > MOST_PARTS:
            raise MalformedRequest(f"{where}: expected at most {MOST_PARTS} predictors in all", field=where)
        strategy, house = self._built(kind, given, where), self.house
        self.first = self.first or strategy
        name = kind if number == 1 else f"{kind}#{number}"
        # so that one of ours goes on with what it learned alone; the sheets of others could be called like ours
        shared = alone or (number == 1 and "." not in kind and kind not in house.plugins)
        budget = guarded.budget_ms or house.budget_ms
        section = "" if shared else ascii(name)[1:-1][:100]
        return Part(strategy, Terms(name, self.crawl, house.now, budget, guarded.budget_ms is not None, section))

    def _built(self, kind: str, given: Mapping[str, Any], where: str) -> Strategy:
        try:
            plug = plugs.module(strategies, kind, f"{where}.kind", self.house.plugins, plugs.kinds(composed))
            built: Strategy = plug.build(plugs.options(plug, given, where), self.house.seed, self.goal)
        except Exception as problem:
            known = isinstance(problem, MalformedRequest)
            said = str(problem) if known else f"{where}: {kind} cannot be built: {type(problem).__name__}: {problem}"
            if self.missing is not None:
                return self.missing(said)
            if known:
                raise
            raise MalformedRequest(said, field=where) from problem
        return built


def default(predict: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The strategy of crawls that name none, by the operator's `[[predict]]` tables: several are a cascade."""
    if not predict:
        return {"kind": "layered"}
    if len(predict) == 1 and "top" not in predict[0]:
        return dict(predict[0])
    return {"kind": "cascade", PREDICT: [dict(table) for table in predict]}


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def wrong(where: str, expected: str, got: Any) -> MalformedRequest:
    shown = msgspec.json.encode(got).decode()[:80]
    return MalformedRequest(f"{where}: expected {expected}, got {shown}", field=where)


def _tables(given: Any, where: str) -> Sequence[Mapping[str, Any]]:
    expected = f"a list of 1 to {MOST_STAGES} predictors"
    if not isinstance(given, list | tuple) or not 1 <= len(given) <= MOST_STAGES:
        raise wrong(where, expected, given)
    for number, one in enumerate(given):
        if not isinstance(one, dict):
            raise wrong(f"{where}[{number}]", "a predictor with its kind", one)
    return given


def _taken(kind: type[Fixed], table: Mapping[str, Any], where: str) -> tuple[Any, dict[str, Any]]:
    """What a struct names, out of a table; and the rest of it."""
    mine, names = {}, msgspec.structs.fields(kind)
    for one in names:
        if one.name in table:
            mine[one.name] = plugs.option(one.type, table[one.name], f"{where}.{one.name}")
    return kind(**mine), {name: value for name, value in table.items() if name not in mine}
