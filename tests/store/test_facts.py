"""The facts of a batch stand where their names say."""

from __future__ import annotations

import numpy as np

from crawlguide.core.tables import Fact
from crawlguide.core.types import BATCH_FACTS, HOST_FACTS, Batch, Hosts
from crawlguide.store import views
from crawlguide.store.dirty import Untracked
from crawlguide.store.frontier import Frontier
from crawlguide.store.moves.rank import Quota
from crawlguide.store.tables.keyspace import MemoryKeyspace, in_memory
from crawlguide.store.tables.politeness import PolitenessQueues
from crawlguide.store.tables.rows import HOST, POLITENESS

from .builders import ids, links

A = "https://a.org/"
# What a fact is called in the store, where it is not called the same.
FROM_ROW = {
    "manual_priority": "given",
    "estimated_ms": "median_ms",
    "estimated_bytes": "median_bytes",
    "value": "priority",
    "score": "priority",
}
FROM_HOST = {"crawl_delay": "delay", "last_fetch": "last"}


def numbered(records: np.ndarray[tuple[int], np.dtype[np.void]], first: int, spared: tuple[str, ...]) -> None:
    """Give every field of the first record a number of its own."""
    for number, name in enumerate(records.dtype.names or (), first):
        if name not in spared:
            records[name][0] = number


def known() -> tuple[Frontier, Batch]:
    frontier = Frontier(
        PolitenessQueues(MemoryKeyspace(), MemoryKeyspace()), Quota(10, 10, 10), in_memory(), Untracked()
    )
    found = links(A)
    frontier.claim(ids(A), found.url, found.host, 0.0)
    numbered(frontier.table, 1, ("host",))
    numbered(frontier.hosts.rows, 40, ("pace", "domain"))
    numbered(frontier.politeness.rows, 60, ())
    frontier.politeness.opens[0], frontier.hosts.domain_pages[0] = 90, 91
    return frontier, views.batch(frontier, np.array([0]))


def facts(table: type[Batch] | type[Hosts]) -> dict[str, Fact]:
    return {name: fact for name, fact in vars(table).items() if isinstance(fact, Fact)}


def test_every_fact_has_a_place_of_its_own() -> None:
    assert sorted(fact.place for fact in facts(Batch).values()) == list(range(BATCH_FACTS))
    assert sorted(fact.place for fact in facts(Hosts).values()) == list(range(HOST_FACTS))


def test_the_facts_of_a_url_are_those_of_its_row() -> None:
    frontier, batch = known()
    for name in facts(Batch):
        stored = FROM_ROW.get(name, name)
        tables = (frontier.table, frontier.hosts.rows, frontier.politeness.rows)
        source = next(table for table in tables if stored in (table.dtype.names or ()))
        assert getattr(batch, name).tolist() == [float(source[stored][0])], name


def test_the_facts_of_a_host_are_those_of_its_rows() -> None:
    frontier, batch = known()
    for name in facts(Hosts).keys() - {"next_fetch", "domain_pages"}:
        stored = FROM_HOST.get(name, name)
        source = frontier.hosts.rows if stored in (HOST.names or ()) else frontier.politeness.rows
        assert stored in (*(HOST.names or ()), *(POLITENESS.names or ()))
        assert getattr(batch.hosts, name).tolist() == [float(source[stored][0])], name
    assert (batch.hosts.next_fetch.tolist(), batch.hosts.domain_pages.tolist()) == ([90.0], [91.0])
