"""A definition changed in parts: a JSON merge patch (RFC 7396) of what there is. Unknown fields are refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from crawlguide.core.crawls import Definition
from crawlguide.core.errors import MalformedRequest
from crawlguide.gateway import wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.types import Crawl
    from crawlguide.guide.local import LocalGuide


async def patch(guide: LocalGuide, crawl: Crawl, changes: Mapping[str, Any]) -> None:
    """Change parts of a crawl that is there."""
    running = await guide.crawls.get(crawl, guide.clock.now(), create=False)
    await guide.define(crawl, patched(running.definition, changes))


def patched(definition: Definition, patch: Mapping[str, Any]) -> Definition:
    """The definition with what the patch names replaced; null brings a field back to its default."""
    return wire.convert(_merged(msgspec.to_builtins(definition), patch, Definition, ""), Definition)


def _merged(target: Any, patch: Any, kind: Any, path: str) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        where = f"{path}.{name}" if path else name
        inner = _kind_of(kind, name, where)
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value, inner, where)
    return merged


def _kind_of(kind: Any, name: str, where: str) -> Any:
    """The type of a field; a field that is not there is refused, also where a null would leave no trace of it."""
    kind = wire.plain_type(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        known = get_type_hints(kind, include_extras=True)
        if name not in known:
            expected = ", ".join(sorted(known))
            raise MalformedRequest(f"{where}: unknown field; expected one of {expected}", field=where)
        return known[name]
    return get_args(kind)[-1] if get_origin(kind) is dict else Any
