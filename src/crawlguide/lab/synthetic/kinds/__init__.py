"""Webs on which guidance could fail: `synthetic:kind=news` is `news.py`, with `draw(sketch, pages)`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from crawlguide.core import plugs
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.lab.synthetic.kinds._sketch import DrawnWeb, Sketch

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DrawnWeb", "KindOptions", "drawn", "names"]
PACKAGE = sys.modules[__name__]
PREFIX = "synthetic"


class KindOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What can be said of such a web; `pages` is about how many it has."""

    kind: str
    seed: Annotated[int, Meta(ge=0)] = 0
    pages: Annotated[int, Meta(ge=300, le=20_000)] = 1_200


def names() -> tuple[str, ...]:
    return plugs.kinds(PACKAGE)


def drawn(given: Mapping[str, Any]) -> DrawnWeb:
    """A web by its kind, seed and size, or a clear word about what is wrong."""
    for name in given:
        if name not in KindOptions.__struct_fields__:
            raise ConfigError(f"{PREFIX}: {name}: beside kind expected only seed and pages")
    try:
        options = msgspec.convert(dict(given), KindOptions, strict=False)
        plug = plugs.module(PACKAGE, options.kind, "kind")
    except msgspec.ValidationError as problem:
        what, _, where = str(problem).partition(" - at `$.")
        raise ConfigError(f"{PREFIX}: {where.strip('`') or 'kind'}: {what[0].lower()}{what[1:]}") from None
    except MalformedRequest as unknown:
        raise ConfigError(f"{PREFIX}: {unknown.message}") from None
    sketch = Sketch(options.kind, options.seed)
    return DrawnWeb(_name(options), sketch, plug.draw(sketch, options.pages))


def _name(options: KindOptions) -> str:
    """As one would write it: only what differs from the usual."""
    usual = msgspec.structs.asdict(KindOptions(kind=""))
    given = msgspec.structs.asdict(options).items()
    return f"{PREFIX}:" + ",".join(f"{name}={value}" for name, value in given if value != usual[name])
