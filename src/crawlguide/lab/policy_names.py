"""What `--policies` may say, and how each name is put to a guide.

keyword, feedstock, …       a policy that only the lab has, one file in `lab/policies`
layered, random, …          a strategy of the product
layered[without=bonus]      the same with options of the strategy
my.module                   a policy of your own: any module with `Options` and `build`
oracle                      the references: oracle-one-hop, oracle-full and the ceiling
all                         the lab's own policies, the product's classics, layered and the references

An option's value is read as JSON where it is JSON, else as text. Where an option holds a list, its items have + between
them: `layered[without=bonus+leads,most_urls=50000]`.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide import strategies
from crawlguide.core import plugs
from crawlguide.core.definition import Goal
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.lab import policies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

OPTION = "--policies"
DEFAULT = "layered"
CLASSICS = (
    "random", "breadth-first", "depth-first", "in-degree", "opic", "pagerank", "best-first", "best-first-mean",
    "relational",
)  # fmt: skip
CEILING, ONE_HOP, FULL = "ceiling", "oracle-one-hop", "oracle-full"
REFERENCES = (ONE_HOP, FULL, CEILING)


def split_names(text: str) -> list[str]:
    """What stands between commas; commas within brackets do not count."""
    names, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth <= 0:
            names.append("")
        else:
            names[-1] += letter
    return [name.strip() for name in names if name.strip()]


def chosen(words: Sequence[str]) -> list[str]:
    """The policies that a command asks for, each once. Raises `ConfigError` for what cannot run."""
    names: list[str] = []
    for word in words:
        if word == "all":
            names += [*_of_the_lab(), *CLASSICS, DEFAULT, *REFERENCES]
        elif word == "oracle":
            names += REFERENCES
        else:
            names.append(_checked(word))
    return list(dict.fromkeys(names))


def is_reference(policy: str) -> bool:
    return policy in REFERENCES


def strategy(policy: str) -> dict[str, Any]:
    """The `strategy` of a crawl's definition that orders URLs by this policy."""
    name, options = _parted(policy)
    return {"kind": _kind(name), **_read(name, options or "")}


def plugins(policy: str | None = None) -> tuple[str, ...]:
    """What a guide has to trust (`crawls.plugins`) so that crawls may name the policies of the lab, and this one."""
    elsewhere = None if policy is None else module_elsewhere(policy)
    return (*(policies.plug(kind) for kind in policies.kinds()), *filter(None, [elsewhere]))


def module_elsewhere(policy: str) -> str | None:
    """The name of the module, if a policy is neither the lab's nor the product's."""
    name = _parted(policy)[0]
    return name if "." in name else None


def module(policy: str) -> ModuleType:
    """The module in which a policy is written."""
    name = _parted(policy)[0]
    if "." in _kind(name):
        return import_module(_kind(name))
    return plugs.module(strategies, name, OPTION)


def options(policy: str) -> tuple[str, ...]:
    """The names of the options that a policy has."""
    names: tuple[str, ...] = module(policy).Options.__struct_fields__
    return names


def _of_the_lab() -> list[str]:
    return [kind for kind in policies.kinds() if kind not in REFERENCES]


def _kind(name: str) -> str:
    """What `strategy.kind` calls a policy."""
    return policies.plug(name) if name in policies.kinds() else name


def _parted(policy: str) -> tuple[str, str | None]:
    """The name, and what stands in the brackets behind it; None: there are none."""
    name, bracket, rest = policy.partition("[")
    if not bracket:
        return name, None
    if not rest.endswith("]"):
        raise ConfigError(f"{OPTION}: expected NAME[option=value,…], got {policy!r}")
    return name, rest[:-1]


def _checked(policy: str) -> str:
    """A policy that can run: what is wrong is said before anything runs."""
    name, options = _parted(policy)
    known = [*_of_the_lab(), *plugs.kinds(strategies), *REFERENCES]
    if "." in name:
        _check_module(name)
    elif name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(
            f"{OPTION}: expected all, oracle, my.module or some of {', '.join(known)}; got {name!r}{hint}"
        )
    if options is None:
        return policy
    if is_reference(name) or name in policies.kinds():
        raise ConfigError(f"{OPTION}: expected options of a strategy of the product only, got {policy!r}")
    _check_options(name, options)
    return policy


def _check_module(name: str) -> None:
    try:
        module = import_module(name)
    except ImportError as problem:
        raise ConfigError(f"{OPTION}: expected a module, got {name!r}: {problem}") from None
    for part in ("Options", "build"):
        if not hasattr(module, part):
            raise ConfigError(f"{OPTION}: expected a module with Options and build; {name} has no {part}")


def _check_options(name: str, options: str) -> None:
    where, plug = f"{OPTION}: {name}", module(name)
    try:
        plug.build(plugs.options(plug, _read(name, options), where), 0, Goal())
    except MalformedRequest as wrong:
        raise ConfigError(str(wrong) if where in str(wrong) else f"{where}: {wrong}") from None


def _read(name: str, options: str) -> dict[str, Any]:
    """The options as the definition of a crawl says them."""
    values: dict[str, Any] = {}
    for pair in split_names(options):
        option, sign, value = (part.strip() for part in pair.partition("="))
        if not (option and sign and value):
            raise ConfigError(f"{OPTION}: {name}: expected option=value, got {pair!r}")
        values[option] = value.split("+") if _is_list(name, option) and value[0] != "[" else _value(value)
    return values


def _is_list(name: str, option: str) -> bool:
    fields = msgspec.structs.fields(module(name).Options)
    return any(field.name == option and isinstance(field.default, tuple) for field in fields)


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
