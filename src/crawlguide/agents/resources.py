"""What agents may read beside the tools: the list of crawls, and of each its numbers and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from crawlguide.agents import tools
from crawlguide.agents.messages import MOST_ASKED, MOST_LISTED, CrawlNumbers, CrawlStats, ListCrawls
from crawlguide.agents.texts import NOTICE, plain
from crawlguide.core.errors import NotFound
from crawlguide.gateway import wire

if TYPE_CHECKING:
    from crawlguide.agents.calls import Call
    from crawlguide.agents.finding import Searches

LIST, PREFIX = "crawls://list", "crawl://"
JSON, TEXT = "application/json", "text/markdown"
LISTED_AT_ONCE = 50  # crawls in one piece of the list of resources
KINDS = {
    "stats": ("Numbers of a crawl", JSON, "State, counts and harvest of one crawl, as crawl_stats gives them."),
    "report": (
        "Report of a crawl",
        TEXT,
        "One crawl in words: goal, state, numbers, and the pages that find_pages found in it.",
    ),
}


class Content(NamedTuple):
    text: str
    kind: str


class Named(NamedTuple):
    """A resource in a list."""

    uri: str
    title: str
    kind: str
    words: str


async def listed(searches: Searches, call: Call, cursor: str | None) -> tuple[list[Named], str | None]:
    """The list itself, and two resources for each crawl, piece by piece."""
    page = await tools.list_crawls(searches, call, ListCrawls(limit=LISTED_AT_ONCE, cursor=cursor))
    first = [] if cursor else [Named(LIST, "All crawls", JSON, "Crawls by name with state, topic and strategy.")]
    return first + [_named(line.crawl_id, kind) for line in page.crawls for kind in KINDS], page.cursor


def _named(crawl_id: str, kind: str) -> Named:
    title, media, words = KINDS[kind]
    return Named(uri(crawl_id, kind), f"{title}: {plain(crawl_id, 200)}", media, words)


def uri(crawl_id: str, kind: str) -> str:
    return f"{PREFIX}{quote(crawl_id, safe='')}/{kind}"


async def read(searches: Searches, call: Call, address: str) -> Content:
    if address == LIST:
        crawls = await tools.list_crawls(searches, call, ListCrawls(limit=MOST_LISTED))
        return Content(wire.encode(crawls).decode(), JSON)
    name, slash, kind = address.removeprefix(PREFIX).partition("/")
    if not address.startswith(PREFIX) or not slash or kind not in KINDS:
        expected = f"{LIST}, {PREFIX}CRAWL/stats or {PREFIX}CRAWL/report"
        raise NotFound(f"uri: expected {expected}, got {address[:200]!r}", field="uri")
    crawl_id = unquote(name)
    stats = await tools.crawl_stats(searches, call, CrawlStats(crawl_id=crawl_id))
    if kind == "stats":
        return Content(wire.encode(stats).decode(), JSON)
    return Content(await _report(searches, call, stats), TEXT)


async def _report(searches: Searches, call: Call, stats: CrawlNumbers) -> str:
    crawl = await call.guide.crawl(stats.crawl_id)
    goal = crawl["definition"].get("goal", {})
    dropped = ", ".join(f"{count} by {name}" for name, count in stats.dropped.items()) or "none"
    lines = [
        f"# Crawl {plain(stats.crawl_id, 200)}",
        f"Topic: {plain(goal.get('topic', ''), 300) or 'none'}",
        f"State: {stats.state} ({stats.meaning}). {stats.next}",
        f"Fetches: {stats.fetches}, {stats.relevant} relevant (harvest {stats.harvest}), {stats.failed} failed.",
        f"Known: {stats.discovered} URLs on {stats.hosts} hosts; {stats.queued} wait, {stats.leased} are leased.",
        f"Dropped: {dropped}.",
    ]
    return "\n\n".join(lines + _found(searches, call, stats.crawl_id)) + "\n"


def _found(searches: Searches, call: Call, crawl_id: str) -> list[str]:
    """What the latest search of this caller's has found, also where nobody waited for its answer."""
    findings = searches.found(call.whose, crawl_id)
    if findings is None or not findings.best:
        return []
    pages = [
        f"- {page.relevance:.2f} {page.url}\n  {page.title}\n  {page.snippet}" for page in findings.shown(MOST_ASKED)
    ]
    return ["## Pages found", NOTICE, "\n".join(pages)]
