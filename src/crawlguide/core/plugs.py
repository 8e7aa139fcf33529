"""Plugins are found by file name: kind "best-first" is `best_first.py`; a dotted kind is that module."""

from __future__ import annotations

import difflib
import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.type_words import in_words

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def module(
    package: ModuleType, kind: str, field: str, trusted: Collection[str] = (), besides: Collection[str] = ()
) -> ModuleType:
    """The module of a kind, or an error that names the kinds there are, `besides` among them.

    A dotted kind is imported only if the operator trusts it: whoever may define a crawl may not run any code.
    """
    known = [*kinds(package), *trusted]
    if kind not in known:
        named = [*known, *besides]
        near = difflib.get_close_matches(kind, named, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise MalformedRequest(f"{field}: expected one of {', '.join(named)}, got {kind[:80]!r}{hint}", field=field)
    try:
        return import_module(kind if kind in trusted else module_name(package, kind))
    except ImportError as missing:
        raise MalformedRequest(f"{field}: expected a module, got {kind!r}: {missing}", field=field) from None


def module_name(package: ModuleType, kind: str) -> str:
    return f"{package.__name__}.{kind.replace('-', '_')}"


@cache  # every crawl that is defined asks for many kinds, and each answer reads a folder
def kinds(package: ModuleType) -> tuple[str, ...]:
    """Every kind that a package offers: its files, except the private ones and those it says are none."""
    aside = getattr(package, "ASIDE", ())
    names = (found.name for found in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name.replace("_", "-") for name in names if not name.startswith("_") and name not in aside))


def options(plug: ModuleType, given: Mapping[str, Any], field: str) -> Any:
    """The plugin's own `Options`; unknown keys are refused by name."""
    known = {one.name: one.type for one in msgspec.structs.fields(plug.Options)}
    for name, value in given.items():
        where = f"{field}.{name[:80]}"
        if name not in known:
            raise MalformedRequest(f"{where}: unknown option; expected one of {', '.join(known)}", field=where)
        if not isinstance(value, dict):
            option(known[name], value, where)
    try:
        return msgspec.convert(given, plug.Options)
    except msgspec.ValidationError as wrong:
        raise MalformedRequest(f"{field}: {wrong}", field=field) from None


def option(kind: Any, given: Any, field: str) -> Any:
    """One option of an annotated type; an error says what was expected, and what came."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError:
        shown = str(given if isinstance(given, str) else msgspec.json.encode(given).decode())[:80]
        raise MalformedRequest(f"{field}: expected {in_words(kind)}, got {shown}", field=field) from None
