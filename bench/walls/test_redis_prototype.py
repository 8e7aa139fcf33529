"""The wall: does the store's protocol hold on Redis Cluster? The contract's own tests are asked, on a real server."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bench.walls.redis_functions import source
from bench.walls.redis_prototype import TOUCHED, RedisPrototype
from bench.walls.redis_server import PROGRAM, serving
from redis.asyncio import Redis
from tests.store import test_contract as contract
from tests.store.builders import CRAWL, ask, fetches, ids, links, listed, terms

from crawlguide.core import urls
from crawlguide.core.types import GRANTED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

PROVED = (
    "test_discovering_twice_is_once",
    "test_a_link_with_a_reason_is_dropped_on_sight_and_stays_known",
    "test_what_was_out_of_scope_comes_in_once_it_no_longer_is",
    "test_what_was_dropped_for_another_reason_stays_dropped",
    "test_links_deeper_than_the_seed_allows_are_dropped",
    "test_a_batch_joins_urls_with_what_is_known_of_their_hosts",
    "test_every_page_that_links_to_a_url_counts_once",
    "test_a_page_fetched_again_adds_evidence_only_for_new_links",
    "test_a_corrected_relevance_moves_the_evidence_of_all_children",
    "test_depth_is_the_shortest_way_from_a_seed",
    "test_gather_gives_the_best_first_across_hosts",
    "test_equals_come_in_the_order_of_their_discovery",
    "test_gather_gives_no_more_than_asked_and_no_more_than_so_many_of_a_host",
    "test_rank_moves_a_waiting_url_up_and_down",
    "test_rank_leaves_urls_alone_that_do_not_wait",
    "test_a_focus_is_gathered_whatever_its_rank",
    "test_a_lease_goes_to_one_crawler",
    "test_a_lease_expires_and_not_before",
    "test_a_crawler_gives_back_all_it_holds",
    "test_one_lease_is_given_back_unjudged",
    "test_nobody_gives_back_what_another_holds",
    "test_what_nobody_holds_cannot_be_given_back",
    "test_a_report_ends_the_lease_even_if_it_comes_late",
    "test_a_good_fetch_is_done",
    "test_a_fetch_that_was_never_assigned_is_recorded",
    "test_the_same_fetch_told_twice_counts_once",
    "test_late_feedback_on_a_page_nobody_fetched_is_skipped",
    "test_slots_of_a_host_are_a_delay_apart_for_all_crawlers_together",
    "test_a_slot_beyond_the_horizon_is_deferred_and_takes_nothing",
    "test_a_host_that_must_wait_is_not_gathered_until_it_may",
    "test_a_slower_crawl_keeps_its_own_delay_after_a_faster_one",
    "test_pace_is_shared_by_all_tenants",
    "test_retry_after_is_obeyed",
    "test_too_many_requests_double_the_back_off_and_a_success_halves_it",
    "test_strictly_the_next_is_given_only_after_the_former_was_told",
    "test_strictly_the_delay_counts_from_when_the_fetch_was_told",
    "test_an_operator_sets_a_queues_delay_blocks_it_and_limits_it",
    "test_a_host_withheld_from_a_crawl_stays_out_until_then",
    "test_a_withheld_host_stays_out_when_it_had_nothing_to_give_yet",
    "test_crawls_and_tenants_never_see_each_other",
    "test_metadata_is_handed_back_unchanged",
    "test_a_retry_of_the_same_request_finds_its_own_leases",
    "test_dropped_urls_are_remembered_and_can_be_revived",
    "test_wait_says_when_something_may_be_given_again",
    "test_every_url_is_in_exactly_one_state",
    "test_a_host_withheld_until_shortly_is_gathered_within_the_horizon",
)
WITH_FAILURES = (
    ("test_a_passing_failure_is_tried_again_later_until_it_was_tried_enough", {"status": 429}),
    ("test_a_passing_failure_is_tried_again_later_until_it_was_tried_enough", {"status": 500}),
    ("test_a_passing_failure_is_tried_again_later_until_it_was_tried_enough", {"status": 0, "error": "timeout"}),
    ("test_a_lasting_failure_is_done", {"status": 404}),
    ("test_a_lasting_failure_is_done", {"status": 403}),
    ("test_a_lasting_failure_is_done", {"status": 0, "error": "tls"}),
)
# Rows of more than TOUCHED partitions in one exact order: possible only while there are no more partitions than that.
EXACT_ORDER = "test_the_order_holds_against_a_plain_sort_for_thousands_of_urls"
MANY = 256


def test_the_functions_fit_the_records_of_the_store() -> None:
    """Draw where no Redis is: records change, and this is the only one to notice."""
    assert not re.search(r"@[A-Z]+@", source())


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    if PROGRAM is None:
        pytest.skip("redis-server is missing: apt-get install redis-server (7.0 or newer)")
    with serving() as number:
        yield number


async def opened(port: int, partitions: int) -> RedisPrototype:
    store = RedisPrototype(Redis(port=port), partitions)
    await store.redis.flushall()
    await store.load()
    await store.crawl_put(CRAWL, b"{}", 0.0)
    return store


@pytest.fixture(params=[TOUCHED, MANY])
async def store(port: int, request: pytest.FixtureRequest) -> AsyncIterator[RedisPrototype]:
    found = await opened(port, request.param)
    yield found
    await found.close()


@pytest.fixture
async def wide(port: int) -> AsyncIterator[RedisPrototype]:
    found = await opened(port, MANY)
    yield found
    await found.close()


@pytest.mark.parametrize("name", PROVED)
async def test_the_contract_holds(store: RedisPrototype, name: str) -> None:
    await getattr(contract, name)(store)


@pytest.mark.parametrize(("name", "failure"), WITH_FAILURES)
async def test_the_contract_holds_for_failures(store: RedisPrototype, name: str, failure: dict[str, Any]) -> None:
    await getattr(contract, name)(store, failure)


async def test_the_exact_order_of_all_hosts_needs_every_partition(port: int) -> None:
    """With as many partitions as an ask touches the order is exact; with more it cannot be."""
    narrow = await opened(port, TOUCHED)
    await getattr(contract, EXACT_ORDER)(narrow)
    await narrow.close()
    wide = await opened(port, MANY)
    with pytest.raises(AssertionError):
        await getattr(contract, EXACT_ORDER)(wide)
    await wide.close()


async def test_within_the_partitions_it_touches_an_ask_gets_the_exact_best(wide: RedisPrototype) -> None:
    found = [f"https://h{n % 90}.org/{n}" for n in range(900)]
    priority = np.random.default_rng(3).random(900)
    await wide.discover(CRAWL, links(*found, manual_priority=priority), None, 0.0)
    await wide.stats(CRAWL)  # hints of all partitions
    wide.calls.clear()
    batch = await wide.gather(CRAWL, ask(), 20, 5.0, 20)
    tags = {tag for _, tag in wide.calls}
    there = [n for n, url in enumerate(found) if wide.partition(url.split("/")[2]) in tags]
    best = sorted(there, key=lambda n: -priority[n])[:20]
    assert listed(batch) == [found[n] for n in best]
    assert batch.url.tolist()[0] == found[int(np.argmax(priority))]  # the best of all is never missed


async def test_an_ask_is_two_functions_on_at_most_four_partitions(wide: RedisPrototype) -> None:
    found = [f"https://h{n}.org/" for n in range(500)]
    await wide.discover(CRAWL, links(*found), None, 0.0)
    await wide.stats(CRAWL)  # hints of all partitions
    await wide.redis.config_resetstat()
    wide.calls.clear()
    batch = await wide.gather(CRAWL, ask(), 100, 5.0, 10)
    grants = await wide.reserve(CRAWL, batch, terms())
    stats = await wide.redis.info("commandstats")
    assert len(batch) >= TOUCHED
    assert grants.outcome.tolist() == [GRANTED] * len(batch)
    assert {name for name, _ in wide.calls} == {"gather", "reserve"}
    assert len({tag for _, tag in wide.calls}) == TOUCHED
    assert stats["cmdstat_fcall"]["calls"] == 2 * TOUCHED


async def test_many_crawlers_at_once_never_share_a_url_nor_a_slot(store: RedisPrototype) -> None:
    found = [f"https://h{n % 8}.org/{n}" for n in range(200)]
    await store.discover(CRAWL, links(*found), None, 0.0)

    async def one(number: int) -> list[tuple[str, float]]:
        name = f"c-{number}"
        batch = await store.gather(CRAWL, ask(crawler_id=name), 40, 60.0, 40)
        grants = await store.reserve(CRAWL, batch, terms(crawler_id=name, delay_s=1.0, horizon_s=60.0))
        mine = np.flatnonzero(grants.outcome == GRANTED)
        return [(str(batch.url.tolist()[n]), float(grants.start[n])) for n in mine]

    given = [grant for grants in await asyncio.gather(*(one(n) for n in range(10))) for grant in grants]
    assert len(given) > 40
    assert len({url for url, _ in given}) == len(given)
    assert len({(url.split("/")[2], start) for url, start in given}) == len(given)


async def test_evidence_told_twice_counts_once(store: RedisPrototype) -> None:
    """What crosses partitions may be lost on its way; then it is sent again, so it must set and not add."""
    told = fetches(contract.A, relevance=1.0)
    for _ in range(2):
        await store.record(CRAWL, told, 1.0, 3)
        await store.discover(CRAWL, links(contract.X, parent=0), told, 1.0)
    batch = await store.look(CRAWL, ids(contract.X))
    assert (batch.parents.tolist(), batch.parent_sum.tolist()) == ([1], [1.0])


async def test_after_a_redirect_to_another_domain_both_are_done_and_as_deep(store: RedisPrototype) -> None:
    told = fetches(contract.A, target=contract.X, relevance=1.0)
    await store.discover(CRAWL, links(contract.A), None, 0.0)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(contract.Y, parent=0), told, 1.0)
    for url in (contract.A, contract.X):
        found = (await store.find(CRAWL, ids(url)))[0]
        assert found is not None
        assert (found.state, found.status) == ("done", 200)
    assert (await store.look(CRAWL, ids(contract.X, contract.Y))).depth.tolist() == [0, 1]
    corrected = await store.record(CRAWL, fetches(contract.X, status=-1, reward=0.25), 2.0, 3)
    assert corrected.changed.tolist() == ids(contract.Y).tolist()


async def test_dropped_urls_that_lie_too_deep_stay_dropped(store: RedisPrototype) -> None:
    told = fetches(contract.A)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(contract.B, contract.X, parent=0).attach(deepest=0), told, 1.0)
    await store.revive(CRAWL, ids(contract.B), 0)
    assert (await store.stats(CRAWL))["dropped"] == {"scope": 2}
    await store.revive(CRAWL, ids(contract.B), 1)
    assert (await store.stats(CRAWL))["dropped"] == {"scope": 1}


async def test_an_id_alone_leads_to_its_partition(wide: RedisPrototype) -> None:
    found = ids(contract.A, contract.B, contract.X)
    await wide.discover(CRAWL, links(contract.A, contract.B, contract.X), None, 0.0)
    wide.calls.clear()
    await wide.look(CRAWL, found)
    await wide.rank(CRAWL, found, np.ones(3))
    await wide.drop(CRAWL, found, "test")
    homes = {urls.partition(host) for host in ("a.org", "x.org")}
    assert sorted(wide.calls) == sorted((name, home) for name in ("look", "rank", "alter") for home in homes)


async def test_a_host_and_its_bucket_share_a_hash_tag(wide: RedisPrototype) -> None:
    await wide.discover(CRAWL, links(contract.A, contract.X), None, 0.0)
    await contract.leased(wide, contract.A, contract.X)  # type: ignore[arg-type]
    keys = [str(key, "utf-8") for key in await wide.redis.keys() if isinstance(key, bytes)]
    keys = [key for key in keys if key.startswith("{")]
    tags = {f"{{p{wide.partition(host)}}}" for host in ("a.org", "x.org")}
    assert {key[: key.index("}") + 1] for key in keys} == tags
    assert all(f"{tag}pace" in keys for tag in tags)
