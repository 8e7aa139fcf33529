"""A strategy as a composition of judges, built from a crawl's definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from crawlguide import policy
from crawlguide.core import plugs
from crawlguide.core.errors import MalformedRequest
from crawlguide.guide import strategies

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from crawlguide.core.crawls import Definition, Weights
    from crawlguide.core.protocols import Filter, Predictor, Sampler, Strategy

WARM_START = "strategy.warm_start"


@dataclass(frozen=True)
class Composition:
    """Which rows, which value, and how much each term weighs unless the crawl says otherwise."""

    sampler: Sampler
    predictor: Predictor
    weights: Weights


def strategy(definition: Definition, seed: int, plugins: Collection[str]) -> Strategy:
    """Build the strategy that a definition names, ours or a trusted one; its options stand beside its kind."""
    kind = definition.strategy.get("kind", "layered")
    if not isinstance(kind, str):
        raise MalformedRequest(f"strategy.kind: expected a name, got {kind!r}", field="strategy.kind")
    plug = plugs.module(strategies, kind, "strategy.kind", plugins)
    given = cold(definition).strategy
    built: Strategy = plug.build(plugs.options(plug, given, "strategy"), seed, definition.goal)
    return built


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
