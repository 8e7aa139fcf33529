"""What every store promises, whatever it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide.core.errors import MalformedRequest, NotFound
from crawlguide.core.types import DEFERRED, GRANTED, TAKEN, Crawl

from .builders import CRAWL, ask, fetches, ids, links, listed, terms

if TYPE_CHECKING:
    from crawlguide.core.protocols import Store
    from crawlguide.core.types import Grants

A, B, C, D = (f"https://a.org/{name}" for name in "abcd")
X, Y, Z = "https://x.org/1", "https://y.org/1", "https://z.org/1"


async def gathered(
    store: Store, at: float = 0.0, limit: int = 100, per_host: int = 100, crawl: Crawl = CRAWL
) -> list[str]:
    return listed(await store.gather(crawl, ask(at, crawl), limit, 5.0, per_host))


async def leased(store: Store, *urls: str, at: float = 0.0, crawler_id: str = "c-1", **more: object) -> Grants:
    batch = await store.look(CRAWL, ids(*urls))
    return await store.reserve(CRAWL, batch, terms(at, crawler_id, **more))


async def state(store: Store, url: str) -> str | None:
    found = (await store.find(CRAWL, ids(url)))[0]
    return found.state if found else None


# discovery


async def test_discovering_twice_is_once(store: Store) -> None:
    first = await store.discover(CRAWL, links(A, B), None, 0.0)
    again = await store.discover(CRAWL, links(B, A, C, C), None, 1.0)
    assert (first.new, again.new) == (2, 1)
    assert sorted(await gathered(store)) == [A, B, C]


async def test_a_link_with_a_reason_is_dropped_on_sight_and_stays_known(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, reason=[None, "scope"]), None, 0.0)
    assert await gathered(store) == [A]
    assert (await store.find(CRAWL, ids(B)))[0].reason == "scope"  # type: ignore[union-attr]
    assert (await store.stats(CRAWL))["dropped"] == {"scope": 1}


async def test_what_was_out_of_scope_comes_in_once_it_no_longer_is(store: Store) -> None:
    await store.discover(CRAWL, links(A, reason="scope"), None, 0.0)
    await store.discover(CRAWL, links(A), None, 1.0)
    assert await gathered(store) == [A]
    assert (await store.stats(CRAWL))["dropped"] == {}


async def test_what_was_dropped_for_another_reason_stays_dropped(store: Store) -> None:
    await store.discover(CRAWL, links(A, reason="another"), None, 0.0)
    await store.discover(CRAWL, links(A), None, 1.0)
    assert await state(store, A) == "dropped"


async def test_links_deeper_than_the_seed_allows_are_dropped(store: Store) -> None:
    await store.discover(CRAWL, links(A, max_depth=1), None, 0.0)
    for page, child in ((A, B), (B, C)):
        told = fetches(page)
        await store.record(CRAWL, told, 1.0, 3)
        await store.discover(CRAWL, links(child, parent=0), told, 1.0)
    assert (await state(store, B), await state(store, C)) == ("done", "dropped")


async def test_a_batch_joins_urls_with_what_is_known_of_their_hosts(store: Store) -> None:
    await store.discover(CRAWL, links(A, X, B), None, 0.0)
    told = fetches(A, elapsed_ms=120.0, bytes=4_000.0, relevance=0.5)
    await store.record(CRAWL, told, 1.0, 3)
    batch = await store.look(CRAWL, ids(B, X))
    hosts = batch.hosts
    assert hosts.name[batch.host].tolist() == ["a.org", "x.org"]
    assert hosts.pages[batch.host].tolist() == [1, 0]
    assert hosts.median_ms[batch.host][0] == 120.0
    assert np.isnan(hosts.median_ms[batch.host][1])
    assert hosts.relevance_sum[batch.host].tolist() == [0.5, 0.0]


# evidence and links


async def test_every_page_that_links_to_a_url_counts_once(store: Store) -> None:
    for page, relevance in ((A, 1.0), (B, 0.0)):
        told = fetches(page, relevance=relevance)
        await store.record(CRAWL, told, 1.0, 3)
        await store.discover(CRAWL, links(X, X, parent=0), told, 1.0)
    batch = await store.look(CRAWL, ids(X))
    assert (batch.parents[0], batch.parent_sum[0], batch.parent_best[0]) == (2, 1.0, 1.0)


async def test_a_page_fetched_again_adds_evidence_only_for_new_links(store: Store) -> None:
    for at, found in ((1.0, (X,)), (2.0, (X, Y))):
        told = fetches(A, relevance=1.0)
        await store.record(CRAWL, told, at, 3)
        await store.discover(CRAWL, links(*found, parent=[0] * len(found)), told, at)
    batch = await store.look(CRAWL, ids(X, Y))
    assert batch.parents.tolist() == [1, 1]


async def test_a_corrected_relevance_moves_the_evidence_of_all_children(store: Store) -> None:
    told = fetches(A, relevance=1.0)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(X, Y, parent=[0, 0]), told, 1.0)
    recorded = await store.record(CRAWL, fetches(A, status=-1, reward=0.25), 2.0, 3)
    assert sorted(recorded.changed.tolist()) == sorted(ids(X, Y).tolist())
    assert (await store.look(CRAWL, ids(X, Y))).parent_sum.tolist() == [0.25, 0.25]


async def test_the_link_table_knows_parents_children_anchors_and_positions(store: Store) -> None:
    told = fetches(A, B)
    await store.record(CRAWL, told, 1.0, 3)
    found = links(X, Y, X, parent=[0, 0, 1], anchor=["one", "two", "three"], position=[4, 7, 9])
    await store.discover(CRAWL, found, told, 1.0)
    children = await store.children(CRAWL, ids(A))
    assert (children.child.tolist(), children.anchor.tolist()) == (ids(X, Y).tolist(), ["one", "two"])
    parents = await store.parents(CRAWL, ids(X))
    assert sorted(parents.anchor.tolist()) == ["one", "three"]
    assert sorted(parents.position.tolist()) == [4, 9]


async def linked(store: Store, page: str, *found: str, at: float) -> None:
    told = fetches(page, relevance=1.0, fetch_time=f"2026-01-01T00:00:{at:02.0f}Z")
    await store.record(CRAWL, told, at, 3)
    await store.discover(CRAWL, links(*found, parent=[0] * len(found)), told, at)


@pytest.mark.timeout(20)
async def test_a_page_that_was_forgotten_and_came_back_is_one_parent(store: Store) -> None:
    """Its old place in the chain of X is reached again from its new one."""
    await linked(store, A, X, at=1)
    await linked(store, Z, X, at=2)
    await store.purge(CRAWL, None, "a.org")
    await linked(store, A, X, at=3)
    assert (await store.parents(CRAWL, ids(X))).parent.tolist() == ids(A, Z).tolist()


async def test_a_url_that_was_forgotten_and_came_back_has_its_parents_again(store: Store) -> None:
    for page, at in ((A, 1), (Z, 2)):
        await linked(store, page, X, at=at)
    await store.purge(CRAWL, None, "x.org")
    for page, at in ((A, 3), (Z, 4)):
        await linked(store, page, X, at=at)
    assert (await store.parents(CRAWL, ids(X))).parent.tolist() == ids(Z, A).tolist()
    assert (await store.look(CRAWL, ids(X))).parents.tolist() == [2]


async def test_a_corrected_relevance_leaves_alone_what_came_back_another_way(store: Store) -> None:
    await linked(store, A, X, at=1)
    await store.purge(CRAWL, None, "x.org")
    await linked(store, Z, X, at=2)
    await store.record(CRAWL, fetches(A, status=-1, reward=0.0), 3.0, 3)
    assert (await store.look(CRAWL, ids(X))).parent_sum.tolist() == [1.0]


async def test_depth_is_the_shortest_way_from_a_seed(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    for page, child in ((A, B), (B, C), (A, C)):
        told = fetches(page)
        await store.record(CRAWL, told, 1.0, 3)
        await store.discover(CRAWL, links(child, parent=0), told, 1.0)
    assert (await store.look(CRAWL, ids(A, B, C))).depth.tolist() == [0, 1, 1]


# order


async def test_gather_gives_the_best_first_across_hosts(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, X, Y, manual_priority=[0.2, 0.9, 0.5, 0.7]), None, 0.0)
    assert await gathered(store) == [B, Y, X, A]


async def test_equals_come_in_the_order_of_their_discovery(store: Store) -> None:
    found = [f"https://h{n % 3}.org/{n}" for n in range(20)]
    await store.discover(CRAWL, links(*found, manual_priority=0.5), None, 0.0)
    assert await gathered(store) == found


async def test_gather_gives_no_more_than_asked_and_no_more_than_so_many_of_a_host(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, C, X, Y, manual_priority=[0.9, 0.8, 0.7, 0.2, 0.1]), None, 0.0)
    assert await gathered(store, limit=2) == [A, B]
    assert await gathered(store, per_host=1) == [A, X, Y]


async def test_rank_moves_a_waiting_url_up_and_down(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, X, manual_priority=[0.3, 0.2, 0.1]), None, 0.0)
    await store.rank(CRAWL, ids(X, A), np.array([0.9, 0.0]))
    assert await gathered(store) == [X, B, A]


async def test_rank_leaves_urls_alone_that_do_not_wait(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    await leased(store, A)
    await store.rank(CRAWL, ids(A, D), np.array([0.9, 0.9]))
    assert await gathered(store) == [B]


async def test_a_focus_is_gathered_whatever_its_rank(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, X, manual_priority=[0.9, 0.8, 0.1]), None, 0.0)
    wanted = ask(focus=frozenset({"x.org"}))
    assert X in listed(await store.gather(CRAWL, wanted, 1, 5.0, 10))


async def test_the_order_holds_against_a_plain_sort_for_thousands_of_urls(store: Store) -> None:
    chance = np.random.default_rng(7)
    found = [f"https://h{n % 41}.org/{n}" for n in range(4_000)]
    priority = chance.random(4_000)
    await store.discover(CRAWL, links(*found, manual_priority=priority), None, 0.0)
    moved = chance.permutation(4_000)[:1_500]
    priority[moved] = chance.random(1_500)
    await store.rank(CRAWL, ids(*[found[n] for n in moved]), priority[moved])
    best = np.argsort(-priority, kind="stable")[:500]
    assert await gathered(store, limit=500, per_host=500) == [found[n] for n in best]


# leases


async def test_a_lease_goes_to_one_crawler(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    assert (await leased(store, A, crawler_id="c-1")).outcome.tolist() == [GRANTED]
    assert (await leased(store, A, crawler_id="c-2")).outcome.tolist() == [TAKEN]
    assert await gathered(store) == []
    found = (await store.find(CRAWL, ids(A)))[0]
    assert found is not None
    assert (found.state, found.crawler_id, found.lease_expires) == ("leased", "c-1", 150.0)


async def test_a_lease_expires_and_not_before(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await leased(store, A, lease_s=150.0)
    assert await gathered(store, at=149.9) == []
    assert await gathered(store, at=150.0) == [A]


async def test_a_crawler_gives_back_all_it_holds(store: Store) -> None:
    await store.discover(CRAWL, links(A, X), None, 0.0)
    await leased(store, A, X, crawler_id="c-1")
    assert await store.release(CRAWL, "c-2") == 0
    assert await store.release(CRAWL, "c-1") == 2
    assert sorted(await gathered(store)) == [A, X]


async def test_one_lease_is_given_back_unjudged(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await leased(store, A)
    recorded = await store.record(CRAWL, fetches(A, status=0, error="released"), 1.0, 3)
    assert recorded.skipped == [None]
    assert await gathered(store, at=1.0) == [A]
    assert (await store.stats(CRAWL))["fetches"] == 0


async def test_nobody_gives_back_what_another_holds(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await leased(store, A, crawler_id="c-2")
    released = fetches(A, status=0, error="released", crawler_id="c-1")
    assert (await store.record(CRAWL, released, 1.0, 3)).skipped == ["not_leased"]
    assert await state(store, A) == "leased"


async def test_what_nobody_holds_cannot_be_given_back(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    recorded = await store.record(CRAWL, fetches(A, D, status=0, error="released"), 1.0, 3)
    assert recorded.skipped == ["not_leased", "not_leased"]
    assert await state(store, D) is None


async def test_a_report_ends_the_lease_even_if_it_comes_late(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await leased(store, A, lease_s=10.0)
    await gathered(store, at=20.0)
    await store.record(CRAWL, fetches(A), 21.0, 3)
    assert await state(store, A) == "done"
    assert await gathered(store, at=22.0) == []


# outcomes


async def test_a_good_fetch_is_done(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await leased(store, A)
    await store.record(CRAWL, fetches(A, relevance=0.9), 1.0, 3)
    stats = await store.stats(CRAWL)
    assert (stats["queued"], stats["leased"], stats["done"], stats["relevant"]) == (0, 0, 1, 1)


async def test_a_fetch_that_was_never_assigned_is_recorded(store: Store) -> None:
    await store.record(CRAWL, fetches(A), 1.0, 3)
    assert await state(store, A) == "done"


async def test_the_same_fetch_told_twice_counts_once(store: Store) -> None:
    told = fetches(A, fetch_time="2025-11-03T14:18:02Z")
    await store.record(CRAWL, told, 1.0, 3)
    assert (await store.record(CRAWL, told, 2.0, 3)).skipped == ["duplicate"]
    assert (await store.stats(CRAWL))["fetches"] == 1


@pytest.mark.parametrize("failure", [{"status": 429}, {"status": 500}, {"status": 0, "error": "timeout"}])
async def test_a_passing_failure_is_tried_again_later_until_it_was_tried_enough(
    store: Store, failure: dict[str, Any]
) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    at = 0.0
    for _ in range(2):
        await store.record(CRAWL, fetches(A, **failure), at, 2)
        assert await state(store, A) == "queued"
        assert await gathered(store, at=at + 1.0) == []
        at += 5_000.0
        assert await gathered(store, at=at) == [A]
    await store.record(CRAWL, fetches(A, **failure), at, 2)
    assert await state(store, A) == "done"


@pytest.mark.parametrize("failure", [{"status": 404}, {"status": 403}, {"status": 0, "error": "tls"}])
async def test_a_lasting_failure_is_done(store: Store, failure: dict[str, Any]) -> None:
    await store.record(CRAWL, fetches(A, **failure), 0.0, 3)
    assert await state(store, A) == "done"
    assert (await store.stats(CRAWL))["failed"] == 1


async def test_after_a_redirect_both_urls_are_done_and_the_content_belongs_to_the_target(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    told = fetches(A, target=B, relevance=1.0)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(X, parent=0), told, 1.0)
    assert (await state(store, A), await state(store, B)) == ("done", "done")
    assert (await store.parents(CRAWL, ids(X))).parent.tolist() == ids(B).tolist()


async def test_late_feedback_on_a_page_nobody_fetched_is_skipped(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    late = fetches(A, D, status=-1, reward=1.0)
    assert (await store.record(CRAWL, late, 1.0, 3)).skipped == ["never_fetched", "never_fetched"]


async def test_a_done_page_that_is_due_waits_again(store: Store) -> None:
    await store.record(CRAWL, fetches(A), 0.0, 3)
    await store.schedule(CRAWL, ids(A), np.array([100.0]))
    assert await gathered(store, at=99.0) == []
    assert await gathered(store, at=100.0) == [A]
    assert await state(store, A) == "queued"


async def test_what_is_due_waits_to_be_taken_where_somebody_holds_it(store: Store) -> None:
    await store.record(CRAWL, fetches(A, B), 0.0, 3)
    await store.schedule(CRAWL, ids(A, B), np.array([100.0, 200.0]))
    await store.hold_due(CRAWL, True)
    assert await gathered(store, at=150.0) == []
    assert len(await store.take_due(CRAWL, 99.0, 10)) == 0
    assert (await store.take_due(CRAWL, 150.0, 10)).tolist() == ids(A).tolist()
    await store.queue_again(CRAWL, ids(A))
    assert await gathered(store, at=150.0) == [A]
    await store.hold_due(CRAWL, False)
    assert sorted(await gathered(store, at=200.0)) == sorted([A, B])


async def test_what_was_taken_may_be_scheduled_later(store: Store) -> None:
    await store.record(CRAWL, fetches(A), 0.0, 3)
    await store.hold_due(CRAWL, True)
    await store.schedule(CRAWL, ids(A), np.array([100.0]))
    await store.schedule(CRAWL, await store.take_due(CRAWL, 100.0, 10), np.array([300.0]))
    assert len(await store.take_due(CRAWL, 299.0, 10)) == 0
    assert len(await store.take_due(CRAWL, 300.0, 10)) == 1


async def test_only_what_is_done_is_queued_again(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await store.queue_again(CRAWL, ids(A, B))
    assert await gathered(store) == [A]


async def test_of_two_hours_for_a_page_the_sooner_counts(store: Store) -> None:
    await store.record(CRAWL, fetches(A, B), 0.0, 3)
    await store.schedule(CRAWL, ids(A, B), np.array([100.0, 50.0]))
    await store.schedule(CRAWL, ids(A, B), np.array([20.0, 90.0]))
    assert await gathered(store, at=19.0) == []
    assert await gathered(store, at=20.0) == [A]
    assert sorted(await gathered(store, at=50.0)) == sorted([A, B])


# politeness


async def test_slots_of_a_host_are_a_delay_apart_for_all_crawlers_together(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, C, D), None, 0.0)
    first = await leased(store, A, B, at=0.0, delay_s=2.0, crawler_id="c-1")
    second = await leased(store, C, at=0.5, delay_s=2.0, crawler_id="c-2")
    assert first.start.tolist() + second.start.tolist() == [0.0, 2.0, 4.0]


async def test_a_slot_beyond_the_horizon_is_deferred_and_takes_nothing(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    grants = await leased(store, A, B, delay_s=10.0, horizon_s=5.0)
    assert grants.outcome.tolist() == [GRANTED, DEFERRED]
    assert grants.start.tolist() == [0.0, 10.0]
    assert await state(store, B) == "queued"


async def test_a_host_that_must_wait_is_not_gathered_until_it_may(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, X, manual_priority=[0.9, 0.8, 0.1]), None, 0.0)
    await leased(store, A, delay_s=60.0)
    assert await gathered(store, at=1.0) == [X]
    assert await gathered(store, at=56.0) == [B, X]


async def test_a_slower_crawl_keeps_its_own_delay_after_a_faster_one(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    await leased(store, A, at=0.0, delay_s=1.0)
    assert (await leased(store, B, at=1.0, delay_s=4.0)).start.tolist() == [4.0]


async def test_pace_is_shared_by_all_tenants(store: Store) -> None:
    other = Crawl("other tenant", "crawl")
    await store.crawl_put(other, b"{}", 0.0)
    await store.discover(CRAWL, links(A), None, 0.0)
    await store.discover(other, links(B), None, 0.0)
    await leased(store, A, delay_s=3.0)
    batch = await store.look(other, ids(B))
    assert (await store.reserve(other, batch, terms(0.0, delay_s=3.0))).start.tolist() == [3.0]


async def test_retry_after_is_obeyed(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    await store.record(CRAWL, fetches(A, status=503, retry_after_s=120.0), 0.0, 3)
    assert await gathered(store, at=110.0) == []
    assert B in await gathered(store, at=120.0)


async def test_too_many_requests_double_the_back_off_and_a_success_halves_it(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, C, D), None, 0.0)
    await store.record(CRAWL, fetches(A, status=429), 0.0, 3)
    assert (await leased(store, C, at=0.0, horizon_s=0.0)).start.tolist() == [2.0]
    await store.record(CRAWL, fetches(B, status=429), 10.0, 3)
    assert (await leased(store, C, at=10.0, horizon_s=0.0)).start.tolist() == [14.0]
    await store.record(CRAWL, fetches(D), 20.0, 3)
    await store.record(CRAWL, fetches(D, status=429), 30.0, 3)
    assert (await leased(store, C, at=30.0, horizon_s=0.0)).start.tolist() == [34.0]


async def test_strictly_the_next_is_given_only_after_the_former_was_told(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    assert (await leased(store, A, B, strict=True)).outcome.tolist() == [GRANTED, DEFERRED]
    assert await gathered(store, at=50.0) == []
    await store.record(CRAWL, fetches(A), 60.0, 3)
    assert (await leased(store, B, at=60.0, strict=True)).outcome.tolist() == [GRANTED]


async def test_strictly_the_delay_counts_from_when_the_fetch_was_told(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    await leased(store, A, strict=True, delay_s=10.0)
    await store.record(CRAWL, fetches(A, elapsed_ms=1_000.0), 60.0, 3)
    assert (await leased(store, B, at=60.0, strict=True, delay_s=10.0, horizon_s=20.0)).start.tolist() == [70.0]


async def test_an_operator_sets_a_queues_delay_blocks_it_and_limits_it(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, C), None, 0.0)
    await store.control("a.org", delay_s=3.0)
    assert (await leased(store, A, B, delay_s=1.0)).start.tolist() == [0.0, 3.0]
    await store.control("a.org", block_until=100.0)
    assert await gathered(store, at=90.0) == []
    await store.control("a.org", block_until=0.0)
    assert await gathered(store, at=90.0) == [C]
    await store.control("a.org", limit=2)
    assert (await leased(store, C, at=90.0)).outcome.tolist() == [DEFERRED]
    await store.control("a.org", limit=0)
    assert (await leased(store, C, at=90.0)).outcome.tolist() == [GRANTED]


async def test_a_host_withheld_from_a_crawl_stays_out_until_then(store: Store) -> None:
    await store.discover(CRAWL, links(A, X), None, 0.0)
    await store.withhold(CRAWL, ["a.org"], np.array([50.0]))
    await store.discover(CRAWL, links(B), None, 1.0)
    assert await gathered(store, at=1.0) == [X]
    assert sorted(await gathered(store, at=50.0)) == [A, B, X]
    await store.withhold(CRAWL, ["a.org"], np.array([np.inf]))
    assert await gathered(store, at=1e9) == [X]
    await store.withhold(CRAWL, ["a.org"], np.array([-np.inf]))
    assert sorted(await gathered(store, at=51.0)) == [A, B, X]


async def test_a_withheld_host_stays_out_when_it_had_nothing_to_give_yet(store: Store) -> None:
    await store.withhold(CRAWL, ["a.org"], np.array([50.0]))
    await store.discover(CRAWL, links(A, X), None, 1.0)
    assert await gathered(store, at=1.0) == [X]


# isolation, answers, learned state


async def test_crawls_and_tenants_never_see_each_other(store: Store) -> None:
    for other in (Crawl("tenant", "another"), Crawl("another", "crawl")):
        await store.crawl_put(other, b"{}", 0.0)
        await store.discover(CRAWL, links(A), None, 0.0)
        assert await gathered(store, crawl=other) == []
        await store.discover(other, links(A, B), None, 0.0)
        assert (await store.stats(CRAWL))["queued"] == 1
    assert await store.crawl_list("tenant") == [Crawl("tenant", "another"), CRAWL]


async def test_a_crawl_that_was_deleted_is_gone_and_gives_its_leases_back(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await leased(store, A)
    assert await store.crawl_delete(CRAWL)
    assert not await store.crawl_delete(CRAWL)
    with pytest.raises(NotFound, match="crawl"):
        await store.stats(CRAWL)
    await store.crawl_put(CRAWL, b"{}", 0.0)
    await store.discover(CRAWL, links(A), None, 0.0)
    assert (await store.look(CRAWL, ids(A))).hosts.leases.tolist() == [0]


async def test_a_definition_is_kept_and_replaced_without_losing_the_frontier(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    assert not await store.crawl_put(CRAWL, b'{"new": 1}', 1.0)
    assert await store.crawl_get(CRAWL) == b'{"new": 1}'
    assert await gathered(store) == [A]


async def test_answers_are_kept_until_they_expire(store: Store) -> None:
    await store.answer_put(CRAWL, "r-1", b"answer", 10.0)
    assert await store.answer_get(CRAWL, "r-1", 9.9) == b"answer"
    assert await store.answer_get(CRAWL, "r-1", 10.0) is None
    assert await store.answer_get(CRAWL, "r-2", 0.0) is None


async def test_learned_state_is_replaced_only_by_a_newer_version(store: Store) -> None:
    assert await store.state_put(CRAWL, "model", b"old", 1)
    assert not await store.state_put(CRAWL, "model", b"same", 1)
    assert await store.state_put(CRAWL, "model", b"new", 2)
    assert await store.state_get(CRAWL, "model") == (b"new", 2)
    assert await store.state_get(CRAWL, "nothing") is None


# quotas, looking in, clearing out


async def added(store: Store, found: dict[str, float]) -> None:
    """Discover URLs and rank them, as a tell does; quotas are kept by then."""
    await store.discover(CRAWL, links(*found), None, 0.0)
    await store.rank(CRAWL, ids(*found), np.array(list(found.values())))


async def test_over_quota_the_lowest_ranked_goes_and_never_one_in_flight(small_store: Store) -> None:
    found = [f"https://h{n}.org/" for n in range(5)]
    await added(small_store, dict(zip(found[:3], (0.1, 0.5, 0.9), strict=True)))
    await leased(small_store, found[0])
    await added(small_store, dict(zip(found[3:], (0.3, 0.7), strict=True)))
    assert await gathered(small_store) == [found[2], found[4], found[1]]
    assert await state(small_store, found[0]) == "leased"
    assert await state(small_store, found[3]) is None
    assert (await small_store.stats(CRAWL))["evicted"] == 1


async def test_a_host_over_its_own_quota_loses_its_lowest_ranked(small_store: Store) -> None:
    await added(small_store, {A: 0.5, B: 0.1, C: 0.3})
    assert await gathered(small_store) == [A, C]


async def test_a_url_that_was_evicted_may_come_again(small_store: Store) -> None:
    await added(small_store, {A: 0.5, B: 0.1, C: 0.3})
    await small_store.drop(CRAWL, ids(A, C), "test")
    assert (await small_store.discover(CRAWL, links(B), None, 1.0)).new == 1
    assert await gathered(small_store) == [B]


async def test_links_beyond_their_quota_still_count_as_evidence(small_store: Store) -> None:
    for number in range(12):
        told = fetches(f"https://p{number}.org/", relevance=1.0)
        await small_store.record(CRAWL, told, 1.0, 3)
        await small_store.discover(CRAWL, links(X, parent=0), told, 1.0)
    assert (await small_store.look(CRAWL, ids(X))).parents.tolist() == [12]
    assert len(await small_store.parents(CRAWL, ids(X))) == 10


async def test_scan_sees_every_url_once_page_by_page(store: Store) -> None:
    found = [f"https://h{n % 3}.org/{n}" for n in range(25)]
    await store.discover(CRAWL, links(*found), None, 0.0)
    seen: list[str] = []
    cursor = None
    while True:
        records, cursor = await store.scan(CRAWL, "queued", None, 10, cursor)
        assert len(records) <= 10
        seen += [record.url for record in records]
        if cursor is None:
            break
    assert sorted(seen) == sorted(found)


async def test_a_priority_set_by_hand_is_shown_and_can_be_lifted(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    await store.set_priority(CRAWL, ids(A, C), np.array([0.7, 0.9]))
    assert (await store.look(CRAWL, ids(A, B))).manual_priority.tolist() == pytest.approx([0.7, np.nan], nan_ok=True)
    await store.set_priority(CRAWL, ids(A), np.array([np.nan]))
    assert np.isnan((await store.look(CRAWL, ids(A))).manual_priority).all()
    assert (await store.stats(CRAWL))["discovered"] == 2


async def test_held_counts_what_a_crawler_holds_until_it_is_told_released_or_ends(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, C, D, X), None, 0.0)
    await leased(store, A, B, C, D, crawler_id="c-1")
    await leased(store, X, crawler_id="c-2")
    assert [await store.held(CRAWL, name, 1.0) for name in ("c-1", "c-2", "c-3")] == [4, 1, 0]
    await store.record(CRAWL, fetches(A, crawler_id="c-9"), 1.0, 3)
    await store.record(CRAWL, fetches(B, status=0, error="released", crawler_id="c-1"), 1.0, 3)
    assert await store.held(CRAWL, "c-1", 1.0) == 2
    await store.release(CRAWL, "c-2")
    assert await store.held(CRAWL, "c-2", 1.0) == 0
    assert await store.held(CRAWL, "c-1", 1_000.0) == 0


async def test_open_hosts_are_those_on_which_something_waits_and_may_be_fetched(store: Store) -> None:
    await store.discover(CRAWL, links(A, X, Y, Z), None, 0.0)
    await leased(store, X)
    await store.control("y.org", block_until=100.0)
    await store.withhold(CRAWL, ["z.org"], np.array([100.0]))
    assert await store.open_hosts(CRAWL, None, 5.0, 10, 0) == (["a.org"], None)
    assert sorted((await store.open_hosts(CRAWL, None, 200.0, 10, 0))[0]) == ["a.org", "y.org", "z.org"]


async def test_open_hosts_come_page_by_page_each_once(store: Store) -> None:
    found = [f"https://h{number}.{name}.org/" for number in range(7) for name in ("a", "b")]
    await store.discover(CRAWL, links(*found), None, 0.0)
    for domain, wanted in ((None, 14), ("a.org", 7), ("nobody.org", 0)):
        seen: list[str] = []
        cursor: int | None = 0
        while cursor is not None:
            names, cursor = await store.open_hosts(CRAWL, domain, 5.0, 3, cursor)
            assert len(names) <= 3
            seen += names
        assert (len(seen), len(set(seen))) == (wanted, wanted)


async def test_what_was_refused_for_a_reason_that_may_cease_to_hold_comes_in_with_a_permitted_link(
    store: Store,
) -> None:
    await store.discover(CRAWL, links(A, B, reason=["banned", "another"]), None, 0.0)
    await store.discover(CRAWL, links(A, B), None, 1.0)
    assert await gathered(store) == []
    await store.discover(CRAWL, links(A, B).attach(revivable=frozenset({"banned"})), None, 1.0)
    assert await gathered(store) == [A]


async def test_scan_filters_by_state_and_host(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, X), None, 0.0)
    await store.record(CRAWL, fetches(A), 1.0, 3)
    assert [r.url for r in (await store.scan(CRAWL, "done", None, 10, None))[0]] == [A]
    assert [r.url for r in (await store.scan(CRAWL, None, "x.org", 10, None))[0]] == [X]
    assert (await store.scan(CRAWL, None, "unknown.org", 10, None))[0] == []


async def test_a_cursor_nobody_gave_is_refused(store: Store) -> None:
    with pytest.raises(MalformedRequest, match="cursor"):
        await store.scan(CRAWL, None, None, 10, "nonsense")


async def test_purge_forgets_the_matching_urls_except_leased_ones(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, X), None, 0.0)
    await leased(store, A)
    assert await store.purge(CRAWL, None, "a.org") == 1
    assert (await state(store, A), await state(store, B), await state(store, X)) == ("leased", None, "queued")


async def test_metadata_is_handed_back_unchanged(store: Store) -> None:
    await store.discover(CRAWL, links(A, B, metadata=[b'{"label":"x"}', None]), None, 0.0)
    assert list((await leased(store, A, B)).metadata) == [b'{"label":"x"}', None]


async def test_a_retry_of_the_same_request_finds_its_own_leases(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    first = await leased(store, A, B, delay_s=2.0)
    again = await leased(store, A, B, delay_s=2.0, at=1.0)
    assert (again.outcome.tolist(), again.start.tolist()) == ([GRANTED, GRANTED], first.start.tolist())
    assert (await leased(store, A, at=1.0, request_id="r-2")).outcome.tolist() == [TAKEN]
    assert (await leased(store, A, at=1.0, request_id=None)).outcome.tolist() == [TAKEN]


async def test_dropped_urls_are_remembered_and_can_be_revived(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    await store.drop(CRAWL, ids(A), "robots")
    assert (await store.stats(CRAWL))["dropped"] == {"robots": 1}
    await store.revive(CRAWL, ids(A))
    assert sorted(await gathered(store)) == [A, B]
    assert (await store.stats(CRAWL))["dropped"] == {}


async def test_wait_says_when_something_may_be_given_again(store: Store) -> None:
    assert await store.wait(CRAWL, 0.0) is None
    await store.discover(CRAWL, links(A, B), None, 0.0)
    assert await store.wait(CRAWL, 0.0) == 0.0
    await leased(store, A, delay_s=30.0)
    await gathered(store, at=1.0)
    assert await store.wait(CRAWL, 1.0) == pytest.approx(29.0)


async def test_every_url_is_in_exactly_one_state(store: Store) -> None:
    found = [f"https://h{n % 5}.org/{n}" for n in range(40)]
    await store.discover(CRAWL, links(*found, reason=[None] * 35 + ["scope"] * 5), None, 0.0)
    await leased(store, *found[:10])
    await store.record(CRAWL, fetches(*found[:4]), 1.0, 3)
    await store.record(CRAWL, fetches(*found[4:6], status=500), 1.0, 3)
    stats = await store.stats(CRAWL)
    assert (stats["queued"], stats["leased"], stats["done"], stats["dropped"]) == (27, 4, 4, {"scope": 5})


async def test_a_host_withheld_until_shortly_is_gathered_within_the_horizon(store: Store) -> None:
    await store.discover(CRAWL, links(A, X), None, 0.0)
    await store.withhold(CRAWL, ["a.org"], np.array([50.0]))
    assert await gathered(store, at=44.0) == [X]
    assert sorted(await gathered(store, at=46.0)) == [A, X]


# what a late or foreign report may not do


async def test_a_late_failure_does_not_take_a_url_from_its_new_holder(store: Store) -> None:
    await store.discover(CRAWL, links(A), None, 0.0)
    await leased(store, A, crawler_id="c-1", lease_s=10.0)
    await gathered(store, at=11.0)
    await leased(store, A, at=11.0, crawler_id="c-2")
    await store.record(CRAWL, fetches(A, status=0, error="timeout", crawler_id="c-1"), 12.0, 3)
    found = (await store.find(CRAWL, ids(A)))[0]
    assert found is not None
    assert (found.state, found.crawler_id) == ("leased", "c-2")


async def test_a_late_failure_does_not_undo_what_is_done(store: Store) -> None:
    await store.record(CRAWL, fetches(A), 1.0, 3)
    await store.record(CRAWL, fetches(A, status=503), 2.0, 3)
    assert await state(store, A) == "done"


async def test_links_of_a_redirect_that_failed_stand_on_the_page_that_was_asked_for(store: Store) -> None:
    await store.discover(CRAWL, links(*(f"https://n{n}.org/" for n in range(15))), None, 0.0)
    told = fetches(A, target=B, status=503)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(X, Y, parent=[0, 0]), told, 1.0)
    assert (await store.parents(CRAWL, ids(X, Y))).parent.tolist() == ids(A, A).tolist()
    assert await state(store, B) is None


async def test_two_urls_that_lead_to_one_page_count_as_one_page(store: Store) -> None:
    told = fetches(A, B, target=C)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(X, X, parent=[0, 1]), told, 1.0)
    assert (await store.look(CRAWL, ids(X))).parents.tolist() == [1]


async def test_a_correction_lowers_the_best_parent_whatever_the_number(store: Store) -> None:
    told = fetches(A, relevance=0.9)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(X, parent=0), told, 1.0)
    await store.record(CRAWL, fetches(A, status=-1, reward=0.1), 2.0, 3)
    batch = await store.look(CRAWL, ids(X))
    assert (batch.parent_best[0], batch.parent_sum[0]) == pytest.approx((0.1, 0.1))


async def test_what_nobody_judged_keeps_the_judgement_it_had(store: Store) -> None:
    for relevance in (0.9, np.nan, 0.9, np.nan):
        await store.record(CRAWL, fetches(A, relevance=relevance), 1.0, 3)
    hosts = (await store.look(CRAWL, ids(A))).hosts
    assert ((await store.stats(CRAWL))["relevant"], hosts.judged[0], hosts.relevance_sum[0]) == (
        1,
        1,
        pytest.approx(0.9),
    )


async def test_a_page_counts_once_for_its_domain_however_often_it_is_fetched(store: Store) -> None:
    for status in (200, 500, 200, 500, 200):
        await store.record(CRAWL, fetches(A, status=status), 1.0, 9)
    assert (await store.look(CRAWL, ids(A))).hosts.domain_pages.tolist() == [1]


async def test_links_of_a_page_that_did_not_change_are_not_kept_twice(store: Store) -> None:
    for at in (1.0, 2.0, 3.0):
        told = fetches(A)
        await store.record(CRAWL, told, at, 3)
        await store.discover(CRAWL, links(X, Y, parent=[0, 0]), told, at)
    assert len(await store.children(CRAWL, ids(A))) == 2
    assert store.frontier(CRAWL).links_kept == 2  # type: ignore[attr-defined]


async def test_purging_dropped_urls_lowers_their_count(store: Store) -> None:
    await store.discover(CRAWL, links(A, reason="scope"), None, 0.0)
    await store.purge(CRAWL, "dropped", None)
    assert (await store.stats(CRAWL))["dropped"] == {}


async def test_the_host_a_redirect_led_to_was_fetched_too(store: Store) -> None:
    await store.discover(CRAWL, links(A, "https://x.org/2"), None, 0.0)
    await store.record(CRAWL, fetches(A, target=X), 10.0, 3)
    assert (await leased(store, "https://x.org/2", at=10.0, delay_s=2.0)).start.tolist() == [12.0]


async def test_a_host_withheld_because_of_a_lease_comes_back_when_the_lease_ends(store: Store) -> None:
    await store.discover(CRAWL, links(A, B), None, 0.0)
    await leased(store, A)
    await store.withhold(CRAWL, ["a.org"], np.array([1_000.0]))
    await store.record(CRAWL, fetches(A, status=404), 1.0, 3)
    assert await gathered(store, at=2.0) == [B]


async def test_links_of_a_page_that_failed_are_links_of_an_irrelevant_page(store: Store) -> None:
    told = fetches(A, status=404, relevance=0.9)
    await store.record(CRAWL, told, 1.0, 3)
    await store.discover(CRAWL, links(X, parent=0), told, 1.0)
    batch = await store.look(CRAWL, ids(X))
    assert (batch.parents.tolist(), batch.parent_sum.tolist()) == ([1.0], [0.0])
