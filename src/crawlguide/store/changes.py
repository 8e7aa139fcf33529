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

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None:
        """A number that stands in no row changed."""
        ...


class Unwatched:
    """For a store that forgets: nobody will ask."""

    def rows(self, rows: I64) -> None: ...

    def row(self, row: int) -> None: ...

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None: ...


@dataclass(eq=False)
class Changes:
    """Rows and hosts that changed; a row stands for its host as well. Whoever changed is listed in `dirty`."""

    dirty: dict[Changes, None]
    _rows: list[I64] = field(default_factory=list)
    _one: list[int] = field(default_factory=list)
    _hosts: list[I32] | list[I64] = field(default_factory=list)

    def rows(self, rows: I64) -> None:
        self._rows.append(rows)
        self.dirty[self] = None

    def row(self, row: int) -> None:
        self._one.append(row)
        self.dirty[self] = None

    def hosts(self, hosts: I32 | I64) -> None:
        self._hosts.append(hosts)  # type: ignore[arg-type]
        self.dirty[self] = None

    def counters(self) -> None:
        self.dirty[self] = None

    def take(self) -> tuple[I64, I64]:
        """The rows and hosts that changed, some perhaps more than once; from here on nothing has."""
        rows = np.concatenate([*self._rows, np.array(self._one, np.int64)])
        hosts = np.concatenate([NOTHING, *self._hosts]).astype(np.int64)
        self._rows, self._one, self._hosts = [], [], []
        return rows, hosts


NOTHING = np.zeros(0, np.int64)
