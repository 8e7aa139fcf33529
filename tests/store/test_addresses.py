"""Hosts at one address share one pace, where that is wanted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import AsyncGuide, Guide
from crawlguide.core.config import Config, StoreOptions
from crawlguide.store.tables.keyspace import MemoryKeyspace
from crawlguide.store.tables.sharing import Addresses, queue_at
from crawlguide.testing import ManualClock
from tests.support import NOW, ask, fetched, store_of, tell

if TYPE_CHECKING:
    from pathlib import Path

BY_ADDRESS = Config(store=StoreOptions(politeness_queue="ip"))
GROUPED = Config(store=StoreOptions(politeness_queue="ip", politeness_groups=("shops = a.example b.example",)))
A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"
HERE, THERE = "192.0.2.1", "192.0.2.2"


def opened(data: Path | str = ":memory:", at: float = NOW, config: Config = BY_ADDRESS, delay_s: float = 2.0) -> Guide:
    guide = Guide.open(data, clock=ManualClock(at), config=config)
    guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": delay_s, "traps": False}})
    return guide


def located(guide: Guide, **addresses: str) -> None:
    for name, address in addresses.items():
        guide._run(store_of(guide).located(f"{name}.example", address))


def waits(guide: Guide, **more: Any) -> dict[str, int]:
    return {one["url"]: one["not_before_ms"] for one in ask(guide, **more)["assigned_urls"]}


def leases(guide: Guide, queue: str) -> int:
    pace: Any = store_of(guide).politeness  # type: ignore[attr-defined]
    return int(pace.rows["leases"][pace.row(queue)])


@pytest.mark.parametrize("same", ["192.0.2.1", "::ffff:192.0.2.1", "[::ffff:c000:201]"])
def test_an_address_is_one_however_it_is_written(same: str) -> None:
    assert queue_at(same) == "ip 192.0.2.1"


@pytest.mark.parametrize("nothing", ["", "a.example", "192.0.2", "fe80::1%"])
def test_what_is_no_address_is_none(nothing: str) -> None:
    assert queue_at(nothing) is None


def test_hosts_are_asked_as_themselves_until_they_are_found() -> None:
    with opened() as guide:
        guide.seed("default", [A, B])
        assert waits(guide) == {A: 0, B: 0}


def test_hosts_found_at_one_address_are_asked_one_after_the_other() -> None:
    with opened() as guide:
        guide.seed("default", [A, B, C])
        located(guide, a=HERE, b=HERE, c=THERE)
        found = waits(guide)
        assert sorted((found[A], found[B])) == [0, 2_000]
        assert found[C] == 0


def test_by_default_addresses_do_not_matter() -> None:
    with opened(config=Config()) as guide:
        guide.seed("default", [A, B])
        located(guide, a=HERE, b=HERE)
        assert waits(guide) == {A: 0, B: 0}


def test_a_crawler_tells_the_address_of_a_host() -> None:
    with opened() as guide:
        tell(guide, fetched(A, A + "1", ip=HERE), fetched(B, B + "1", ip=HERE), fetched(C, C + "1", ip="nowhere"))
        found = waits(guide)
        assert sorted((found[A + "1"], found[B + "1"])) == [0, 2_000]
        assert found[C + "1"] == 0


def test_the_address_of_a_page_that_redirects_elsewhere_is_not_its_hosts() -> None:
    with opened() as guide:
        tell(guide, fetched(A, A + "1", ip=HERE, redirected_to=B), fetched(C, C + "1", ip=HERE))
        guide.seed("default", [A + "1"])
        assert set(waits(guide).values()) == {0}


def test_what_was_owed_to_a_host_is_owed_by_the_whole_address() -> None:
    with opened() as guide:
        guide.seed("default", [A, B])
        located(guide, b=HERE)
        assert waits(guide, max_urls=1) == {A: 0}  # as itself
        located(guide, a=HERE)
        assert waits(guide) == {B: 2_000}


def test_a_block_and_the_longest_delay_hold_for_all_at_an_address() -> None:
    with opened(delay_s=1.0) as guide:
        guide.seed("default", [A, B])
        for queue, delay_s in (("a.example", 4.0), ("b.example", 3.0)):
            guide._run(store_of(guide).control(queue, delay_s=delay_s, block_until=NOW + 1))
        located(guide, a=HERE, b=HERE)
        assert sorted(waits(guide).values()) == [1_000, 5_000]


def test_leases_go_along_and_come_back_to_where_they_are() -> None:
    with opened(delay_s=0.0) as guide:
        guide.seed("default", [A, B])
        assert len(waits(guide)) == 2
        located(guide, a=HERE, b=HERE)
        assert leases(guide, "a.example") == 2
        tell(guide, fetched(A), fetched(B))
        assert leases(guide, "a.example") == 0


def test_a_host_that_moves_shares_with_others_from_then_on() -> None:
    with opened() as guide:
        guide.seed("default", [A, B, C])
        located(guide, a=HERE, b=HERE, c=THERE)
        located(guide, b=THERE)
        found = waits(guide)
        assert found[A] == 0
        assert sorted((found[B], found[C])) == [0, 2_000]


def test_a_group_goes_before_an_address() -> None:
    with opened(config=GROUPED) as guide:
        guide.seed("default", [A, B, C])
        located(guide, a=HERE, b=THERE, c=HERE)
        found = waits(guide)
        assert sorted((found[A], found[B])) == [0, 2_000]
        assert found[C] == 0


def test_a_host_that_is_an_address_needs_not_be_found() -> None:
    with opened() as guide:
        guide.seed("default", ["http://192.0.2.1/", "http://192.0.2.1:8080/", A])
        located(guide, a=HERE)
        assert sorted(waits(guide).values()) == [0, 2_000, 4_000]


def test_other_crawls_and_a_restart_know_of_it(tmp_path: Path) -> None:
    with opened(tmp_path) as guide:
        guide.seed("default", [A, B])
        located(guide, a=HERE, b=HERE)
        assert sorted(waits(guide).values()) == [0, 2_000]
    with opened(tmp_path, NOW + 1) as guide:
        guide.define("other", {"policy": {"robots": "ignore", "default_delay_s": 2}})
        guide.seed("other", [B + "2"])
        assert waits(guide, crawl_id="other") == {B + "2": 3_000}
        assert leases(guide, "b.example") == 3
        tell(guide, fetched(A), fetched(B))
        assert leases(guide, "a.example") == 1


def test_what_was_found_is_forgotten_with_the_queue_of_its_address() -> None:
    keyspace = MemoryKeyspace()
    known = Addresses(keyspace, used=True)
    assert known.locate("a.example", HERE)
    assert not known.locate("a.example", HERE)
    known.forget(known.queue_of("a.example"))
    assert known.queue_of("a.example") == "a.example"
    assert not list(keyspace.items())


async def test_many_who_ask_at_once_never_share_a_slot(tmp_path: Path) -> None:
    """Forty hosts at one address, eight crawlers: all slots lie a delay apart."""
    hosts = [f"h{number}.example" for number in range(40)]
    guide = AsyncGuide.open(tmp_path, clock=ManualClock(NOW), config=BY_ADDRESS)
    await guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0.1, "traps": False}})
    await guide.seed("default", [f"https://{host}/" for host in hosts])
    for host in hosts:
        await guide._guide.store.located(host, HERE)
    found: list[int] = []

    async def crawler(number: int) -> None:
        for _ in range(5):
            message = {"mcp_version": "2025-11", "crawler_id": f"c-{number}", "budget": {"max_urls": 2}}
            answer: Any = await guide.ask(message)
            found.extend(one["not_before_ms"] for one in answer["assigned_urls"])

    await asyncio.gather(*(crawler(number) for number in range(8)))
    await guide.close()
    assert sorted(found) == [100 * number for number in range(40)]
