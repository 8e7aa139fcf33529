"""Column arithmetic that several stages share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.core.types import I64, Text


def texts(values: Iterable[Any]) -> Text:
    """A column of Python objects; numpy must not look inside them."""
    listed = list(values)
    column = np.empty(len(listed), object)
    column[:] = listed
    return column


def rank_within(groups: I64) -> I64:
    """Place of each row among the earlier rows of its group: [7, 7, 9, 7] -> [0, 1, 0, 2]."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.empty(len(groups), np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
    return ranks
