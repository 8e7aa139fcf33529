"""The scheduler: what Scrapy downloads next is what the guide assigns.

What callbacks yield is told to the guide as the links of their page, what `start` yields as seeds. Requests that a
guide cannot know (a POST, a callback that is no method of the spider, one more request for a page on purpose) wait in
Scrapy's own scheduler and are downloaded between the others, at the same pace.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.core.scheduler import Scheduler as ScrapyScheduler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import load_object
from scrapy.utils.url import url_is_from_any_domain

from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.core.messages import Fetch, Outlink
from crawlguide.core.outcomes import RELEASED
from crawlguide.core.urls import identity, queue
from crawlguide.crawler.lines import robots_text
from crawlguide.gateway.client.assignments import Assignments
from crawlguide.gateway.transfers import written
from crawlguide.integrations.scrapy import travel
from crawlguide.integrations.scrapy.middlewares import Downloads, Pages, error_of, facts_of, now, visit_of
from crawlguide.integrations.scrapy.pace import Pace
from crawlguide.integrations.scrapy.plan import plan
from crawlguide.integrations.scrapy.reading import Anchor, address, words
from crawlguide.integrations.scrapy.travel import KEY
from crawlguide.integrations.scrapy.visits import Visit

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from crawlguide.gateway.client.assignments import Assignment
    from crawlguide.gateway.client.verbs import AsyncVerbs
    from crawlguide.integrations.scrapy.plan import Plan

TOLD = "told"  # the mark of a request that the guide has as a link already
SLOT = "crawlguide-"  # a downloader slot of its own for each request, so that it starts when it is handed out
UNTOLD = "untold.jsonl"
ROBOTS_PRIORITY = 1_000
MOST_ROBOTS_BYTES = 10 << 20  # unpacked; Scrapy's own bound for pages is a gigabyte
MOST_SEEN = 5_000_000  # URLs of which a `dont_filter` request counts as one more

logger = logging.getLogger(__name__)


class Ready(NamedTuple):
    """A request that waits for its host, if for anything."""

    request: Request
    host: str  # its politeness queue; "": it has none
    slot: float | None  # when the guide lets it start; None: the guide does not know it
    visit: Visit | None


class Scheduler(BaseScheduler):
    """`SCHEDULER = "crawlguide.integrations.scrapy.Scheduler"`."""

    def __init__(self, crawler: Crawler) -> None:
        if crawler.spider is None or crawler.stats is None:
            raise RuntimeError("a scheduler is made for a spider")
        _check(crawler)
        self._crawler, self._spider, self._stats = crawler, crawler.spider, crawler.stats
        self._plan: Plan = plan(crawler.settings, crawler.spider)
        self._depth_priority = crawler.settings.getint("DEPTH_PRIORITY")
        self._pace = Pace(self._plan.delay_s)
        self._local = ScrapyScheduler.from_crawler(crawler)
        self._guide: AsyncVerbs | None = None
        self._assignments: Assignments | None = None
        self._beginning: asyncio.Task[None] | None = None
        self._is_closed = self._has_local = False
        self._seeds: list[dict[str, Any]] = []  # until the guide is open
        self._ready: deque[Ready] = deque()
        self._visits: set[Visit] = set()  # taken and not told
        self._robots: set[asyncio.Task[None]] = set()
        self._seen: set[int] = set()  # told or handed out in this run
        self._slots = 0
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = cls(crawler)
        crawler.signals.connect(made.request_scheduled, signal=signals.request_scheduled)
        crawler.signals.connect(made.request_reached_downloader, signal=signals.request_reached_downloader)
        crawler.signals.connect(made.response_downloaded, signal=signals.response_downloaded)
        crawler.signals.connect(made.spider_error, signal=signals.spider_error)
        return made

    # what Scrapy's engine calls

    def open(self, spider: Spider) -> Deferred[None] | None:
        return self._local.open(spider)

    def close(self, reason: str) -> Deferred[None] | None:
        return deferred_from_coro(self._close(reason))

    def has_pending_requests(self) -> bool:
        """Asked only when nothing is in work: a visit that was not told then was dropped somewhere."""
        for visit in [visit for visit in self._visits if visit.is_started]:
            visit.conclude()
        if self._ready or self._local.has_pending_requests():
            return True
        if self._beginning is None and not self._has_local and not self._is_closed:
            self._begin()  # a spider that begins with nothing goes on with what the guide has
        return not self._is_over

    def enqueue_request(self, request: Request) -> bool:
        mark = request.meta.pop(KEY, None)
        if mark == TOLD:
            return True
        if not isinstance(mark, Visit):
            return self._add(request)
        if mark.is_carried_by(request):
            mark.is_scheduled = True
            self._assigned(request, mark)
            return True
        return self._again(request, mark)

    def next_request(self) -> Request | None:
        if self._is_closed:
            return None
        self._fill()
        at = time.monotonic()
        for one in self._ready:
            if self._pace.earliest(one.host, one.slot) <= at:
                return self._started(one, at)
        self._rest(at)
        return None

    # what signals tell

    def request_scheduled(self, request: Request) -> None:
        """A redirect that some middleware does not let through never gets here: the visit ends with it."""
        visit = visit_of(request)
        if visit is not None and not visit.is_carried_by(request):
            asyncio.get_running_loop().call_soon(self._forsake, visit, request)

    def request_reached_downloader(self, request: Request) -> None:
        """Its slot is new and makes it wait no longer.

        Since Scrapy 2.19 even the first request of a slot waits, on a machine that runs for less than the delay.
        """
        key = str(request.meta.get("download_slot", ""))
        engine = self._crawler.engine
        if key.startswith(SLOT) and engine is not None and key in engine.downloader.slots:
            engine.downloader.slots[key].delay = 0.0

    def response_downloaded(self, request: Request) -> None:
        visit = visit_of(request)
        if visit is not None:
            one = visit.assignment
            self._pace.answered(queue(one.url), one.not_before, time.monotonic())

    def spider_error(self, response: Any) -> None:
        request = getattr(response, "request", None)
        visit = None if request is None else visit_of(request)
        if visit is not None:
            visit.conclude(**(words(response) if isinstance(response, Response) else {}))

    # what visits call

    def follow(self, visit: Visit, request: Request, url: str, anchor: Anchor | None) -> None:
        """A callback yielded a request: it is a link of its page, unless the guide cannot know it."""
        metadata = self._metadata(request, url)
        if metadata is None or self._is_offsite(request):
            return
        self._saw(url)
        if priority := self._priority(request):
            self._seed(url, metadata, priority)
        else:
            known = anchor or Anchor("", "", 0)
            text = str(request.meta.get("link_text") or "").strip() or known.text
            visit.link(Outlink(url, text, known.rel, known.position if anchor else None, metadata or None))
        request.meta[KEY] = TOLD

    def report(self, visit: Visit, fetch: Fetch) -> None:
        self._visits.discard(visit)
        if self._assignments is not None:
            self._assignments.report(fetch)
            self._stats.inc_value("crawlguide/reported")

    # what comes in

    def _add(self, request: Request) -> bool:
        """A request that stands on no page of the guide's: a seed, or one of Scrapy's own."""
        url = address(request.url)
        metadata = self._metadata(request, url)
        if metadata is None:
            return self._keep(request)
        self._saw(url)
        self._seed(url, metadata, self._priority(request))
        return True

    def _again(self, request: Request, visit: Visit) -> bool:
        """Somebody between us and the network made another request out of an assigned one: a redirect, or a retry."""
        if address(request.url) == visit.assignment.url:
            return self._retried(request, visit)
        if visit.is_told:
            return self._add(request)
        url = address(request.url)
        metadata = self._metadata(request, url)
        if metadata is not None:
            visit.link(Outlink(url, metadata=metadata or None))
        visit.facts.setdefault("status", 302)
        visit.conclude()
        return metadata is not None or self._keep(request)

    def _retried(self, request: Request, visit: Visit) -> bool:
        """What the guide tries again by itself is not tried twice."""
        if visit.comes_again:
            return True
        if visit.is_told:
            return self._keep(request)
        visit.facts.clear()
        visit.carried_by(request)
        request.meta[KEY] = visit
        self._assigned(request, visit)
        return True

    def _keep(self, request: Request) -> bool:
        """In Scrapy's own scheduler."""
        self._has_local = True
        if str(request.meta.get("download_slot", "")).startswith(SLOT):
            del request.meta["download_slot"]
        return self._local.enqueue_request(request)

    def _metadata(self, request: Request, url: str) -> dict[str, Any] | None:
        """What travels with a URL; None: the guide cannot know the request."""
        if not url or (request.dont_filter and identity(url) in self._seen):
            return None
        return travel.packed(request, self._spider)

    def _saw(self, url: str) -> None:
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen.add(identity(url))

    def _is_offsite(self, request: Request) -> bool:
        """Scrapy's own middleware will say so and drop it."""
        domains = [domain for domain in getattr(self._spider, "allowed_domains", None) or () if domain]
        free = request.dont_filter or request.meta.get("allow_offsite") or not domains
        return not free and not url_is_from_any_domain(request.url, domains)

    def _priority(self, request: Request) -> float:
        """A priority in Scrapy's sense as one that a person sets: above or below all that the guide values; 0: none.

        What `DEPTH_PRIORITY` added is no wish of the spider.
        """
        wish: int = request.priority + request.meta.get("depth", 0) * self._depth_priority
        if wish > 0:
            return 1.0 - 0.1 / (1.0 + wish)
        return 1e-3 / (1.0 - wish) if wish < 0 else 0.0

    def _seed(self, url: str, metadata: dict[str, Any], priority: float) -> None:
        more = ({"metadata": metadata} if metadata else {}) | ({"priority": priority} if priority else {})
        if self._assignments is not None:
            self._assignments.seed_soon(url, **more)
        else:
            self._seeds.append({"url": url} | more)
            self._begin()

    # the guide

    def _begin(self) -> None:
        if self._beginning is None:
            self._beginning = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        slow = "" if self._plan.url else "; the first time on a machine takes a minute or more"
        logger.info("crawlguide: opening the guide at %s%s", self._plan.url or self._plan.data, slow)
        try:
            guide = self._guide = self._plan.open()
            if self._plan.definition is not None:
                await guide.define(self._plan.crawl, self._plan.definition)
            assignments = Assignments(
                guide,
                self._plan.crawl,
                self._plan.crawler,
                concurrency=self._plan.concurrency,
                ahead=self._plan.ahead,
                on_change=self._wake,
            )
            await assignments.__aenter__()
        except Exception as problem:  # noqa: BLE001 - whatever it is, nobody may wait for this guide
            self._give_up(problem)
            return
        self._recall(assignments)
        for seed in self._seeds:
            assignments.seed_soon(**seed)
        self._seeds.clear()
        self._assignments = assignments
        logger.info("crawlguide: crawl %r is open, this crawler is %s", self._plan.crawl, self._plan.crawler)
        self._wake()

    def _give_up(self, problem: Exception) -> None:
        expected, notes = isinstance(problem, CrawlGuideError), "; ".join(getattr(problem, "__notes__", []))
        said = str(problem) if expected else repr(problem)
        why = f"{said} ({notes})" if notes else said
        logger.error("crawlguide: the spider is closed: %s", why, exc_info=None if expected else problem)
        self._is_closed = True
        self._stats.set_value("crawlguide/error", said)
        engine = self._crawler.engine
        if engine is not None and engine.spider is not None:
            self._closing = asyncio.get_running_loop().create_task(
                engine.close_spider_async(reason="crawlguide_failed")
            )

    @property
    def _is_over(self) -> bool:
        if self._is_closed or self._beginning is None:
            return True
        return self._assignments is not None and self._assignments.is_over and not self._robots

    # what goes out

    def _fill(self) -> None:
        """As much as Scrapy can start: its own requests first, which a spider asked for."""
        while sum(one.visit is None for one in self._ready) < self._plan.concurrency:
            request = self._local.next_request()
            if request is None:
                break
            url = address(request.url)
            self._ready.appendleft(Ready(request, queue(url) if url else "", None, None))
        try:
            while self._assignments is not None and len(self._visits) + len(self._robots) < self._plan.concurrency:
                one = self._assignments.take()
                if one is None:
                    break
                self._take(one)
        except Exception as problem:  # noqa: BLE001 - what ended the guide's task ends the crawl
            self._give_up(problem)

    def _take(self, one: Assignment) -> None:
        """Other crawlers of the crawl may have found what this spider may not visit."""
        self._stats.inc_value("crawlguide/assigned")
        if one.kind == "robots":
            task = asyncio.get_running_loop().create_task(self._fetch_robots(one))
            self._robots.add(task)
            task.add_done_callback(self._robots.discard)
            return
        visit = Visit(one, self)
        request = travel.unpacked(one.url, one.metadata, self._spider)
        request.meta.update({KEY: visit, "dont_retry": True})
        if self._plan.checks_robots:
            request.meta["dont_obey_robotstxt"] = True
        visit.carried_by(request)
        self._visits.add(visit)
        self._saw(one.url)
        engine = self._crawler.engine
        if engine is not None and engine.spider is not None:
            engine.crawl(request)
        if not visit.is_scheduled:
            self._stats.inc_value("crawlguide/blocked")
            visit.conclude(error="blocked")

    def _assigned(self, request: Request, visit: Visit) -> None:
        request.meta[KEY] = visit
        one = visit.assignment
        self._ready.append(Ready(request, queue(one.url), one.not_before, visit))

    def _started(self, one: Ready, at: float) -> Request | None:
        self._ready.remove(one)
        if one.visit is not None:
            if one.visit.assignment.expires <= at:  # somebody else may have it by now
                one.visit.conclude(error="released")
                return self.next_request()
            one.visit.is_started = True
        self._pace.started(one.host, one.slot, at)
        own = "download_slot" in one.request.meta and one.visit is None
        if one.host and not own:
            self._slots += 1
            one.request.meta["download_slot"] = f"{SLOT}{self._slots}"
        return one.request

    async def _fetch_robots(self, one: Assignment) -> None:
        """By Scrapy's downloader with all that is set for it, past the spider."""
        self._slots += 1
        meta = {"dont_obey_robotstxt": True, "dont_retry": True, "allow_offsite": True}
        request = Request(
            one.url,
            meta=meta | {"download_slot": f"{SLOT}{self._slots}", "download_maxsize": MOST_ROBOTS_BYTES},
            callback=NO_CALLBACK,
            priority=ROBOTS_PRIORITY,
        )
        host = queue(one.url)
        await asyncio.sleep(max(0.0, self._pace.earliest(host, one.not_before) - time.monotonic()))
        self._pace.started(host, one.not_before, time.monotonic())
        report: dict[str, Any] = {"url": one.url, "fetch_time": now()}
        try:
            response = await self._crawler.engine.download_async(request)
            report |= facts_of(response.request or request, response)
            report["text"] = robots_text(response.status, response.body)
        except Exception as problem:  # noqa: BLE001 - a downloader may fail in any way, and each is an outcome
            report["error"] = error_of(problem)
        self._pace.answered(host, one.not_before, time.monotonic())
        if self._assignments is not None:
            self._assignments.report(report)

    def _forsake(self, visit: Visit, request: Request) -> None:
        if not visit.is_carried_by(request):
            visit.conclude()

    # when nothing can start

    def _rest(self, at: float) -> None:
        """Until the next host is free."""
        times = [self._pace.earliest(one.host, one.slot) - at for one in self._ready]
        if self._assignments is not None and len(self._visits) < self._plan.concurrency:
            times.append(self._assignments.wait_s())
        if self._timer is not None:
            self._timer.cancel()
        if times:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, min(times)), self._wake)

    def _wake(self) -> None:
        """Let the engine look again. Nothing public does that without a new request; else it looks every 5 s."""
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    # the end

    async def _close(self, reason: str) -> None:
        """Everything is told, and what was not started goes back."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._close_local(reason)
        if self._beginning is not None:
            await self._beginning
        await asyncio.gather(*self._robots)
        if self._assignments is not None:
            await self._close_assignments(self._assignments)
        if self._guide is not None:
            await self._guide.close()

    async def _close_local(self, reason: str) -> None:
        for one in self._ready:
            if one.visit is None:
                self._local.enqueue_request(one.request.replace(dont_filter=True))
        closed = self._local.close(reason)
        if closed is not None:
            await closed

    async def _close_assignments(self, assignments: Assignments) -> None:
        for visit in list(self._visits):
            visit.conclude(**({} if visit.facts else {"error": "released"}))
        if not self._stats.get_value("crawlguide/assigned"):
            words = "had nothing to fetch: what it was given is refused, or was fetched before; it is"
            logger.warning("crawlguide: crawl %r %s %s", self._plan.crawl, words, assignments.state)
        await assignments.close()
        self._remember(assignments.unacknowledged())

    def _remember(self, reports: list[Fetch]) -> None:
        """What could not be told, for the next run of this job; what an earlier one has left is told by now."""
        file = self._untold_file
        untold = [fetch for fetch in reports if fetch.error != RELEASED]  # what goes back does so when its lease ends
        if untold:
            kept = f"; they are in {file} for the next run" if file is not None and _is_kept(untold, file) else ""
            logger.warning("crawlguide: %d reports could not be told%s", len(untold), kept)
        elif file is not None:
            file.unlink(missing_ok=True)

    @property
    def _untold_file(self) -> Path | None:
        return None if self._plan.job is None else self._plan.job / UNTOLD

    def _recall(self, assignments: Assignments) -> None:
        """The file stays until this run ends: killed before the guide has them, the next one tells them again."""
        file = self._untold_file
        if file is not None and file.exists():
            for line in file.read_bytes().splitlines():
                try:
                    assignments.report(msgspec.json.decode(line, type=Fetch))
                except (msgspec.MsgspecError, UnicodeDecodeError) as wrong:
                    logger.warning("crawlguide: %s: a line is no report and is left out: %s", file, wrong)


def _is_kept(untold: list[Fetch], file: Path) -> bool:
    try:
        with written(file) as opened:
            opened.writelines(msgspec.json.encode(fetch) + b"\n" for fetch in untold)
    except CrawlGuideError as problem:  # those pages are downloaded again when their leases end
        logger.warning("crawlguide: %s", problem)
        return False
    return True


def _check(crawler: Crawler) -> None:
    """What must be there for a guide to hear anything."""
    if not is_asyncio_available():
        usual = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
        raise ConfigError(f'TWISTED_REACTOR: expected "{usual}", which is Scrapy\'s default, got another reactor')
    needed: tuple[tuple[str, type], ...] = (("DOWNLOADER_MIDDLEWARES", Downloads), ("SPIDER_MIDDLEWARES", Pages))
    for setting, kind in needed:
        there = [load_object(name) for name, at in crawler.settings.getwithbase(setting).items() if at is not None]
        if kind not in there:
            line = 'ADDONS = {"crawlguide.integrations.scrapy.Addon": 500}'
            name = f"crawlguide.integrations.scrapy.{kind.__name__}"
            raise ConfigError(f"{setting}: expected {name} beside the scheduler; {line} sets all of them")
