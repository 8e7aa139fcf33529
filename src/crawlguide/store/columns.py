"""Columns that grow in place."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

Array = TypeVar("Array", bound="np.ndarray[Any, Any]")
STEP = 1 << 16


def grown(column: Array, length: int, fill: Any = None) -> Array:
    """The same column with room for `length` rows, new ones filled.

    Growing asks the allocator to extend the block (moving pages, not bytes, once it is large) by a bounded step,
    so no request ever pays for copying a whole frontier. Nobody may hold a view of a column across a call that grows.
    """
    old = len(column)
    if length <= old:
        return column
    column.resize(max(length, min(2 * old, old + STEP), 16), refcheck=False)
    if fill is not None:
        column[old:] = fill
    return column
