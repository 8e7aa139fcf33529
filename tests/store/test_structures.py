"""The compiled structures against plain Python, over long random histories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crawlguide.core.columns import texts
from crawlguide.store.embedded.journal import each_once
from crawlguide.store.queues.heaps import Heaps
from crawlguide.store.queues.waiting import Queues
from crawlguide.store.tables import keyspace as keyspaces
from crawlguide.store.tables.index import Index
from crawlguide.store.tables.keyspace import MemoryExpiring, MemoryKeyspace, UrlTexts, key_of
from crawlguide.store.tables.leases import MOST_FORGOTTEN, Lease, Leases
from crawlguide.store.tables.politeness import DELAY_KEPT_S, IDLE_S, PolitenessQueues
from crawlguide.store.tables.rows import ROW
from crawlguide.store.tables.sharing import MOST_AT_ADDRESS, Sharing

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_heaps_give_what_a_sort_gives(seed: int) -> None:
    chance = np.random.default_rng(seed)
    heaps = Heaps()
    plain: dict[int, tuple[int, float]] = {}
    heaps.fit(300, 7)
    for _ in range(400):
        items = chance.permutation(300)[: chance.integers(1, 30)].astype(np.int32)
        keys = chance.integers(0, 9, len(items)).astype(np.float64)
        action = chance.integers(0, 3)
        if action == 0:
            groups = chance.integers(0, 7, len(items)).astype(np.int32)
            heaps.push(items, groups, keys, items.astype(np.int64))
            for item, group, key in zip(items.tolist(), groups.tolist(), keys.tolist(), strict=True):
                plain.setdefault(item, (group, key))
        elif action == 1:
            heaps.remove(items)
            for item in items.tolist():
                plain.pop(item, None)
        else:
            heaps.rekey(items, keys)
            for item, key in zip(items.tolist(), keys.tolist(), strict=True):
                if item in plain:
                    plain[item] = (plain[item][0], key)
        check(heaps, plain)


def check(heaps: Heaps, plain: dict[int, tuple[int, float]]) -> None:
    for group in range(7):
        mine = sorted((-key, item) for item, (home, key) in plain.items() if home == group)
        assert heaps.size(group) == len(mine)
        assert heaps.first(group) == ((-mine[0][0], mine[0][1]) if mine else None)
        wanted = {item for key, item in mine if -key >= 5.0}
        assert set(heaps.not_below(group, 5.0, 300).tolist()) == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_an_index_finds_what_a_dictionary_finds(seed: int) -> None:
    chance = np.random.default_rng(seed)
    index = Index()
    plain: dict[int, int] = {}
    for _ in range(300):
        ids = chance.integers(0, 2_000, chance.integers(1, 60)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        if chance.random() < 0.7:
            rows, fresh = index.claim(ids)
            for key, row, new in zip(ids.tolist(), rows.tolist(), fresh.tolist(), strict=True):
                assert (key not in plain) == bool(new)
                assert plain.setdefault(key, row) == row
        else:
            known = np.array([key for key in dict.fromkeys(ids.tolist()) if key in plain], np.uint64)
            index.forget(index.find(known))
            for key in known.tolist():
                del plain[key]
        assert index.find(ids).tolist() == [plain.get(key, -1) for key in ids.tolist()]
        assert len(set(plain.values())) == len(plain)


def test_rows_of_forgotten_urls_are_used_again() -> None:
    index = Index()
    first, _ = index.claim(np.arange(100, dtype=np.uint64) << np.uint64(40))
    index.forget(first)
    again, _ = index.claim(np.arange(100, 200, dtype=np.uint64) << np.uint64(40))
    assert sorted(again.tolist()) == sorted(first.tolist())
    assert index.rows == 100


def waiting_rows(rows: int, hosts: int) -> tuple[Queues, np.ndarray[Any, Any]]:
    """Queues over a table of so many rows, numbered in the order of their discovery."""
    table = np.zeros(rows, ROW)
    table["sequence"], table["due"] = np.arange(rows), np.nan
    queues = Queues(table)
    queues.fit(rows, hosts)
    return queues, table


@pytest.mark.parametrize("seed", SEEDS)
def test_the_worst_and_the_later_come_in_order(seed: int) -> None:
    chance = np.random.default_rng(seed)
    queues, table = waiting_rows(200, 3)
    for step in range(300):
        rows = chance.permutation(200)[: chance.integers(1, 20)].astype(np.int32)
        action = chance.integers(0, 4)
        if action == 0:
            fresh = rows[np.isnan(table["due"][rows])]
            priority = table["priority"][fresh].copy()
            queues.push(fresh, (fresh % 3).astype(np.int32), priority, fresh.astype(np.int64))
        elif action == 1:
            queues.remove(rows)
        elif action == 2:
            queues.rank(rows, chance.integers(0, 5, len(rows)).astype(np.float64))
        else:
            queues.remove(rows)
            queues.postpone(rows, chance.integers(step, step + 50, len(rows)).astype(np.float64))
        waits = [row for row in range(200) if queues._place[row] >= 0 and np.isnan(table["due"][row])]
        later = np.flatnonzero(~np.isnan(table["due"]))
        assert queues.worst.first() == min(waits, key=lambda row: (table["priority"][row], -row), default=None)
        assert queues.next_due() == (table["due"][later].min() if len(later) else None)
        due = later[table["due"][later] <= step]
        assert queues.take_due(step).tolist() == due.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_queues_give_the_best_of_open_hosts(seed: int) -> None:
    chance = np.random.default_rng(seed)
    hosts, rows = 25, 600
    queues, table = waiting_rows(rows, hosts)
    opens, queue_row = chance.choice([0.0, 50.0], hosts), np.arange(hosts, dtype=np.int32)
    home, priority = chance.integers(0, hosts, rows).astype(np.int32), chance.random(rows)
    everything = np.arange(rows, dtype=np.int32)
    table["priority"] = priority
    queues.push(everything, home, priority, everything.astype(np.int64))
    waiting = set(range(rows))
    for at in (0.0, 10.0, 49.0, 50.0, 60.0):
        gone = chance.permutation(rows)[:40].astype(np.int32)
        queues.remove(gone)
        waiting -= set(gone.tolist())
        moved = chance.permutation(rows)[:60].astype(np.int32)
        priority[moved] = chance.random(60)
        queues.rank(moved, priority[moved])
        per_host = int(chance.integers(1, 40))
        expected: list[int] = []
        for row in sorted(waiting, key=lambda row: (-priority[row], row)):
            mine = [other for other in expected if home[other] == home[row]]
            if opens[home[row]] <= at and len(mine) < per_host:
                expected.append(row)
        assert queues.waiting.best(50, per_host, at, opens, queue_row).tolist() == expected[:50]


def test_the_lowest_ranked_row_of_a_host_is_found() -> None:
    queues, _ = waiting_rows(9, 1)
    rows = np.arange(9, dtype=np.int32)
    queues.push(rows, np.zeros(9, np.int32), np.array([5, 3, 8, 1, 9, 1, 7, 4, 6.0]), rows.astype(np.int64))
    assert queues.waiting.worst(0) == 5


def test_an_entry_ends_when_its_time_is_over_and_a_newer_one_stays() -> None:
    kept = MemoryExpiring(100)
    kept.put("a", b"1", 10.0)
    kept.put("b", b"2", 5.0)
    kept.put("a", b"3", 20.0)
    kept.expire(10.0)
    assert (kept.get("a", 10.0), kept.get("b", 4.0), len(kept)) == (b"3", None, 1)


def test_a_lease_that_holds_nothing_any_more_is_forgotten_whenever_it_was_to_end() -> None:
    keyspace = MemoryKeyspace()
    leases = Leases(keyspace)
    for row in range(8):
        leases.add(Lease("c", None, 10.0 * (8 - row), {row: 0.0}))
    leases.end([7, 6, 4])
    assert (leases.next_end(), len(list(keyspace.items()))) == (30.0, 5)


def test_leases_that_are_reported_at_once_leave_nothing_behind() -> None:
    keyspace = MemoryKeyspace()
    leases = Leases(keyspace)
    for number in range(10_000):
        leases.add(Lease(f"c-{number % 7}", None, 1e9 - number, {number: 0.0, number + 1: 0.0}))
        leases.end([number, number + 1])
    assert not list(keyspace.items())
    assert (leases.next_end(), len(leases)) == (None, 0)
    assert not any([leases._numbers, leases._rows, leases._by_crawler, leases._held])
    assert len(leases._ends) <= MOST_FORGOTTEN


def test_a_long_lease_goes_on_while_others_come_and_go() -> None:
    leases = Leases(MemoryKeyspace())
    leases.add(Lease("slow", None, 500.0, {1: 0.0, 2: 0.0}))
    leases.end([1])
    for row in range(10, 1_000):
        leases.add(Lease("fast", None, 1_000.0, {row: 0.0}))
        leases.end([row])
    assert (leases.expired(499.0), leases.expired(500.0), leases.count("slow")) == ([], [2], 0)


def test_stored_leases_that_hold_nothing_go_when_they_are_read() -> None:
    keyspace = MemoryKeyspace()
    before = Leases(keyspace)
    for row in range(4):
        before.add(Lease("c", None, 100.0, {row: 0.0}))
    after = Leases(keyspace)
    after.load(lambda row: row == 2)
    assert (list(after.by_row), len(list(keyspace.items())), after.release("c")) == ([2], 1, [2])


def test_of_too_many_entries_those_that_end_first_go() -> None:
    kept = MemoryExpiring(50)
    for number in range(500):
        kept.put(f"e{number}", b"x", 1e9 + number)
        kept.expire(1.0, 4)
    assert [number for number in range(500) if kept.get(f"e{number}", 1.0) is not None] == list(range(450, 500))


def test_the_next_end_of_a_lease_passes_over_what_was_told() -> None:
    leases = Leases(MemoryKeyspace())
    leases.add(Lease("c-1", None, 10.0, {1: 0.0, 2: 0.0}))
    leases.add(Lease("c-1", None, 20.0, {3: 0.0}))
    leases.end([1, 2])
    assert leases.next_end() == 20.0
    assert leases.expired(15.0) == []
    assert leases.expired(20.0) == [3]
    assert leases.next_end() is None


# politeness queues


def test_a_queue_whose_delay_robots_txt_set_is_forgotten_when_nobody_has_used_it_for_long() -> None:
    names = MemoryKeyspace()
    queues = PolitenessQueues(names, MemoryKeyspace())
    for day in range(60):
        queues.set_delay(queues.row(f"host{day}.org"), 10.0)
        queues.forget_idle(day * 86_400.0)
    assert len(queues) == len(list(names.items())) < DELAY_KEPT_S / 86_400.0 + 3


def test_a_delay_outlives_a_queue_without_one() -> None:
    queues = PolitenessQueues(MemoryKeyspace(), MemoryKeyspace())
    queues.set_delay(queues.row("slow.org"), 10.0)
    queues.block(queues.row("plain.org"), 0.0)
    queues.block(queues.row("slow.org"), 0.0)
    queues.forget_idle(IDLE_S + 1.0)
    assert queues.rows["delay"][queues.row("slow.org")] == 10.0
    assert len(queues) == 1


def test_an_address_with_very_many_hosts_forgets_the_first_of_them() -> None:
    addresses = MemoryKeyspace()
    queues = PolitenessQueues(MemoryKeyspace(), addresses, Sharing(by_address=True))
    for number in range(MOST_AT_ADDRESS + 50):
        queues.locate(f"host{number}.org", "192.0.2.1")
    assert len(list(addresses.items())) == MOST_AT_ADDRESS
    assert queues.row("host9999.org") == queues.row("host10049.org") != queues.row("host0.org")


def test_texts_that_were_found_or_read_lately_are_not_read_again() -> None:
    stored = MemoryKeyspace()
    stored.put(key_of(7), b"http://read.org/")
    urls = UrlTexts(stored)
    urls.put(np.array([5]), texts(["http://found.org/"]))
    assert urls.take(np.array([7, 5])).tolist() == ["http://read.org/", "http://found.org/"]
    for row in (5, 7):
        stored.delete(key_of(row))
    assert urls.take(np.array([5, 7, 5])).tolist() == ["http://found.org/", "http://read.org/", "http://found.org/"]


def test_what_is_no_row_or_a_row_without_a_url_has_an_empty_text() -> None:
    urls = UrlTexts(MemoryKeyspace())
    assert urls.take(np.array([-1, 3])).tolist() == ["", ""]
    urls.put(np.array([3]), texts(["http://a.org/"]))
    assert urls.take(np.array([-1, 3])).tolist() == ["", "http://a.org/"]


@pytest.mark.parametrize("seed", range(5))
def test_texts_are_what_a_dictionary_holds_however_few_are_kept_in_memory(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyspaces, "MOST_RECENT", 4)
    rng, urls, known = np.random.default_rng(seed), UrlTexts(MemoryKeyspace()), dict[int, str]()
    for step in range(300):
        rows = np.unique(rng.integers(0, 20, rng.integers(1, 8)))
        if step % 3 == 0:
            urls.forget(rows.tolist())
            known = {row: url for row, url in known.items() if row not in rows}
        elif step % 3 == 1:
            new = [f"http://a.org/{step}/{row}" for row in rows.tolist()]
            urls.put(rows, texts(new))
            known.update(zip(rows.tolist(), new, strict=True))
        wanted = rng.integers(-1, 20, 12)
        assert urls.take(wanted).tolist() == [known.get(row, "") for row in wanted.tolist()]
        assert urls.in_memory <= 4


@pytest.mark.parametrize("columns", [[[3]], [[2, 1, 2]], [[5], [5]], [[4, 0], [], [4, 9]]])
def test_changed_rows_come_in_order_each_once(columns: list[list[int]]) -> None:
    found = each_once([np.array(column, np.int64) for column in columns])
    assert found.tolist() == sorted({row for column in columns for row in column})
