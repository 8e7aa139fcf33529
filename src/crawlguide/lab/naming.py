"""Options in the name of a policy, `layered[without=draws+bonus,most_urls=50000]`: what is a strategy worth so?

A value is read as JSON where it is some, else as text. Where an option holds a list its items have + between them.
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


# What a lab run calls the orders it compares, and how each is put to a guide.
#
# random, keyword, …     a policy of `lab/policies`, independent of the product
# layered, guide:random  a strategy of the product; the prefix tells it from the lab's policy of that name
# layered[without=draws] the same with options, as `lab/naming.py` reads them
# oracle                 all references: oracle-one-hop, oracle-full and the ceiling

OURS = "guide:"
CEILING, ONE_HOP, FULL = "ceiling", "oracle-one-hop", "oracle-full"
REFERENCES = (ONE_HOP, FULL, CEILING)
DEFAULT = "layered"


def known() -> list[str]:
    """Every name there is, the references last."""
    own = [kind for kind in policies.kinds() if kind not in REFERENCES]
    product = plugs.kinds(strategies)
    return [*own, *(kind for kind in product if kind not in own), *(OURS + kind for kind in product), *REFERENCES]


def chosen(words: Sequence[str]) -> list[str]:
    """Names as a command says them: `all` is every policy of the lab, the product's default and the references."""
    names: list[str] = []
    for word in words:
        if word == "all":
            names += [*(kind for kind in policies.kinds() if kind not in REFERENCES), DEFAULT, *REFERENCES]
        elif word == "oracle":
            names += REFERENCES
        else:
            names.append(_checked(word))
    return list(dict.fromkeys(names))


def _checked(policy: str) -> str:
    """A name that is known, with options that its strategy takes: what is wrong is said before anything runs."""
    name, said = parted(policy)
    if name not in known():
        near = difflib.get_close_matches(name, known(), 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(f"--policies: expected all, oracle or some of {', '.join(known())}; got {name!r}{hint}")
    if said is None:
        return policy
    if is_reference(name) or is_of_the_lab(name):
        raise ConfigError(f"--policies: expected options of a strategy of the product only, got {policy!r}")
    check(name.removeprefix(OURS), said)
    return policy


def is_reference(policy: str) -> bool:
    return policy in REFERENCES


def is_of_the_lab(policy: str) -> bool:
    return policy in policies.kinds()


def strategy(policy: str) -> dict[str, Any]:
    """What a crawl's definition says to be ordered so."""
    if is_of_the_lab(policy):
        return {"kind": policies.plug(policy)}
    name, said = parted(policy.removeprefix(OURS))
    return {"kind": name, **read(name, said or "")}


def plugins() -> tuple[str, ...]:
    """What the operator of a guide trusts (`crawls.plugins`) so that crawls may name the lab's policies."""
    return tuple(policies.plug(kind) for kind in policies.kinds())


def options(policy: str) -> tuple[str, ...]:
    """The options that a policy of the lab has."""
    found: tuple[str, ...] = import_module(policies.plug(policy)).Options.__struct_fields__
    return found
