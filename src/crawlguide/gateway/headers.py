"""The headers of a request, read once for all layers that look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.types import Scope


def headers_of(scope: Scope) -> Mapping[str, str]:
    """By their names in small letters; kept in the state of the scope."""
    state = scope.setdefault("state", {})
    found: Mapping[str, str] | None = state.get("headers")
    if found is None:
        found = state["headers"] = _read(scope["headers"])
    return found


def _read(given: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """One that is said several times is one with commas between (RFC 9110, section 5.3)."""
    found: dict[str, str] = {}
    for name, value in given:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
