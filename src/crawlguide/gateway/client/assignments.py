"""A crawler's dealings with a guide: URLs that it may start now, reports of what became of them.

Asks are made ahead of need and reports go out in groups, by one task in the background: reports first, so that every
answer knows them. Whoever crawls takes an assignment, fetches it and reports it; at the end all that was not reported
goes back to the guide.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import msgspec
from msgspec import UNSET

from crawlguide.core.errors import (
    CrawlGuideError,
    MalformedRequest,
    StorageFull,
    TooLarge,
    UnavailableError,
)
from crawlguide.core.messages import (
    MAX_OUTLINKS,
    VERSION,
    AskMessage,
    BudgetMessage,
    Context,
    Fetch,
    ItemResult,
    Outlink,
    ReportMessage,
)
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.core.urls import queue
from crawlguide.gateway.client.patience import RETRYABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from crawlguide.core.messages import Advice, Assigned
    from crawlguide.gateway.client.verbs import AsyncVerbs

    Report = tuple[Fetch, asyncio.Future[ItemResult]]

OVER = ("exhausted", "finished")
RETRYABLE_FOR_EVER = (*RETRYABLE, StorageFull)
LEASE_S = 120.0
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.02, 5.0
SOON_S = 1.0
RENEWED_S = 600.0  # so long after its start a URL that is at work here is not handed out again, though it is given anew
MOST_HELD = 4  # times as many as are wanted, where most must wait for their hosts
MOST_REPORTS, MOST_BYTES = 100, 3 << 20  # of one message, which may have 4 MiB; as many seeds
MOST_LINK_BYTES = 2 << 20  # of one report
CLOSES_WITHIN_S = 10.0
MOST_HOSTS = 10_000  # whose pace is remembered


@dataclass(frozen=True)
class Assignment:
    """A URL to fetch: no earlier than `not_before`, no later than `expires`, both as `time.monotonic` counts."""

    url: str
    kind: str  # page, or robots: then the body is reported as `text`
    score: float
    p: float
    reason: str
    not_before: float
    expires: float
    metadata: dict[str, Any] = field(default_factory=dict)
    if_none_match: str = ""  # of a page that is fetched again, to be sent as If-None-Match
    if_modified_since: str = ""


class Pace:
    """Keeps the distance of two requests to a host that the guide has planned, also when the first one starts late."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float, float]] = {}  # by host: planned, started, shortest distance so far

    def starts(self, one: Assignment, now: float) -> None:
        host = queue(one.url)
        planned, _, gap = self._last.pop(host, (-inf, 0.0, inf))
        if len(self._last) >= MOST_HOSTS:
            del self._last[next(iter(self._last))]
        self._last[host] = (one.not_before, now, min(gap, abs(one.not_before - planned)))

    def earliest(self, one: Assignment) -> float:
        """start ≥ start of the last one + distance, which is at most the distance at which the two were planned."""
        planned, started, gap = self._last.get(queue(one.url), (-inf, -inf, inf))
        return max(one.not_before, started + min(gap, abs(one.not_before - planned)))


class Assignments:
    """What one crawler has to fetch. Use it as an async context manager.

    `ahead` URLs are held ready beyond those that are being fetched: more of them hide the guide's latency, fewer of
    them are in a better order. `on_change` is called whenever something became ready or nothing is left, for callers
    that cannot wait in `next`. With `waits_for_disk` a guide whose disk is full is tried again until there is room, as
    if it were away; without, that ends it: nobody else frees the disk on which the crawler itself writes.
    """

    def __init__(  # noqa: PLR0913 - all but the first three are options
        self,
        guide: AsyncVerbs,
        crawl_id: str = "default",
        crawler_id: str | None = None,
        *,
        concurrency: int = 8,
        ahead: int | None = None,
        on_change: Callable[[], None] | None = None,
        waits_for_disk: bool = True,
    ) -> None:
        self._retryable = RETRYABLE_FOR_EVER if waits_for_disk else RETRYABLE
        self.guide, self.crawl_id = guide, crawl_id
        self.crawler_id = crawler_id or f"crawler-{uuid4().hex[:12]}"
        self.concurrency = concurrency
        self.ahead = concurrency if ahead is None else ahead
        self.state = "running"  # of the crawl, as of the last answer
        self.started: dict[str, Assignment] = {}  # handed out, not reported
        self.refused: list[ItemResult] = []  # reports and seeds that the guide did not take, the latest few
        self.trouble = ""  # why the guide cannot be spoken to at present, while it is tried again
        self._waiting: list[tuple[float, int, Assignment]] = []  # a heap by not_before
        self._ready: deque[Assignment] = deque()
        self._pace = Pace()
        self._reports: deque[Report] = deque()
        self._sending: list[Report] = []
        self._seeds: deque[dict[str, Any]] = deque()
        self._pushed = 0  # so many were: of those that may start at once the first comes first
        self._report_id = ""
        self._asking: AskMessage | None = None
        self._ask_after = 0.0
        self._failure: BaseException | None = None
        self._changed = asyncio.Event()  # for those who wait in `next` or `flush`
        self._wake = asyncio.Event()  # for the background task
        self._on_change = on_change or (lambda: None)
        self._task: asyncio.Task[None] | None = None
        self._closing = self._closed = False
        self._times_seeded = 0
        self._has_left_out = False

    async def __aenter__(self) -> Self:
        """Whatever an earlier run under the same name held goes back first."""
        with suppress(CrawlGuideError):  # the crawl may not be there yet
            await self.guide.release(self.crawl_id, self.crawler_id)
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # what a crawler calls

    async def next(self) -> Assignment | None:
        """The best URL that may start now; waits for one. None: the crawl has nothing left."""
        while (found := self.take()) is None and not self.is_over:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.wait_s()):
                    await self._changed.wait()
        return found

    def take(self) -> Assignment | None:
        """The best URL that may start now, if there is one. Raises what ended the background task."""
        found = self._ready.popleft() if self.has_ready else None
        if found is not None:
            self.started[found.url] = found
            self._pace.starts(found, time.monotonic())
        self._wake.set()
        return found

    @property
    def has_ready(self) -> bool:
        """Would `take` give something? Raises what ended the background task."""
        if self._failure is not None:
            raise self._failure
        self._arrange(time.monotonic())
        return bool(self._ready)

    def wait_s(self) -> float:
        """So long nothing becomes ready by itself."""
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else LONGEST_WAIT_S

    @property
    def asks_in_s(self) -> float:
        """So long the guide wants to be left alone: it has nothing to give before."""
        return max(0.0, self._ask_after - time.monotonic())

    def report(self, fetch: Mapping[str, Any] | Fetch) -> asyncio.Future[ItemResult]:
        """What became of a URL, sent with the next group. The future holds the guide's word once it is on its disk."""
        self.started.pop(fetch.url if isinstance(fetch, Fetch) else str(fetch.get("url")), None)
        told = fetch if isinstance(fetch, Fetch) else _fetch(fetch)
        result: asyncio.Future[ItemResult] = asyncio.get_running_loop().create_future()
        self._reports.append((told, result))
        self._wake.set()
        return result

    async def seed(self, urls: Sequence[str | Mapping[str, Any]]) -> int:
        """Add seeds while it runs; returns how many were new. What was said of the crawl before no longer holds."""
        new = await self.guide.seed(self.crawl_id, urls)
        self._times_seeded += 1
        self.state = "running"
        self._ask_after = 0.0
        self._wake.set()
        return new

    def seed_soon(self, url: str, **more: Any) -> None:
        """A seed for callers that cannot wait, sent before the next ask; `more`: priority, max_depth, metadata."""
        self._seeds.append({"url": url} | more)
        self.state = "running"  # it may be new
        self._wake.set()

    @property
    def unreported(self) -> int:
        """How many reports the guide has not acknowledged."""
        return len(self._reports) + len(self._sending)

    def unacknowledged(self) -> list[Fetch]:
        """The reports themselves, for those who keep what could not be said until they come again."""
        return [fetch for fetch, _ in [*self._sending, *self._reports]]

    def upcoming(self, most: int) -> list[Assignment]:
        """What is held and not started, the next ones first."""
        return [*islice(self._ready, most), *(entry[2] for entry in nsmallest(most, self._waiting))][:most]

    @property
    def is_over(self) -> bool:
        """Nothing is left: not in the crawl, not here."""
        held = self._ready or self._waiting or self.started or self.unreported or self._seeds
        return self._closed or (self._failure is None and self.state in OVER and not held)

    async def flush(self) -> None:
        """Wait until every seed and every report is acknowledged. Raises `UnavailableError` where none will be."""
        while (self.unreported or self._seeds) and self._failure is None and not self._closed:
            self._changed.clear()
            await self._changed.wait()
        if self._failure is not None:
            raise self._failure
        if left := self.unreported + len(self._seeds):
            raise UnavailableError(f"closed before the guide had all reports and seeds: {left} are left")

    async def close(self, within_s: float = CLOSES_WITHIN_S) -> None:
        """Report all that is to be reported and give back the rest, as far as the guide can be reached in that time.

        Whoever is cancelled while waiting here may call it again: it goes on where it was.
        """
        if self._task is None or self._closed:
            return
        self._closing = True
        self._wake.set()
        with suppress(Exception):  # what ended the task was raised where it was waited for
            async with asyncio.timeout(within_s):
                await self._wind_up(self._task)
        self._task.cancel()
        self._closed = True
        self._changed.set()

    async def _wind_up(self, task: asyncio.Task[None]) -> None:
        """What is being said is said to the end: an answer that nobody hears would leave its leases behind."""
        await asyncio.wait([task])
        try:
            while self.unreported or self._seeds:
                await self._persist(self._sow)
                await self._persist(self._send)
        finally:
            await self.guide.release(self.crawl_id, self.crawler_id)
        await asyncio.sleep(0)  # whoever waits for what came of the last reports hears it before this is closed
        self._ready.clear()
        self._waiting.clear()
        self.started.clear()

    # the background task

    async def _work(self) -> None:
        """Seed, report, then ask, for as long as there is anything to do; sleep in between."""
        try:
            while not self._closing:
                self._wake.clear()
                await self._persist(self._sow)
                await self._persist(self._send)
                if self._may_ask():
                    await self._persist(self._ask)
                if not (self.unreported or self._seeds or self._closing):
                    await self._rest()
        except Exception as problem:  # noqa: BLE001 - whatever ended this task is raised where somebody waits for it
            self._failure = problem
            self._tell_all()

    def _may_ask(self) -> bool:
        """Not while there is something to report: the answer should know it."""
        has_more_to_do = self.unreported or self._closing
        return not has_more_to_do and self._wanted() > 0 and time.monotonic() >= self._ask_after

    async def _persist(self, step: Callable[[], Any]) -> None:
        """Try again, ever more slowly, while the guide is away or too busy."""
        wait_s = SHORTEST_WAIT_S
        while True:
            try:
                await step()
            except self._retryable as problem:
                self._note_trouble(problem.message)
                await asyncio.sleep(min(max(wait_s, problem.retry_after_s or 0.0), LONGEST_WAIT_S))
                wait_s *= 2
            else:
                self.trouble = ""
                return

    def _note_trouble(self, problem: str) -> None:
        """Said once: whoever waits without a word looks like one that hangs."""
        if not self.trouble:
            words = "the guide cannot be asked, and is tried again until it answers: {problem}"
            happened("guide_away", words, WARNING, problem=problem)
        self.trouble = problem

    async def _rest(self) -> None:
        until = self._ask_after if self._wanted() else float("inf")
        wait_s = min(max(until - time.monotonic(), 0.0), LONGEST_WAIT_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()

    async def _sow(self) -> None:
        """One group of seeds. A bad one refuses its whole group, so then they go one by one."""
        group = list(islice(self._seeds, MOST_REPORTS))
        if not group:
            return
        try:
            await self.seed(group)
        except MalformedRequest:
            for one in group:
                await self._sow_one(one)
        for _ in group:
            self._seeds.popleft()
        self._tell_all()

    async def _sow_one(self, seed: dict[str, Any]) -> None:
        try:
            await self.seed([seed])
        except MalformedRequest as wrong:
            self._refuse(ItemResult(seed["url"], "skip", wrong.message))

    def _refuse(self, result: ItemResult) -> None:
        self.refused = [*self.refused[-99:], result]

    async def _send(self) -> None:
        """One group of reports. It is the same message in every try, so it counts once."""
        if not self._sending:
            self._sending = self._group()
            self._report_id = uuid4().hex
        if not self._sending:
            return
        fetches = [fetch for fetch, _ in self._sending]
        message = ReportMessage(VERSION, self.crawler_id, fetches, self.crawl_id, self._report_id)
        try:
            ack = await self.guide.tell(message)
        except (MalformedRequest, TooLarge) as refusal:
            self._take_apart(refusal)
            return
        sent, self._sending = self._sending, []
        for report, result in zip(sent, ack.results, strict=True):
            self._settle(report, result)
        if any(result.status == "retry" for result in ack.results):
            await asyncio.sleep(SOON_S)
        self.state = "running"  # something may be new
        self._ask_after = min(self._ask_after, time.monotonic() + SHORTEST_WAIT_S)
        self._tell_all()

    def _take_apart(self, refusal: CrawlGuideError) -> None:
        """One bad report must not keep others from being heard: halves, then one alone; of that half of its links as
        long as there are any, then nothing of its words."""
        half = len(self._sending) // 2
        if half:
            self._reports.extendleft(reversed(self._sending[half:]))
            self._sending, self._report_id = self._sending[:half], uuid4().hex
            return
        fetch, result = self._sending.pop()
        if fetch.outlinks:
            self._reports.appendleft((self._without_tail(fetch, len(fetch.outlinks) // 2), result))
            return
        self._refuse(ItemResult(fetch.url, "skip", refusal.message))
        bare = msgspec.structs.replace(fetch, outlinks=None, text=None, title=None, robots_meta=None)
        if bare != fetch:
            self._reports.appendleft((bare, result))
        elif not result.done():
            result.set_result(ItemResult(fetch.url, "skip", refusal.message))
            self._tell_all()

    def _group(self) -> list[Report]:
        group: list[Report] = []
        size = 0
        while self._reports and len(group) < MOST_REPORTS:
            fetch, result = self._reports[0]
            try:
                its_size = len(msgspec.json.encode(fetch))
            except UnicodeEncodeError:
                self._reports[0] = (_sendable(fetch), result)
                continue
            links = fetch.outlinks or []
            if (its_size > MOST_BYTES or len(links) > MAX_OUTLINKS) and (most := _that_fit(links)) < len(links):
                self._reports[0] = (self._without_tail(fetch, most), result)
                continue
            size += its_size
            if group and size > MOST_BYTES:
                break
            group.append(self._reports.popleft())
        return group

    def _without_tail(self, fetch: Fetch, most: int) -> Fetch:
        """Its first links. That others are left out is said once: such pages are many where they are any."""
        links = fetch.outlinks or []
        if not self._has_left_out:
            words = "{left} of {links} links of {url} are more than a message holds, and are not told; said once"
            left = len(links) - most
            happened("links_left_out", words, WARNING, url=fetch.url, left=left, links=len(links))
        self._has_left_out = True
        return msgspec.structs.replace(fetch, outlinks=links[:most] or None)

    def _settle(self, report: Report, result: ItemResult) -> None:
        if result.status == "retry":
            self._reports.append(report)
            return
        if result.status != "ok":
            self._refuse(result)
        if not report[1].done():
            report[1].set_result(result)

    def _wanted(self) -> int:
        """How many URLs to ask for: none while half of what is held ahead can start soon."""
        soon = time.monotonic() + SOON_S
        ready = len(self._ready) + sum(not_before <= soon for not_before, _, _ in self._waiting)
        held = len(self._ready) + len(self._waiting)
        if ready > self.ahead // 2 or held >= MOST_HELD * (self.concurrency + self.ahead):
            return 0
        return max(0, self.concurrency + self.ahead - len(self.started) - ready)

    async def _ask(self) -> None:
        """The same message in every try, so that no lease is granted twice."""
        self._asking, seeded = self._asking or self._question(), self._times_seeded
        advice = await self.guide.ask(self._asking)
        self._asking = None
        self._take_in(advice, time.monotonic())
        if seeded != self._times_seeded:  # the answer may be older than the seeds
            self.state, self._ask_after = "running", 0.0
        self._tell_all()

    def _question(self) -> AskMessage:
        budget = BudgetMessage(self._wanted(), timeout_ms=round(LEASE_S * 1_000))
        context = Context(metadata={"concurrency": self.concurrency})
        return AskMessage(VERSION, self.crawler_id, budget, uuid4().hex, self.crawl_id, context)

    def _take_in(self, advice: Advice, now: float) -> None:
        self.state = advice.metadata.crawl_state
        for one in advice.assigned_urls:
            found = _assignment(one, now)
            if not self._is_at_work(found, now):
                self._push(found.not_before, found)
        wait_s = min(max(advice.retry_after_ms / 1_000, SHORTEST_WAIT_S), LONGEST_WAIT_S)
        self._ask_after = now + (SHORTEST_WAIT_S if advice.assigned_urls else wait_s)

    def _is_at_work(self, one: Assignment, now: float) -> bool:
        """Its lease has ended, and the new one is ours as well: whoever fetches it goes on, and nobody twice."""
        known = self.started.get(one.url)
        return known is not None and now - known.not_before < RENEWED_S

    def _arrange(self, now: float) -> None:
        """Move what may start; forget what others may have been given meanwhile; hold back what follows a late one."""
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.append(heappop(self._waiting)[2])
        while self._ready:
            first = self._ready[0]
            earliest = self._pace.earliest(first)
            if first.expires > now >= earliest:
                return
            self._ready.popleft()
            if first.expires > earliest:
                self._push(earliest, first)

    def _push(self, at: float, one: Assignment) -> None:
        self._pushed += 1
        heappush(self._waiting, (at, self._pushed, one))

    def _tell_all(self) -> None:
        self._changed.set()
        self._on_change()


def _fetch(report: Mapping[str, Any]) -> Fetch:
    try:
        return msgspec.convert(report, Fetch)
    except msgspec.ValidationError as wrong:
        raise MalformedRequest(f"report of {str(report.get('url'))[:200]}: {wrong}") from None


def _that_fit(links: Sequence[Outlink]) -> int:
    """How many of them go into a message, beside the words of a page."""
    size = 0
    for number, link in enumerate(links[:MAX_OUTLINKS]):
        size += len(msgspec.json.encode(link)) + 1
        if size > MOST_LINK_BYTES:
            return number
    return min(len(links), MAX_OUTLINKS)


def _sendable(fetch: Fetch) -> Fetch:
    """Without halves of surrogate pairs, which cannot be sent: some clients make them of a header's bytes."""
    return msgspec.convert(_plain(msgspec.to_builtins(fetch)), Fetch)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_plain(name): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _assignment(one: Assigned, now: float) -> Assignment:
    metadata = {} if one.metadata is UNSET else msgspec.json.decode(one.metadata)
    not_before = now + one.not_before_ms / 1_000
    tag, since = ("" if text is UNSET else text for text in (one.if_none_match, one.if_modified_since))
    return Assignment(one.url, one.kind, one.score, one.p, one.reason, not_before, now + LEASE_S, metadata, tag, since)
