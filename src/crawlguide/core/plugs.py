"""The file name is the plug's name: kind "best-first" is `best_first.py`; a dotted kind is that module."""

from __future__ import annotations

import difflib
import pkgutil
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import MalformedRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def module(package: ModuleType, kind: str, field: str, trusted: Collection[str] = ()) -> ModuleType:
    """The module behind a kind, or an error that names the kinds there are.

    A dotted kind is imported only if the operator trusts it: whoever may define a crawl may not run any code.
    """
    known = [*kinds(package), *trusted]
    if kind not in known:
        near = difflib.get_close_matches(kind, known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise MalformedRequest(f"{field}: expected one of {', '.join(known)}, got {kind[:80]!r}{hint}", field=field)
    try:
        return import_module(kind if kind in trusted else f"{package.__name__}.{kind.replace('-', '_')}")
    except ImportError as missing:
        raise MalformedRequest(f"{field}: expected a module, got {kind!r}: {missing}", field=field) from None


def kinds(package: ModuleType) -> list[str]:
    """Every kind that a package offers: its files, except the private ones and those it says are none."""
    aside = getattr(package, "ASIDE", ())
    names = (found.name for found in pkgutil.iter_modules(package.__path__))
    return sorted(name.replace("_", "-") for name in names if not name.startswith("_") and name not in aside)


def options(plug: ModuleType, given: Mapping[str, Any], field: str) -> Any:
    """The plug's own `Options`, refusing unknown keys by name."""
    known = plug.Options.__struct_fields__
    for name in given:
        if name not in known:
            where = f"{field}.{name[:80]}"
            raise MalformedRequest(f"{where}: unknown option; expected one of {', '.join(known)}", field=where)
    try:
        return msgspec.convert(given, plug.Options)
    except msgspec.ValidationError as wrong:
        raise MalformedRequest(f"{field}: {wrong}", field=field) from None
