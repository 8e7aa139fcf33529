"""One crawl from its first to its last moment: guide, folder, fetchers, loop, and what it leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.config import Config
from crawlguide.core.definition import Definition, Goal
from crawlguide.core.errors import ConfigError, CrawlGuideError, MalformedRequest, NotFound
from crawlguide.crawler import folder as folders
from crawlguide.crawler import options as crawl_options
from crawlguide.crawler import seeds as seeding
from crawlguide.crawler.copies import Copies
from crawlguide.crawler.fetch import FetchOptions
from crawlguide.crawler.folder import CrawlFolder, Extent, Identity
from crawlguide.crawler.limits import Limits, remaining
from crawlguide.crawler.loop import CrawlLoop, fetchers
from crawlguide.crawler.outputs import Outputs
from crawlguide.crawler.tally import Tally
from crawlguide.gateway.client import AsyncClient
from crawlguide.gateway.client.assignments import Assignments
from crawlguide.gateway.library import AsyncGuide
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.wire import checked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from crawlguide.crawler.fetch import Fetcher
    from crawlguide.crawler.lines import PageLine
    from crawlguide.crawler.options import CrawlOptions
    from crawlguide.crawler.view import View
    from crawlguide.gateway.client.verbs import AsyncVerbs
    from crawlguide.guide.local import LocalGuide

UPKEEP_S = 10.0
TRIES, DEADLINE_S = 2, 20.0  # of a call to a served guide; what passes by itself is tried again for as long as it takes
CLOSES_WITHIN_S = 3.0
INTERRUPTED = "interrupted"
ENDING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Outcome:
    """How a crawl ended, and what the guide knows at its end."""

    why: str
    folder: CrawlFolder
    identity: Identity
    tally: Tally
    stats: dict[str, Any]
    seconds: float
    remaining: str = ""  # how much is still to be found, in words
    max_pages: int = 0  # as it was told; 0: nothing

    @property
    def best(self) -> list[PageLine]:
        return self.tally.best_pages()


async def crawl(options: CrawlOptions, view: View) -> Outcome:
    """Crawl, or go on with a crawl, as far as the options say."""
    began = time.monotonic()
    folder = folders.checked(options.out, resume=options.resume)
    options = _as_begun(options, folder)
    async with AsyncExitStack() as stack:
        both = await stack.enter_async_context(fetchers(_fetching(options)))
        identity = await _identity(options, folder, both.files)
        stack.enter_context(folder.held())
        folders.checked(options.out, resume=options.resume)  # another crawl may have been made in it meanwhile
        view.say(f"crawl {identity.crawl_id!r} in {folder.path}")
        guide = await stack.enter_async_context(_guide(identity, folder))
        # What the guide refuses is said before sites are asked.
        definition = await _define(guide, identity, options, view)
        identity = await _with_seeds(identity, options, both.files, view, _left_s(options, began))
        folder.begin(identity)
        tally, copies = Tally(), Copies(wanted=definition["policy"]["recrawl"] not in (False, "off"))
        outputs = Outputs(folder, (tally.add, copies.add), warc=options.warc, parquet=options.parquet)
        stack.callback(outputs.abandon)
        for words in outputs.missing:
            view.say(words)
        # Seeded before anything is asked: a crawl without seeds would be said to be over.
        await guide.seed(identity.crawl_id, identity.seeds)
        assignments = await stack.enter_async_context(_assignments(guide, identity, options.concurrency))
        await _tell_again(assignments, outputs)
        loop = CrawlLoop(
            assignments,
            both,
            outputs,
            tally,
            agent=definition["policy"]["user_agent"],
            copies=copies,
            max_pages=options.max_pages,
        )
        with _interruptible(loop, view):
            async with _watched(loop, outputs, view, Limits(options, began)):
                why = await loop.run()
            await assignments.close(CLOSES_WITHIN_S)
            outputs.close()
            stats = await _stats(guide, identity.crawl_id)
            await _export(guide, identity.crawl_id, folder, view)
    left = remaining(tally, stats) or loop.remaining
    return Outcome(why, folder, identity, tally, stats, time.monotonic() - began, left, options.max_pages)


# Before the crawl.


def _as_begun(options: CrawlOptions, folder: CrawlFolder) -> CrawlOptions:
    """A crawl that goes on fetches as it did before: nobody wants to find out that it went around the proxy."""
    known = folder.read()
    if known is None:
        return options
    if known.proxy and "@" in known.proxy and options.proxy is None:
        raise ConfigError("--resume: this crawl was begun behind a proxy with a password: name it again with --proxy")
    if known.parquet and not options.parquet:
        raise ConfigError("--resume: --no-parquet: this crawl was begun with Parquet files; leave it out")
    return replace(
        options,
        proxy=options.proxy or known.proxy,
        allow_networks=options.allow_networks or tuple(known.allow_networks),
        user_agent=options.user_agent or known.user_agent,
        contact=options.contact or known.contact,
        parquet=options.parquet and known.parquet is not False,  # the links of some runs are no links of the crawl
        **({} if options.names_limits or known.extent is None else msgspec.structs.asdict(known.extent)),
    )


def _extent(options: CrawlOptions) -> Extent:
    return Extent(
        max_pages=options.max_pages,
        max_time_s=options.max_time_s,
        until=options.until,
        min_harvest=options.min_harvest,
    )


def _fetching(options: CrawlOptions) -> FetchOptions:
    return FetchOptions(
        user_agent=options.agent,
        contact=options.contact,
        proxy=options.proxy,
        concurrency=options.concurrency,
        allow_networks=options.allow_networks,
    )


async def _identity(options: CrawlOptions, folder: CrawlFolder, files: Fetcher) -> Identity:
    """Of the crawl that lies in the folder, or of a new one, which has no seeds yet."""
    known = folder.read()
    if known is None and not options.seeds:
        raise ConfigError("SEED: expected a URL or a host to begin with, got none")
    reference = await seeding.reference(options.reference, files) if options.reference else ""
    said = crawl_options.definition(options, reference)
    _check_said(said)
    if known is not None:
        _check_same(known, options, said)
        return msgspec.structs.replace(known, extent=_extent(options))
    return Identity(
        crawl_id=options.name,
        crawler_id=folders.crawler_name(),
        definition=crawl_options.completed(said),
        seeds=[],
        guide=options.guide,
        proxy=options.proxy and crawl_options.without_password(options.proxy),
        allow_networks=list(options.allow_networks),
        user_agent=options.user_agent,
        contact=options.contact,
        parquet=options.parquet,
        extent=_extent(options),
    )


def _check_said(said: dict[str, Any]) -> None:
    """With the name of the option, as it is typed, where a definition has another."""
    try:
        checked(said, Definition)
    except MalformedRequest as wrong:
        field, _, rest = wrong.message.partition(":")
        part, name = field.partition("[")[0].split(".")
        if isinstance(value := said[part][name], float):  # JSON has no word for what is endless
            rest = f"{rest.rpartition(', got ')[0]}, got {value:g}"
        raise ConfigError(f"{crawl_options.option(name)}:{rest}") from None


async def _with_seeds(
    identity: Identity, options: CrawlOptions, files: Fetcher, view: View, within_s: float
) -> Identity:
    """With those that are named, and what the sitemaps and feeds of their hosts bring."""
    goal, pause_s = identity.definition.get("goal", {}), options.delay_s
    pause_s = seeding.PAUSE_S if pause_s is None else pause_s
    found = await seeding.found(options.seeds, goal, files, options.agent, view.say, pause_s, within_s=within_s)
    return msgspec.structs.replace(identity, seeds=[*dict.fromkeys([*identity.seeds, *found])])


def _left_s(options: CrawlOptions, began: float) -> float:
    """Of `--max-time`."""
    return max(0.0, began + options.max_time_s - time.monotonic()) if options.max_time_s else inf


def _check_same(known: Identity, options: CrawlOptions, said: dict[str, Any]) -> None:
    """What goes on is the crawl that was begun."""
    for part, fields in said.items():
        for name, value in fields.items():
            if known.definition.get(part, {}).get(name) != value:
                had = known.definition.get(part, {}).get(name)
                raise ConfigError(
                    f"--resume: {crawl_options.option(name)}: this crawl was begun with {crawl_options.shown(had)}, got"
                    f" {crawl_options.shown(value)};"
                    " leave it out, or begin another crawl in another --out"
                )
    if options.guide not in (None, known.guide):
        raise ConfigError(f"--resume: --guide: this crawl was begun with {known.guide or 'a guide of its own'}")
    if options.crawl not in (None, known.crawl_id):
        raise ConfigError(f"--resume: --crawl: the crawl in this folder is {known.crawl_id!r}, got {options.crawl!r}")


@asynccontextmanager
async def _guide(identity: Identity, folder: CrawlFolder) -> AsyncIterator[AsyncVerbs]:
    """The one that is served, or one in this process."""
    if identity.guide is not None:
        async with AsyncClient(identity.guide, retries=TRIES, deadline_s=DEADLINE_S) as client:
            yield client
        return
    local = open_guide(folder.guide, Config())
    async with AsyncGuide(local) as guide:
        upkeep = asyncio.create_task(_upkeep(local))
        try:
            yield guide
        finally:
            upkeep.cancel()
            with suppress(asyncio.CancelledError):
                await upkeep


async def _upkeep(guide: LocalGuide) -> None:
    """What ends by itself, as in a server: leases, answers, waits."""
    while True:
        await asyncio.sleep(UPKEEP_S)
        with suppress(CrawlGuideError):
            await guide.upkeep()


async def _define(guide: AsyncVerbs, identity: Identity, options: CrawlOptions, view: View) -> dict[str, Any]:
    """A crawl that others have begun is joined, if it is the same one. Returns its definition."""
    wanted = msgspec.convert(identity.definition, Definition)
    if identity.guide is None and not options.resume:  # its folder may hold one that never came to its first page
        _check_judged(options, wanted.goal)
        await guide.define(identity.crawl_id, wanted)
    try:
        there: dict[str, Any] = (await guide.crawl(identity.crawl_id))["definition"]
    except NotFound:
        _check_judged(options, wanted.goal)
        await guide.define(identity.crawl_id, wanted)
        return dict(msgspec.to_builtins(wanted))
    _check_judged(options, msgspec.convert(there["goal"], Goal))
    if options.resume or identity.guide is None:
        return there
    differing = crawl_options.differing(wanted, there, identity.definition)
    if differing:
        raise ConfigError(
            f"--guide: a crawl {identity.crawl_id!r} is there already, and differs in {', '.join(differing)};"
            " join it by leaving those options out, or give this one another name with --crawl"
        )
    view.say(f"joining the crawl {identity.crawl_id!r}, which is there already")
    return there


def _check_judged(options: CrawlOptions, goal: Goal) -> None:
    """Where nothing is judged no page is ever relevant, and what waits for relevant pages waits for ever."""
    for name, value in (("--until", options.until), ("--min-harvest", options.min_harvest)):
        if value is not None and not goal:
            raise ConfigError(
                f"{name}: it counts relevant pages, and this crawl has no words of what is relevant: say them with"
                " --topic, --keywords or --reference"
            )


def _assignments(guide: AsyncVerbs, identity: Identity, concurrency: int) -> Assignments:
    """The fewer URLs are held, the better is their order; a guide answers far sooner than a site, also a served one."""
    ahead = max(2, concurrency // 4)
    served = identity.guide is not None
    return Assignments(
        guide, identity.crawl_id, identity.crawler_id, concurrency=concurrency, ahead=ahead, waits_for_disk=served
    )


async def _tell_again(assignments: Assignments, outputs: Outputs) -> None:
    """What a killed run has fetched and may not have told. What was told is known again by its time."""
    results = [(entry.number, assignments.report(entry.report)) for entry in outputs.unanswered]
    await assignments.flush()
    for number, result in results:
        outputs.answered(number, (await result).relevance)


# While it runs.


@asynccontextmanager
async def _watched(loop: CrawlLoop, outputs: Outputs, view: View, limits: Limits) -> AsyncIterator[None]:
    """Show how it goes, and stop it when it is time."""
    ticking = asyncio.create_task(_tick(loop, outputs, view, limits))
    view.start()
    try:
        yield
    finally:
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking
        view.stop()


@contextmanager
def _interruptible(loop: CrawlLoop, view: View) -> Iterator[None]:
    """Ctrl-C once ends what is begun, twice everything. So does whoever ends a container."""
    events, before = asyncio.get_running_loop(), {number: signal.getsignal(number) for number in ENDING}
    times = count(1)
    for number in ENDING:
        events.add_signal_handler(number, lambda: _interrupted(loop, view, next(times)))
    try:
        yield
    finally:
        for number in ENDING:
            events.remove_signal_handler(number)
            signal.signal(number, before[number])


def _interrupted(loop: CrawlLoop, view: View, times: int) -> None:
    if times > 1:
        _at_once(view)
    what = "is given back, and what came is saved" if loop.ended else "is finished and saved"
    loop.stop(INTERRUPTED, at_once=bool(loop.ended))  # at a limit it waits for what is under way alone
    view.say(f"ending: what is under way {what}; Ctrl-C once more ends at once")


def _at_once(view: View) -> None:
    """Nothing that the guide knows is lost: what it was told lies in the journal."""
    try:
        view.stop()  # which has hidden the cursor
    finally:
        os._exit(130)


async def _tick(loop: CrawlLoop, outputs: Outputs, view: View, limits: Limits) -> None:
    try:
        while True:
            await limits.due(loop)
            outputs.flush()
            await limits.look(loop)
            with suppress(OSError):  # nobody looks any more
                view.show(loop)
    except (OSError, CrawlGuideError) as problem:
        loop.fail(problem)


# After it.


async def _stats(guide: AsyncVerbs, crawl_id: str) -> dict[str, Any]:
    with suppress(CrawlGuideError):
        found: dict[str, Any] = (await guide.stats(crawl_id))["crawls"][crawl_id]
        return found
    return {}


async def _export(guide: AsyncVerbs, crawl_id: str, folder: CrawlFolder, view: View) -> None:
    """The crawl as a file that the lab replays, and that a guide takes over."""
    new = folder.export.with_suffix(".new")
    try:
        with new.open("wb") as file:
            async for line in guide.export(crawl_id):
                file.write(line + b"\n")
        new.replace(folder.export)
    except CrawlGuideError as problem:
        new.unlink(missing_ok=True)
        view.say(f"{folder.export.name} was not written: {problem.message}")
