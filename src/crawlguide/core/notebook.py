"""What a strategy has learned, as records: a notebook for each crawl, a sheet for each kind of thing.

A strategy only writes into its sheets and says which rows it changed; the store that lent the notebook keeps them, and
writes them with all else that a commit writes. So what is learned is never ahead of what is known, and never behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import I64

Records = np.ndarray[Any, Any]
LONGEST_NAME = 8


class Sheet:
    """Records of one kind. `rows` is another array after it grew: do not hold on to it."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.rows: Records = np.zeros(0, kind)
        self.used = 0  # records in use; behind them lies room

    def fit(self, count: int) -> None:
        """Have at least so many records in use; new ones are all zeros."""
        if count > len(self.rows):
            longer = np.zeros(max(count, 2 * len(self.rows), 64), self.rows.dtype)
            longer[: self.used] = self.rows[: self.used]
            self.rows = longer
        self.used = max(self.used, count)

    def changed(self, rows: I64) -> None:
        """These records are not as they were; told before the next commit, in any order, some perhaps twice."""


class Notebook:
    """The sheets of one crawl in memory alone."""

    def __init__(self) -> None:
        self._sheets: dict[str, Sheet] = {}

    def sheet(self, name: str, kind: np.dtype[Any]) -> Sheet:
        """The sheet of that name as it was left; empty if there was none, or one with records of another kind."""
        found = self._sheets.get(name)
        if found is None or found.rows.dtype != kind:
            found = self._sheets[name] = self._blank(name, kind)
        return found

    def _blank(self, name: str, kind: np.dtype[Any]) -> Sheet:  # noqa: ARG002 - a store that keeps it needs the name
        return Sheet(kind)


@runtime_checkable
class Remembers(Protocol):
    """A predictor or sampler that keeps what it learns in a notebook."""

    def remember(self, notebook: Notebook) -> None:
        """Called once, before anything else: go on from what lies in the notebook, and write into it from now on."""
        ...
