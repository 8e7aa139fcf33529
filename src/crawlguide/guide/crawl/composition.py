"""From what a crawl or the operator says of predictors to the predictors: one, or several as one, each guarded."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from crawlguide import policy, strategies
from crawlguide.core import compiling, plugs
from crawlguide.core.definition import CLASSIC, Definition, Fixed, Goal
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.policy.scope import domain_named
from crawlguide.strategies import composed
from crawlguide.strategies.composed.guard import GuardedPredictor, GuardedStrategy, GuardOptions
from crawlguide.strategies.shared.composition import Composition, Top

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import ModuleType

    from crawlguide.core.config import Config
    from crawlguide.core.definition import Weights
    from crawlguide.core.protocols import Filter, Predictor, Strategy
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch
    from crawlguide.policy import Services
    from crawlguide.strategies.composed.guard import Member

MOST_STAGES, DEEPEST, MOST_PARTS = 8, 4, 16
PREDICT = "predict"
DOMAIN_WEIGHTS = "domain_weights"


class Guarded(Fixed, frozen=True):
    """What every predictor may say beside its kind and its own options."""

    budget_ms: Annotated[float, Meta(gt=0, le=600_000, description="a number above 0, up to 600000")] | None = None


@dataclass(frozen=True)
class StrategyDefaults:
    """What all crawls of a guide have in common for their predictors."""

    seed: int = 0
    plugins: Collection[str] = ()  # modules that the operator trusts
    predict: Sequence[Mapping[str, Any]] = ()  # the operator's own, for crawls that name none
    budget_ms: float = 250.0
    now: Callable[[], float] = time.monotonic


@dataclass
class Composer:
    """Builds one crawl's predictors; `first` is the strategy whose weights count where there are several."""

    defaults: StrategyDefaults
    goal: Goal
    crawl: str = ""
    domain_weights: Mapping[str, float] = field(default_factory=dict)  # of the crawl's policy
    missing: Callable[[str], Strategy] | None = None  # stands where nothing can be built; None: that is an error
    parts_of_kind: dict[str, int] = field(default_factory=dict)  # how many there are of each kind
    first: Strategy | None = None
    weighted: bool = False  # some predictor was built with the domain weights

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

    def _part(self, kind: str, table: dict[str, Any], where: str, alone: bool) -> GuardedPredictor:
        guarded, options = _taken(Guarded, table, where)
        number = self.parts_of_kind[kind] = self.parts_of_kind.get(kind, 0) + 1
        if sum(self.parts_of_kind.values()) > MOST_PARTS:
            raise MalformedRequest(f"{where}: expected at most {MOST_PARTS} predictors in all", field=where)
        strategy, defaults = self._built(kind, options, where), self.defaults
        self.first = self.first or strategy
        name = kind if number == 1 else f"{kind}#{number}"
        # so that one of ours goes on with what it learned alone; the sheets of others could be called like ours
        shared = alone or (number == 1 and "." not in kind and kind not in defaults.plugins)
        budget = guarded.budget_ms or defaults.budget_ms
        section = "" if shared else ascii(name)[1:-1][:100]
        return GuardedPredictor(
            strategy, GuardOptions(name, self.crawl, defaults.now, budget, guarded.budget_ms is not None, section)
        )

    def _built(self, kind: str, table: Mapping[str, Any], where: str) -> Strategy:
        try:
            plug = plugs.module(strategies, kind, f"{where}.kind", self.defaults.plugins, plugs.kinds(composed))
            options = plugs.options(plug, self._with_domain_weights(plug, table), where)
            built: Strategy = plug.build(options, self.defaults.seed, self.goal)
        except Exception as problem:
            explained = isinstance(problem, MalformedRequest)
            message = (
                str(problem) if explained else f"{where}: {kind} cannot be built: {type(problem).__name__}: {problem}"
            )
            if self.missing is not None:
                return self.missing(message)
            if explained:
                raise
            raise MalformedRequest(message, field=where) from problem
        return built

    def _with_domain_weights(self, plug: ModuleType, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """A strategy with an option `domain_weights` gets those of the policy too; its own go before them."""
        own = table.get(DOMAIN_WEIGHTS, {})
        if DOMAIN_WEIGHTS not in plug.Options.__struct_fields__ or not isinstance(own, dict):
            return table
        self.weighted = True
        return {**table, DOMAIN_WEIGHTS: {**self.domain_weights, **own}}


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


def _tables(tables: Any, where: str) -> Sequence[Mapping[str, Any]]:
    expected = f"a list of 1 to {MOST_STAGES} predictors"
    if not isinstance(tables, list | tuple) or not 1 <= len(tables) <= MOST_STAGES:
        raise wrong(where, expected, tables)
    for number, one in enumerate(tables):
        if not isinstance(one, dict):
            raise wrong(f"{where}[{number}]", "a predictor with its kind", one)
    return tables


def _taken(kind: type[Fixed], table: Mapping[str, Any], where: str) -> tuple[Any, dict[str, Any]]:
    """What a struct names, out of a table; and the rest of it."""
    mine, names = {}, msgspec.structs.fields(kind)
    for one in names:
        if one.name in table:
            mine[one.name] = plugs.option(one.type, table[one.name], f"{where}.{one.name}")
    return kind(**mine), {name: value for name, value in table.items() if name not in mine}


# A strategy as a composition of judges, built from a crawl's definition.

WARM_START = "strategy.warm_start"


@dataclass(frozen=True)
class Assembled:
    """The strategy of a crawl as it was built, and `guarded`: all of it as the pipeline calls it, which never fails."""

    table: Mapping[str, Any]  # what it was built from
    weights: Weights
    guarded: GuardedStrategy
    domain_weights: Mapping[str, float]  # with which it was built

    @property
    def kind(self) -> str:
        return str(self.table.get("kind", "layered"))

    @property
    def predictor(self) -> Predictor:
        """The first of its predictors, without its guard."""
        return self.guarded.parts[0].predictor


@dataclass(frozen=True)
class Missing:
    """A predictor that could not be built when its crawl was opened: it says why whenever it is asked."""

    why: str
    version: str = "missing"

    def predict(self, batch: Batch) -> F64:  # noqa: ARG002 - it has nothing to say
        raise LookupError(self.why)


def strategy(
    definition: Definition, defaults: StrategyDefaults, crawl: str = "", *, opening: bool = False
) -> Assembled:
    """Build the strategy that a definition names, ours, a trusted one or one made of several.

    What cannot be built is refused by name; but a crawl that was there before is opened without it.
    """
    missing = (lambda why: Composition(Top(), Missing(why), CLASSIC)) if opening else None
    table = chosen(definition, defaults)
    weights = {
        domain_named(name, f"policy.{DOMAIN_WEIGHTS}"): max(weight, 0.0)
        for name, weight in definition.policy.domain_weights.items()
    }
    composer = Composer(defaults, definition.goal, crawl, weights, missing)
    guarded = GuardedStrategy(composer.member(table, "strategy"), Top())
    term_weights = composer.first.weights if composer.first else CLASSIC
    return Assembled(table, term_weights, guarded, weights if composer.weighted else {})


def chosen(definition: Definition, defaults: StrategyDefaults) -> dict[str, Any]:
    """The strategy that a crawl names; of one that names none, the operator's."""
    return cold(definition).strategy or default(defaults.predict)


def check_default(config: Config) -> None:
    """Raise `ConfigError` if the operator's `[[predict]]` tables cannot be built."""
    if not config.predict:
        return
    defaults = StrategyDefaults(plugins=config.crawls.plugins, predict=config.predict)
    try:
        table = default(defaults.predict)
        Composer(defaults, Goal()).member(table, f"{PREDICT}[0]" if table == defaults.predict[0] else "")
    except MalformedRequest as wrong:
        raise ConfigError(wrong.message) from None


def warm_start(definition: Definition) -> str | None:
    """The crawl whose learned state this one begins with. Every strategy has this option beside its own."""
    name = definition.strategy.get("warm_start")
    if name is not None and not isinstance(name, str):
        raise MalformedRequest(f"{WARM_START}: expected the name of a crawl, got {name!r}", field=WARM_START)
    return name


def cold(definition: Definition) -> Definition:
    """The same crawl, beginning with nothing."""
    options = {name: value for name, value in definition.strategy.items() if name != "warm_start"}
    return msgspec.structs.replace(definition, strategy=options)


def load(config: Config) -> None:
    """Load every filter of ours and every strategy that a guide begins with, with the kernels they need.

    Nothing compiles during a request: `ActiveCrawls` loads other strategies before the crawls that name them are built.
    """
    later = set(compiling.LATER) - compiling.strategies_at_start(config)
    for kind in plugs.kinds(strategies):
        if plugs.module_name(strategies, kind) not in later:
            plugs.module(strategies, kind, "strategy.kind")
    for kind in plugs.kinds(policy):
        plugs.module(policy, kind, "guide.filters")


def filter_kinds(names: Sequence[str]) -> tuple[Filter, ...]:
    """All filters of ours, and the operator's own among these, as a crawl has them that says nothing else."""
    return filters([*plugs.kinds(policy), *(name for name in names if "." in name)], Definition())


def filters(names: Sequence[str], definition: Definition, services: Services | None = None) -> tuple[Filter, ...]:
    """Build the filters in the order that the operator configured; a dotted name is the operator's own module.

    With what the guide lends them, some find that the crawl does not need them.
    """
    own = [name for name in names if "." in name]
    built = (plugs.module(policy, name, "guide.filters", own).build(definition) for name in names)
    if services is None:
        return tuple(built)
    connected = (rule.connected(services) if hasattr(rule, "connected") else rule for rule in built)
    return tuple(rule for rule in connected if rule is not None)
