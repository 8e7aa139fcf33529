"""What a lab run calls the orders it compares, and how each is put to a guide.

random, keyword, …     a policy of `lab/policies`, independent of the product
layered, guide:random  a strategy of the product; the prefix tells it from the lab's policy of that name
layered[without=draws] the same with options, as `lab/optioned.py` reads them
oracle                 all references: oracle-one-hop, oracle-full and the ceiling
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawlguide.core import plugs
from crawlguide.core.errors import ConfigError
from crawlguide.guide import strategies
from crawlguide.lab import optioned, policies

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    name, said = optioned.parted(policy)
    if name not in known():
        near = difflib.get_close_matches(name, known(), 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(f"--policies: expected all, oracle or some of {', '.join(known())}; got {name!r}{hint}")
    if said is None:
        return policy
    if is_reference(name) or is_of_the_lab(name):
        raise ConfigError(f"--policies: expected options of a strategy of the product only, got {policy!r}")
    optioned.check(name.removeprefix(OURS), said)
    return policy


def is_reference(policy: str) -> bool:
    return policy in REFERENCES


def is_of_the_lab(policy: str) -> bool:
    return policy in policies.kinds()


def strategy(policy: str) -> dict[str, Any]:
    """What a crawl's definition says to be ordered so."""
    if is_of_the_lab(policy):
        return {"kind": policies.plug(policy)}
    name, said = optioned.parted(policy.removeprefix(OURS))
    return {"kind": name, **optioned.read(name, said or "")}


def plugins() -> tuple[str, ...]:
    """What the operator of a guide trusts (`crawls.plugins`) so that crawls may name the lab's policies."""
    return tuple(policies.plug(kind) for kind in policies.kinds())


def options(policy: str) -> tuple[str, ...]:
    """The options that a policy of the lab has."""
    found: tuple[str, ...] = import_module(policies.plug(policy)).Options.__struct_fields__
    return found
