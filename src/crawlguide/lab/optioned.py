"""Options in the name of a policy, `layered[without=draws+bonus,most_urls=50000]`: what is a strategy worth so?

A value is read as JSON where it is some, else as text. Where an option holds a list its items have + between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core import plugs
from crawlguide.core.crawls import Goal
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.guide import strategies

if TYPE_CHECKING:
    from types import ModuleType

WHERE = "--policies"


def listed(words: str) -> list[str]:
    """What stands between commas, where commas within brackets do not count."""
    found, depth = [""], 0
    for letter in words:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth <= 0:
            found.append("")
        else:
            found[-1] += letter
    return [word.strip() for word in found if word.strip()]


def parted(policy: str) -> tuple[str, str | None]:
    """The name, and what stands in the brackets behind it; None: there are none."""
    name, bracket, rest = policy.partition("[")
    if not bracket:
        return name, None
    if not rest.endswith("]"):
        raise ConfigError(f"{WHERE}: expected NAME[option=value,…], got {policy!r}")
    return name, rest[:-1]


def read(kind: str, said: str) -> dict[str, Any]:
    """The options as the definition of a crawl says them."""
    lists = _lists(_plug(kind))
    found: dict[str, Any] = {}
    for pair in listed(said):
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not (name and sign and value):
            raise ConfigError(f"{WHERE}: {kind}: expected option=value, got {pair!r}")
        found[name] = value.split("+") if name in lists and value[0] != "[" else _value(value)
    return found


def check(kind: str, said: str) -> None:
    """Raise `ConfigError` for what the strategy does not take."""
    where, plug = f"{WHERE}: {kind}", _plug(kind)
    try:
        plug.build(plugs.options(plug, read(kind, said), where), 0, Goal())
    except MalformedRequest as wrong:
        raise ConfigError(str(wrong) if where in str(wrong) else f"{where}: {wrong}") from None


def _plug(kind: str) -> ModuleType:
    return plugs.module(strategies, kind, WHERE)


def _lists(plug: ModuleType) -> set[str]:
    """The options that hold lists."""
    return {field.name for field in msgspec.structs.fields(plug.Options) if isinstance(field.default, tuple)}


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
