"""Hosts as one crawl knows them: pages, failures, relevance, and their registrable domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls
from crawlguide.store.columns import Names, grown
from crawlguide.store.tables.keyspace import key_of
from crawlguide.store.tables.rows import HOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I32, I64, Text
    from crawlguide.store.tables.keyspace import Keyspace
    from crawlguide.store.tables.politeness import PolitenessQueues


class CrawlHosts:
    """One row for each host of which the crawl knows a URL; several may share a politeness queue."""

    def __init__(self, politeness: PolitenessQueues, keyspace: Keyspace) -> None:
        self._politeness = politeness
        self._keyspace = keyspace
        self.rows = np.zeros(0, HOST)
        self.queue_row: I32 = np.zeros(0, np.int32)  # rows["pace"] as a column of its own, for kernels
        self.scratch: I32 = np.zeros(0, np.int32)  # zeros, for joins
        self.names: Text = np.zeros(0, object)
        self.domain_pages: I64 = np.zeros(0, np.int64)  # per registrable domain: fetched well or leased
        self.done: I64 = np.zeros(0, np.int64)  # per host: rows that are done
        self.pace_prefix = ""  # where it is not empty, queues are the crawl's own, and their names begin so
        self.forgotten_domains: set[int] = set()  # since the last commit
        self._hosts = Names()
        self._domains = Names()
        self._of_domain: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def end(self) -> int:
        """Every host's row has a smaller number."""
        return self._hosts.end

    def numbers(self) -> list[int]:
        """The rows that are in use."""
        return self._hosts.numbers()

    def find(self, name: str) -> int | None:
        return self._hosts.find(name)

    def of_domain(self, domain_hash: str) -> list[int]:
        """The hosts of the domain that a crawler names by its hash."""
        number = self._domains.find(domain_hash)
        return [] if number is None else self._of_domain[number]

    def rows_of(self, names: Sequence[str]) -> I32:
        """The row of each host, new ones added."""
        numbers = self._hosts.number_of
        return np.array([numbers[name] if name in numbers else self._add(name) for name in names], np.int32)

    def load(self, rows: np.ndarray[Any, Any], domain_pages: I64) -> None:
        """Take over hosts as they were stored; their names are in the keyspace."""
        self._fit(len(rows) - 1)
        self.rows[: len(rows)], self.queue_row[: len(rows)] = rows, rows["pace"]
        self.domain_pages = grown(self.domain_pages, len(domain_pages), 0)
        self.domain_pages[: len(domain_pages)] = domain_pages
        domains = rows["domain"].tolist()
        for key, value in self._keyspace.items():
            row, name = int.from_bytes(key, "big"), value.decode()
            self._hosts.put(name, row)
            self.names[row] = name
            self._join(name, row, domains[row])
        self._hosts.close_gaps()
        self._domains.close_gaps()

    def forget(self, row: int) -> None:
        """No URL of it is known any more. Its politeness queue stays."""
        name, domain = self.names[row], int(self.rows["domain"][row])
        self._politeness.leave(int(self.queue_row[row]))
        self._hosts.forget(name)
        self._keyspace.delete(key_of(row))
        self._of_domain[domain].remove(row)
        if not self._of_domain[domain]:
            del self._of_domain[domain]
            self._domains.forget(_domain_hash(name))
            self.domain_pages[domain] = 0
            self.forgotten_domains.add(domain)
        self.names[row], self.rows[row] = "", np.zeros((), HOST)
        self.done[row] = 0

    def move(self, row: int, queue: int) -> None:
        """The host belongs to another politeness queue from now on."""
        self.rows["pace"][row] = self.queue_row[row] = queue

    def leave(self) -> None:
        """The crawl ends: its politeness queues are used by one crawl less."""
        self._politeness.leave_all(self.queue_row[self._hosts.numbers()])

    def _add(self, name: str) -> int:
        row = self._hosts.add(name)
        self._fit(row)
        self._keyspace.put(key_of(row), name.encode())
        self.names[row], self.rows[row] = name, np.zeros((), HOST)
        self.rows["withheld"][row], self.rows["median_bytes"][row] = -np.inf, np.nan
        self.rows["pace"][row] = self.queue_row[row] = self._pace_row(name)
        self._politeness.rows["crawls"][self.queue_row[row]] += 1
        found = self._domains.find(_domain_hash(name))
        domain = self._domains.add(_domain_hash(name)) if found is None else found
        self.rows["domain"][row] = domain
        self._join(name, row, domain)
        return row

    def _pace_row(self, name: str) -> int:
        if not self.pace_prefix:
            return self._politeness.row(name)
        return self._politeness.row_named(self.pace_prefix + name.replace("%", "%25").replace(" ", "%20"))

    def _fit(self, row: int) -> None:
        self.rows, self.names = grown(self.rows, row + 1), grown(self.names, row + 1, "")
        self.queue_row, self.scratch = grown(self.queue_row, row + 1, 0), grown(self.scratch, row + 1, 0)
        self.done = grown(self.done, row + 1, 0)

    def _join(self, name: str, row: int, domain: int) -> None:
        """A host is one of its registrable domain's."""
        self._domains.put(_domain_hash(name), domain)
        self._of_domain.setdefault(domain, []).append(row)
        self.domain_pages = grown(self.domain_pages, domain + 1, 0)


def _domain_hash(name: str) -> str:
    return urls.domain_hash(urls.domain_of(name))
