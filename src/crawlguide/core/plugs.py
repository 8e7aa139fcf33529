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
    from collections.abc import Mapping


def module(package: ModuleType, kind: str, field: str) -> ModuleType:
    """The module behind a kind, or an error that names the kinds there are."""
    known = kinds(package)
    if "." not in kind and kind not in known:
        near = difflib.get_close_matches(kind, known, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise MalformedRequest(f"{field}: expected one of {', '.join(known)}, got {kind!r}{hint}", field=field)
    path = kind if "." in kind else f"{package.__name__}.{kind.replace('-', '_')}"
    try:
        return import_module(path)
    except ModuleNotFoundError as missing:
        raise MalformedRequest(f"{field}: expected a module, got {kind!r}: {missing}", field=field) from None


def kinds(package: ModuleType) -> list[str]:
    """Every kind that a package offers: its files, except the private ones."""
    names = (found.name for found in pkgutil.iter_modules(package.__path__))
    return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))


def options(plug: ModuleType, given: Mapping[str, Any], field: str) -> Any:
    """The plug's own `Options`, refusing unknown keys by name."""
    try:
        return msgspec.convert(given, plug.Options)
    except msgspec.ValidationError as wrong:
        raise MalformedRequest(f"{field}: {wrong}", field=field) from None
