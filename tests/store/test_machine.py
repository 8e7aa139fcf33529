"""Random histories: a store in a folder, stopped and started on the way, says the same as one in memory.

MACHINE_EXAMPLES=500 runs that many histories instead of a few, new ones each time.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from crawlguide.core import urls as addresses
from crawlguide.store.embedded import writer
from crawlguide.store.moves.rank import Quota

from .builders import ids, links, terms
from .pair import Pair
from .stories import (
    CRAWLS,
    HOSTS,
    IDS,
    URLS,
    crawlers,
    crawls,
    distinct_urls,
    link_facts,
    outcomes,
    reported,
    seldom,
    shares,
    some_urls,
    with_facts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.protocols import Store
    from crawlguide.core.types import Crawl

EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", "0"))
QUOTA = Quota(urls=7, urls_per_host=2, links=20, done=5, keep_done_s=500.0)
QUICK = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)  # no need to wait for a disk

ARM, NUMBER = np.dtype([("pulls", "<i4"), ("means", "<f8", (2,)), ("name", "S3")]), np.dtype(np.float32)
lines = st.dictionaries(st.sampled_from([0, 1, 2, 5, 600, 1_300]), st.integers(0, 9), min_size=1, max_size=3)


class Histories(RuleBasedStateMachine):
    """Every rule does the same to both stores; after every rule both know the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="crawlguide-machine-", dir=QUICK, ignore_cleanup_errors=True)
        self.pair = Pair(Path(self.folder.name), QUOTA)
        self.at = 1_000.0
        self.gathers = self.commits = True

    @initialize(gathers=st.booleans(), commits=st.booleans(), pace=st.sampled_from([0.02, 2]))
    def begin(self, gathers: bool, commits: bool, pace: float) -> None:
        """Some things are done after every rule in some histories, and in others only where a rule says so."""
        self.gathers, self.commits = gathers, commits
        writer.SNAPSHOT_PACE = pace  # type: ignore[assignment]  # a piece with each commit, or all at once
        for crawl in CRAWLS:
            self.pair.same(lambda store, crawl=crawl: store.crawl_put(crawl, b"{}", self.at))  # type: ignore[misc]
        self.pair.same(lambda store: store.discover(CRAWLS[0], links(*URLS[:4]), None, self.at))

    # crawls

    @rule(crawl=crawls, definition=st.sampled_from([b"{}", b'{"new":1}']))
    def put_a_crawl(self, crawl: Crawl, definition: bytes) -> None:
        self.pair.same(lambda store: store.crawl_put(crawl, definition, self.at))

    @rule(crawl=crawls, really=seldom)
    def delete_a_crawl(self, crawl: Crawl, really: bool) -> None:
        if really:
            self.pair.same(lambda store: store.crawl_delete(crawl))

    # telling

    @rule(crawl=crawls, found=some_urls, facts=st.lists(link_facts, min_size=6, max_size=6), deepest=st.integers(-1, 2))
    def discover_seeds(self, crawl: Crawl, found: list[str], facts: list[dict[str, Any]], deepest: int) -> None:
        seeds = with_facts(found, [-1] * len(found), facts, deepest)
        self.pair.same(lambda store: store.discover(crawl, seeds, None, self.at))

    @rule(
        crawl=crawls,
        pages=distinct_urls,
        told=st.lists(outcomes, min_size=6, max_size=6),
        times=st.lists(st.sampled_from(["", "", "t1", "t2"]), min_size=6, max_size=6),
        led_to=st.sampled_from([None, None, None, *URLS]),
        crawler_id=crawlers,
        found=st.lists(st.sampled_from(URLS), max_size=6),
        facts=st.lists(link_facts, min_size=6, max_size=6),
        ranks=st.booleans(),
    )
    def tell(
        self,
        crawl: Crawl,
        pages: list[str],
        told: list[dict[str, Any]],
        times: list[str],
        led_to: str | None,
        crawler_id: str,
        found: list[str],
        facts: list[dict[str, Any]],
        ranks: bool,
    ) -> None:
        """Fetches, then the links on those pages, then new ranks, as a guide does."""
        report = reported(pages, told, times, led_to, crawler_id)
        recorded = self.pair.same(lambda store: store.record(crawl, report, self.at, 2))
        if isinstance(recorded, str):
            return
        parents = sorted(number % len(pages) for number in range(len(found)))  # a page's links stand together
        page_links = with_facts(found, parents, facts, -1)
        self.pair.same(lambda store: store.discover(crawl, page_links, report, self.at))
        if ranks and found:
            self.rank(crawl, sorted(set(found)), [0.3, 0.7])

    @rule(crawl=crawls, source=crawls)
    def adopt(self, crawl: Crawl, source: Crawl) -> None:
        """Take over what is known of another crawl, or of this one, which changes nothing."""
        if self.is_missing(source):
            return
        known, pages = (self.pair.run(dump(source, 0, 100))[0] for dump in self.pair.dumps)
        hosts, keys = [addresses.queue(one.url) for one in known], ids(*(one.url for one in known))
        if self.pair.same(lambda store: store.adopt(crawl, keys, hosts, known, self.at)) == "NotFound":
            return
        for page in pages:
            at, children = int(ids(page.page)[0]), ids(*(link.url for link in page.links))
            self.pair.same(lambda store, a=at, c=children, p=page: store.adopt_links(crawl, a, c, p.links, self.at))  # type: ignore[misc]

    # ranks and places

    @rule(crawl=crawls, which=distinct_urls, priority=st.lists(shares, min_size=2, max_size=2))
    def rank(self, crawl: Crawl, which: Sequence[str], priority: list[float]) -> None:
        values = np.resize(np.array(priority), len(which))
        self.pair.same(lambda store: store.rank(crawl, ids(*which), values))

    @rule(crawl=crawls, some=st.integers(1, len(URLS)), wait_s=st.sampled_from([0.0, 20.0, 300.0]))
    def schedule(self, crawl: Crawl, some: int, wait_s: float) -> None:
        due = np.full(some, self.at + wait_s)
        self.pair.same(lambda store: store.schedule(crawl, IDS[:some], due))

    @rule(crawl=crawls, which=distinct_urls, reason=st.sampled_from(["scope", "robots"]))
    def drop(self, crawl: Crawl, which: list[str], reason: str) -> None:
        self.pair.same(lambda store: store.drop(crawl, ids(*which), reason))

    @rule(crawl=crawls, which=distinct_urls, deepest=st.integers(-1, 1))
    def revive(self, crawl: Crawl, which: list[str], deepest: int) -> None:
        self.pair.same(lambda store: store.revive(crawl, ids(*which), deepest))

    @rule(crawl=crawls, host=st.sampled_from([*HOSTS, "new.org"]), wait_s=st.sampled_from([-1.0, 3.0, 60.0, np.inf]))
    def withhold(self, crawl: Crawl, host: str, wait_s: float) -> None:
        self.pair.same(lambda store: store.withhold(crawl, [host], np.array([self.at + wait_s])))

    @rule(crawl=crawls)
    def admit(self, crawl: Crawl) -> None:
        self.pair.same(lambda store: store.admit(crawl))

    @rule(
        host=st.sampled_from(HOSTS),
        delay_s=st.sampled_from([None, 0.0, 7.0]),
        block_s=st.sampled_from([None, -5.0, 40.0]),
        limit=st.sampled_from([None, 0, 1]),
    )
    def control(self, host: str, delay_s: float | None, block_s: float | None, limit: int | None) -> None:
        until = None if block_s is None else self.at + block_s
        self.pair.same(lambda store: store.control(host, delay_s=delay_s, block_until=until, limit=limit))

    # asking

    @rule(
        crawl=crawls,
        crawler_id=crawlers,
        request_id=st.sampled_from([None, "r-1", "r-2"]),
        most=st.integers(1, 8),
        delay_s=st.sampled_from([0.0, 1.0, 30.0]),
        lease_s=st.sampled_from([10.0, 150.0]),
        strict=st.booleans(),
    )
    def ask(
        self,
        crawl: Crawl,
        crawler_id: str,
        request_id: str | None,
        most: int,
        delay_s: float,
        lease_s: float,
        strict: bool,
    ) -> None:
        if self.is_missing(crawl):
            return
        wanted = np.array(self.pair.gathered(crawl, self.at, 5.0, most, 3)[:most], np.uint64)
        more: dict[str, Any] = {"request_id": request_id, "delay_s": delay_s, "lease_s": lease_s, "strict": strict}
        for _ in range(2):  # the second time somebody else has them, or the same request comes again

            async def reserved(store: Any) -> Any:
                return await store.reserve(crawl, await store.look(crawl, wanted), terms(self.at, crawler_id, **more))

            self.pair.same(reserved)

    @rule(crawl=crawls, crawler_id=crawlers)
    def release(self, crawl: Crawl, crawler_id: str) -> None:
        self.pair.same(lambda store: store.release(crawl, crawler_id))

    @rule(seconds=st.sampled_from([0.001, 1.0, 12.0, 12.0, 60.0, 60.0, 200.0, 200.0, 100_000.0]))
    def later(self, seconds: float) -> None:
        self.at += seconds

    @rule(crawl=crawls)
    def expire(self, crawl: Crawl) -> None:
        self.pair.same(lambda store: store.expire(crawl, self.at))

    # what is kept beside, and what is forgotten

    @rule(crawl=crawls, key=st.sampled_from("kl"), answer=st.binary(max_size=3), kept_s=st.sampled_from([5.0, 500.0]))
    def put_an_answer(self, crawl: Crawl, key: str, answer: bytes, kept_s: float) -> None:
        self.pair.same(lambda store: store.answer_put(crawl, key, answer, self.at + kept_s))

    @rule(crawl=crawls, state=st.binary(max_size=3), version=st.integers(0, 4))
    def put_a_state(self, crawl: Crawl, state: bytes, version: int) -> None:
        self.pair.same(lambda store: store.state_put(crawl, "model", state, version))

    @rule(
        crawl=crawls, name=st.sampled_from(["arms", "words"]), kind=st.sampled_from([ARM] * 4 + [NUMBER]), sheet=lines
    )
    def write_into_a_notebook(self, crawl: Crawl, name: str, kind: np.dtype[Any], sheet: dict[int, int]) -> None:
        async def write(store: Store) -> None:
            found = (await store.notebook(crawl)).sheet(name, kind)
            found.fit(max(sheet) + 1 + len(sheet) % 3)
            for row, value in sheet.items():
                found.rows[row] = (value, (value, row), b"x") if kind is ARM else value
            found.changed(np.array([*sheet, *sheet]))

        self.pair.same(write)

    @rule(crawl=crawls, source=crawls)
    def begin_with_what_another_knows(self, crawl: Crawl, source: Crawl) -> None:
        async def take_over(store: Store) -> bool:
            return (await store.notebook(crawl)).take_over(await store.notebook(source), ["arms"])

        self.pair.same(take_over)

    @rule(crawl=crawls)
    def count(self, crawl: Crawl) -> None:
        self.pair.same(lambda store: store.count(crawl, {"asks": 1, "assigned": 3}))

    @rule(crawl=crawls, state=st.sampled_from([None, "queued", "done", "dropped"]), host=st.sampled_from(HOSTS))
    def purge(self, crawl: Crawl, state: str | None, host: str) -> None:
        self.pair.same(lambda store: store.purge(crawl, state, host))

    @rule(crawl=crawls, state=st.sampled_from([None, "queued", "done", "dropped"]), really=seldom)
    def purge_everywhere(self, crawl: Crawl, state: str | None, really: bool) -> None:
        if really:
            self.pair.same(lambda store: store.purge(crawl, state, None))

    @rule(crawl=crawls)
    def forget_old(self, crawl: Crawl) -> None:
        self.pair.same(lambda store: store.forget_old(crawl, self.at))

    # stopping and starting

    @rule(durable=st.booleans())
    def commit(self, durable: bool) -> None:
        self.pair.commit(durable)

    @rule()
    def restart(self) -> None:
        self.pair.restarted()

    @rule(durable=st.booleans())
    def crash_after_a_commit(self, durable: bool) -> None:
        self.pair.crashed(durable)

    @rule()
    def crash_before_a_commit(self) -> None:
        self.pair.lost()

    @rule()
    def go_on_with_a_backup(self) -> None:
        self.pair.copied()

    # after every rule

    @invariant()
    def both_know_the_same(self) -> None:
        self.pair.same(lambda store: store.crawl_list("tenant"))
        for crawl in CRAWLS:
            if self.is_missing(crawl):
                continue
            self.pair.compare(crawl, IDS)
            self.pair.same(lambda store, crawl=crawl: store.state_get(crawl, "model"))  # type: ignore[misc]
            for key in "kl":
                self.pair.same(lambda store, c=crawl, key=key: store.answer_get(c, key, self.at))  # type: ignore[misc]
            self.pair.compare_wait(crawl, self.at)
            if self.gathers:  # this wakes what is due
                self.pair.gathered(crawl, self.at, 5.0)
        if self.commits:
            self.pair.commit(durable=False)

    def is_missing(self, crawl: Crawl) -> bool:
        return self.pair.same(lambda store: store.crawl_get(crawl)) is None

    def teardown(self) -> None:
        self.pair.close()
        self.folder.cleanup()


@pytest.mark.timeout(0 if EXAMPLES else 600)
def test_a_folder_that_is_stopped_and_started_knows_what_memory_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 2_000)  # so snapshots are begun and ended all the time
    monkeypatch.setattr(writer, "SNAPSHOT_PACE", 2)
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=EXAMPLES or 4,
            stateful_step_count=50,
            derandomize=not EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
