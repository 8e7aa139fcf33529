"""The functions that Redis runs, as `redis_functions.lua` has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlguide.store.tables.rows import HOST, POLITENESS, ROW

if TYPE_CHECKING:
    from collections.abc import Mapping

LUA = Path(__file__).with_suffix(".lua")
# What Lua does not read, such as ids, which its numbers are too small for, is left as zeros.
CODES = {"i8": "i8", "i4": "i4", "i2": "i2", "u1": "B", "f8": "d", "f4": "f"}


def source() -> str:
    """The functions, with numpy's records as formats and names for Lua, so that the two sides cannot drift apart."""
    lua = LUA.read_text()
    whole = lua + "".join(f"register('{name}')\n" for name in re.findall(r"^function on\.(\w+)", lua, re.MULTILINE))
    whole = whole.replace("@SIZE@", str(ROW.itemsize))
    for name, record in (("ROW", ROW), ("HOST", HOST), ("PACE", POLITENESS)):
        fields: Mapping[str, Any] = record.fields or {}
        known = {field: part for field, part in fields.items() if part[0].str[1:] in CODES}
        codes = [CODES.get(part[0].str[1:], "x" * part[0].itemsize) for part in fields.values()]
        padding = record.itemsize - max(field[1] + field[0].itemsize for field in fields.values())
        format_and_names = f"'<{''.join(codes)}{'x' * padding}', {{{', '.join(map(repr, known))}}}"
        whole = whole.replace(f"@{name}@", format_and_names)
        for place, wanted in (("NEXT", "next_fetch"), ("WITHHELD", "withheld")):
            if wanted in fields:
                whole = whole.replace(f"@{place}@", str(fields[wanted][1] + 1))
    return whole
