"""What a type takes, in words: for error messages, and for explaining the configuration."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec import UnsetType

WORDS = {int: "an integer", float: "a number", str: "text", bool: "true or false"}
BOUNDS = {"gt": " above {}", "ge": " from {}", "lt": " below {}", "le": " to {}", "max_length": " (at most {})"}


def in_words(kind: Any) -> str:
    """Annotated[int, Meta(ge=1)] | Literal["auto"] -> 'an integer from 1 or "auto"'; a description says it better."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        descriptions = (getattr(meta, "description", None) for meta in parts[1:])
        return next(filter(None, descriptions), None) or in_words(parts[0]) + "".join(map(_bounds, parts[1:]))
    if origin in (Union, UnionType):
        return " or ".join(in_words(part) for part in parts if part not in (NoneType, UnsetType))
    if origin is Literal:
        return f'"{parts[0]}"' if len(parts) == 1 else f"one of {', '.join(parts)}"
    if origin in (tuple, list):
        return f"a list, each {in_words(parts[0])}"
    return WORDS.get(kind, "a JSON object")


def _bounds(meta: Any) -> str:
    found = ((words, getattr(meta, name, None)) for name, words in BOUNDS.items())
    return "".join(words.format(bound) for words, bound in found if bound is not None)
