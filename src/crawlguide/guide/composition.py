"""A strategy as a composition of judges, built from a crawl's definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide import policy
from crawlguide.core import plugs
from crawlguide.core.crawls import CLASSIC, Goal
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.guide import strategies
from crawlguide.guide.composing import PREDICT, Composer, House, default
from crawlguide.predictors.composed.whole import Whole
from crawlguide.sampling.top import Top

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.config import Config
    from crawlguide.core.crawls import Definition, Weights
    from crawlguide.core.protocols import Filter, Predictor, Sampler
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch

WARM_START = "strategy.warm_start"


@dataclass(frozen=True)
class Composition:
    """Which rows, which value, and how much each term weighs unless the crawl says otherwise."""

    sampler: Sampler
    predictor: Predictor
    weights: Weights


@dataclass(frozen=True)
class Assembled:
    """The strategy of a crawl as it was built, and `whole`: all of it as the corridor calls it, which never fails."""

    table: Mapping[str, Any]  # what it was built from
    sampler: Sampler
    predictor: Predictor
    weights: Weights
    whole: Whole

    @property
    def kind(self) -> str:
        return str(self.table.get("kind", "layered"))


@dataclass(frozen=True)
class Missing:
    """A predictor that could not be built when its crawl was opened: it says why whenever it is asked."""

    why: str
    version: str = "missing"

    def predict(self, batch: Batch) -> F64:  # noqa: ARG002 - it has nothing to say
        raise LookupError(self.why)


def strategy(definition: Definition, house: House, crawl: str = "", *, opening: bool = False) -> Assembled:
    """Build the strategy that a definition names, ours, a trusted one or one made of several.

    What cannot be built is refused by name; but a crawl that was there before is opened without it.
    """
    missing = (lambda why: Composition(Top(), Missing(why), CLASSIC)) if opening else None
    table = chosen(definition, house)
    composer = Composer(house, definition.goal, crawl, missing)
    whole = Whole(composer.member(table, "strategy"), Top())
    weights = composer.first.weights if composer.first else CLASSIC
    if len(whole.parts) == 1:
        (part,) = whole.parts
        return Assembled(table, part.sampler, part.predictor, weights, whole)
    return Assembled(table, whole, whole, weights, whole)


def chosen(definition: Definition, house: House) -> dict[str, Any]:
    """The strategy that a crawl names; of one that names none, the operator's."""
    return cold(definition).strategy or default(house.predict)


def check_default(config: Config) -> None:
    """Raise `ConfigError` if the operator's `[[predict]]` tables cannot be built."""
    if not config.predict:
        return
    house = House(plugins=config.crawls.plugins, predict=config.predict)
    try:
        table = default(house.predict)
        Composer(house, Goal()).member(table, f"{PREDICT}[0]" if table == house.predict[0] else "")
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


def compile_all() -> None:
    """Load every strategy and filter of ours, with the kernels they need: nothing compiles during a request."""
    for kind in plugs.kinds(strategies):
        plugs.module(strategies, kind, "strategy.kind")
    for kind in plugs.kinds(policy):
        plugs.module(policy, kind, "guide.filters")


def filters(names: Sequence[str], definition: Definition) -> tuple[Filter, ...]:
    """Build the filters in the order that the operator configured; a dotted name is the operator's own module."""
    own = [name for name in names if "." in name]
    return tuple(plugs.module(policy, name, "guide.filters", own).build(definition) for name in names)
