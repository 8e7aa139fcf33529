"""Which rows of a crawl are dirty: changed since they were last written to disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import I32, I64

NOTHING = np.zeros(0, np.int64)


class DirtyRows(Protocol):
    """Told by a frontier what it changes."""

    def rows(self, rows: I64) -> None:
        """These rows changed, and with them perhaps their hosts."""
        ...

    def row(self, row: int) -> None: ...

    def assigned(self, rows: I64) -> None:
        """These rows were leased, and nothing else: their state, their politeness queues, their domains' pages."""
        ...

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None:
        """A number that stands in no row changed."""
        ...


class Untracked:
    """For a store that is never written."""

    def rows(self, rows: I64) -> None: ...

    def row(self, row: int) -> None: ...

    def assigned(self, rows: I64) -> None: ...

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None: ...


@dataclass(eq=False)
class Tracked:
    """Collects what one crawl changes; a row stands for its host as well. A crawl with changes is in `dirty_crawls`."""

    owner: int  # the number of the crawl in its folder
    dirty_crawls: dict[Tracked, None]
    _rows: list[I64] = field(default_factory=list)
    _single: list[int] = field(default_factory=list)
    _assigned: list[I64] = field(default_factory=list)
    _hosts: list[I32] | list[I64] = field(default_factory=list)

    def rows(self, rows: I64) -> None:
        self._rows.append(rows)
        self.dirty_crawls[self] = None

    def row(self, row: int) -> None:
        self._single.append(row)
        self.dirty_crawls[self] = None

    def assigned(self, rows: I64) -> None:
        self._assigned.append(rows)
        self.dirty_crawls[self] = None

    def hosts(self, hosts: I32 | I64) -> None:
        self._hosts.append(hosts)  # type: ignore[arg-type]
        self.dirty_crawls[self] = None

    def counters(self) -> None:
        self.dirty_crawls[self] = None

    def take(self) -> tuple[I64, I64, I64]:
        """The rows, hosts and assigned rows that changed, some perhaps more than once; none is dirty any more."""
        rows = _joined([*self._rows, np.array(self._single, np.int64)] if self._single else self._rows)
        hosts, assigned = _joined(self._hosts), _joined(self._assigned)
        self._rows, self._single, self._assigned, self._hosts = [], [], [], []
        return rows, hosts, assigned


def _joined(columns: list[I32] | list[I64]) -> I64:
    return np.concatenate(columns).astype(np.int64) if columns else NOTHING
