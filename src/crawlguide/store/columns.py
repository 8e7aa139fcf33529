"""Columns that grow in place."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, TypeVar

import numpy as np

Array = TypeVar("Array", bound="np.ndarray[Any, Any]")
STEP = 1 << 16
LARGE = 4 << 20
ADVISE_HUGE_PAGES = 14
_libc = ctypes.CDLL(None)


def grown(column: Array, length: int, fill: Any = None) -> Array:
    """The same column with room for `length` rows, new ones filled.

    Growing asks the allocator to extend the block (moving pages, not bytes, once it is large) by a bounded step,
    so no request ever pays for copying a whole frontier. Nobody may hold a view of a column across a call that grows.
    """
    old = len(column)
    if length <= old:
        return column
    column.resize(max(length, min(2 * old, old + STEP), 16), refcheck=False)
    if column.nbytes >= LARGE:
        _on_huge_pages(column)
    if fill is not None:
        column[old:] = fill
    return column


def _on_huge_pages(column: np.ndarray[Any, Any]) -> None:
    """Rows are read here and there; with large pages the processor finds them with far fewer steps. A hint only."""
    start = -(-column.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    length = column.ctypes.data + column.nbytes - start
    if hasattr(_libc, "madvise"):
        _libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), ADVISE_HUGE_PAGES)
