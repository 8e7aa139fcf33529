"""What each HTTP endpoint takes, does and gives: the table from which both the server and OpenAPI are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.clock import iso
from crawlguide.core.definition import Definition, HandRules, RulesEdit
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.messages import (
    Ack,
    Advice,
    AskMessage,
    Explanation,
    Released,
    ReleaseMessage,
    ReportMessage,
    SeedsMessage,
    StatsMessage,
    UrlsMessage,
    crawl_id,
)
from crawlguide.core.types import Crawl
from crawlguide.gateway import backup, lookups
from crawlguide.gateway.lookups import CrawlMessage
from crawlguide.guide.crawl import transfer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from crawlguide.guide.local import LocalGuide


class CrawlsMessage(msgspec.Struct, frozen=True):
    crawls: list[CrawlMessage]


class SeedsAdded(msgspec.Struct, frozen=True):
    accepted: int
    discovered: int


class CrawlState(msgspec.Struct, frozen=True):
    crawl_id: str
    state: str


class ImportedMessage(msgspec.Struct, frozen=True):
    lines: int
    discovered: int
    skipped: list[str]


class BackupMessage(msgspec.Struct, frozen=True):
    path: str
    made: str
    state_hash: str


class Lines:
    """A body of lines of JSON instead of one message."""


class Deleted(msgspec.Struct, frozen=True):
    deleted: str


@dataclass(frozen=True)
class RouteCall:
    """One request, decoded: whose it is, what its path and query say, and its message."""

    guide: LocalGuide
    tenant: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    message: Any

    @property
    def crawl(self) -> Crawl:
        return Crawl(self.tenant, crawl_id(self.path["crawl_id"]))


@dataclass(frozen=True)
class Route:
    """An endpoint. `takes` is the message in its body (None: no body), `gives` the one in its answer."""

    method: str
    path: str
    summary: str
    takes: Any
    gives: Any
    serve: Callable[[RouteCall], Awaitable[Any]]
    query: tuple[str, ...] = ()


async def release(call: RouteCall) -> Released:
    return Released(await call.guide.release(call.crawl, call.message.crawler_id))


async def put_crawl(call: RouteCall) -> tuple[CrawlMessage, bool]:
    new = await call.guide.define(call.crawl, call.message)
    return await get_crawl(call), new


async def get_crawl(call: RouteCall) -> CrawlMessage:
    return await lookups.crawl(call.guide, call.crawl)


async def patch_crawl(call: RouteCall) -> CrawlMessage:
    await lookups.patch(call.guide, call.crawl, call.message)
    return await get_crawl(call)


async def list_crawls(call: RouteCall) -> CrawlsMessage:
    names = await call.guide.crawls.names(call.tenant)
    return CrawlsMessage([await lookups.crawl(call.guide, crawl) for crawl in names])


async def delete_crawl(call: RouteCall) -> Deleted:
    await call.guide.delete(call.crawl)
    return Deleted(call.crawl.name)


async def add_seeds(call: RouteCall) -> SeedsAdded:
    discovered = await call.guide.seed(call.crawl, call.message)
    return SeedsAdded(len(call.message.urls), discovered)


async def export(call: RouteCall) -> AsyncIterator[bytes]:
    """The lines of an export; what can go wrong at once does so before the first of them is sent."""
    lines = transfer.exported(call.guide, call.crawl)
    first = await anext(lines)

    async def all_lines() -> AsyncIterator[bytes]:
        yield first
        async for more in lines:
            yield more

    return all_lines()


async def import_lines(call: RouteCall) -> ImportedMessage:
    done = await transfer.imported(call.guide, call.crawl, call.message)
    return ImportedMessage(done.lines, done.urls, list(done.skipped))


async def back_up(call: RouteCall) -> BackupMessage:
    """Copies lie within the data folder, under the instant they were made: a caller names no path of the server's."""
    folder = call.guide.store.folder
    if folder is None:
        raise MalformedRequest("data: this guide keeps nothing on disk, so there is nothing to copy")
    target = (folder / "backups" / iso(call.guide.clock.now()).replace(":", "")).resolve()
    slip = await backup.backup(call.guide, target)
    return BackupMessage(str(target), slip.made, slip.state_hash)


async def set_paused(call: RouteCall, paused: bool) -> CrawlState:
    await call.guide.pause(call.crawl, paused=paused)
    return CrawlState(call.crawl.name, (await lookups.crawl(call.guide, call.crawl)).state)


CRAWL = "/v1/crawls/{crawl_id}"
SELECTION = ("crawl_id", "state", "host")
PAGE = (*SELECTION, "limit", "cursor")
# fmt: off
ROUTES = (
    Route("POST", "/v1/next", "Ask: what should this crawler fetch next?", AskMessage, Advice,
          lambda call: call.guide.ask(call.message, call.tenant)),
    Route("POST", "/v1/report", "Tell: what was fetched, and what was found there.", ReportMessage, Ack,
          lambda call: call.guide.tell(call.message, call.tenant)),
    Route("GET", "/v1/crawls", "All crawls.", None, CrawlsMessage, list_crawls),
    Route("PUT", CRAWL, "Create a crawl, or replace its definition.", Definition, CrawlMessage, put_crawl),
    Route("GET", CRAWL, "One crawl's definition and state.", None, CrawlMessage, get_crawl),
    Route("PATCH", CRAWL, "Change parts of a crawl's definition (RFC 7396).", dict, CrawlMessage, patch_crawl),
    Route("DELETE", CRAWL, "Delete a crawl with all its data.", None, Deleted, delete_crawl),
    Route("POST", CRAWL + "/seeds", "Add seeds.", SeedsMessage, SeedsAdded, add_seeds),
    Route("POST", CRAWL + "/pause", "Pause: assign nothing until resumed.", None, CrawlState,
          lambda call: set_paused(call, paused=True)),
    Route("POST", CRAWL + "/resume", "Resume a paused crawl.", None, CrawlState,
          lambda call: set_paused(call, paused=False)),
    Route("POST", CRAWL + "/release", "Release the URLs that a crawler holds.", ReleaseMessage, Released, release),
    Route("GET", CRAWL + "/rules", "Bans and priorities of a crawl.", None, HandRules,
          lambda call: call.guide.rules(call.crawl)),
    Route("POST", CRAWL + "/rules", "Ban, unban, set priorities.", RulesEdit, HandRules,
          lambda call: call.guide.edit_rules(call.crawl, call.message)),
    Route("GET", CRAWL + "/export", "All URLs and links of a crawl, a line each.", None, Lines, export),
    Route("POST", CRAWL + "/import", "Take over lines of an export.", Lines, ImportedMessage, import_lines),
    Route("POST", "/v1/backups", "Copy the data folder while it is in use.", None, BackupMessage, back_up),
    Route("GET", "/v1/urls", "URLs of a crawl, page by page.", None, UrlsMessage, lookups.urls, query=PAGE),
    Route("DELETE", "/v1/urls", "Forget URLs.", None, lookups.Forgotten, lookups.forget_urls, query=SELECTION),
    Route("GET", "/v1/explain", "Explain a URL.", None, Explanation, lookups.explain, query=("crawl_id", "url")),
    Route("GET", "/v1/stats", "Statistics of all crawls, or of one.", None, StatsMessage,
          lambda call: call.guide.stats(call.tenant, call.query.get("crawl_id")), query=("crawl_id",)),
)
# fmt: on
