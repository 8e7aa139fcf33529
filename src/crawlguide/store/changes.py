"""Which rows a crawl has changed since they were last written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import I32, I64


class Watch(Protocol):
    def rows(self, rows: I64) -> None:
        """These rows changed, and with them perhaps their hosts."""
        ...

    def row(self, row: int) -> None: ...

    def given(self, rows: I64) -> None:
        """These rows were given out, and nothing else: their state, their queues' pace, their domains' pages."""
        ...

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None:
        """A number that stands in no row changed."""
        ...


class Unwatched:
    """For a store that forgets: nobody will ask."""

    def rows(self, rows: I64) -> None: ...

    def row(self, row: int) -> None: ...

    def given(self, rows: I64) -> None: ...

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None: ...


@dataclass(eq=False)
class Changes:
    """Rows and hosts that changed; a row stands for its host as well. Whoever changed is listed in `dirty`."""

    dirty: dict[Changes, None]
    _rows: list[I64] = field(default_factory=list)
    _one: list[int] = field(default_factory=list)
    _given: list[I64] = field(default_factory=list)
    _hosts: list[I32] | list[I64] = field(default_factory=list)

    def rows(self, rows: I64) -> None:
        self._rows.append(rows)
        self.dirty[self] = None

    def row(self, row: int) -> None:
        self._one.append(row)
        self.dirty[self] = None

    def given(self, rows: I64) -> None:
        self._given.append(rows)
        self.dirty[self] = None

    def hosts(self, hosts: I32 | I64) -> None:
        self._hosts.append(hosts)  # type: ignore[arg-type]
        self.dirty[self] = None

    def counters(self) -> None:
        self.dirty[self] = None

    def take(self) -> tuple[I64, I64, I64]:
        """The rows, hosts and given rows that changed, some perhaps more than once; from here on nothing has."""
        rows = _joined([*self._rows, np.array(self._one, np.int64)] if self._one else self._rows)
        hosts, given = _joined(self._hosts), _joined(self._given)
        self._rows, self._one, self._given, self._hosts = [], [], [], []
        return rows, hosts, given


def _joined(pieces: list[I32] | list[I64]) -> I64:
    return np.concatenate(pieces).astype(np.int64) if pieces else NOTHING


NOTHING = np.zeros(0, np.int64)
