"""What each HTTP endpoint takes, does and gives: the table from which both the server and OpenAPI are made."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.clock import iso
from crawlguide.core.definition import Definition, HandRules, RulesEdit
from crawlguide.core.errors import Forbidden, MalformedRequest, NotFound
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
from crawlguide.core.turns import in_turns, make_way
from crawlguide.core.types import Crawl
from crawlguide.gateway import backup, lookups
from crawlguide.gateway.access.credential import ADMIN, ASK, IMPORT, READ, ROBOTS_OVERRIDE, TELL
from crawlguide.gateway.lookups import CrawlMessage
from crawlguide.guide.crawl import transfer
from crawlguide.guide.crawl.composition import warm_start
from crawlguide.guide.local import always

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from crawlguide.gateway.access.credential import Credential
    from crawlguide.guide.local import LocalGuide


class CrawlsMessage(msgspec.Struct, frozen=True):
    """`cursor` is where the next page begins; null: there is none."""

    crawls: list[CrawlMessage]
    cursor: str | None = None


class SeedsAdded(msgspec.Struct, frozen=True):
    accepted: int
    discovered: int


class CrawlState(msgspec.Struct, frozen=True):
    crawl_id: str
    state: str


class ImportedMessage(msgspec.Struct, frozen=True):
    """`skipped` says why lines were of no use, of the first hundred; `skipped_lines` counts them all."""

    lines: int
    discovered: int
    skipped: list[str]
    skipped_lines: int


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
    """One request, decoded: whose it is, which scope it takes, what its path and query say, and its message."""

    guide: LocalGuide
    credential: Credential
    scope: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    message: Any
    create: bool = True  # a crawl that is not there yet
    is_awaited: Callable[[], bool] = always  # whether anybody still waits for the answer

    @property
    def tenant(self) -> str:
        return self.credential.tenant

    @property
    def crawl(self) -> Crawl:
        """The one in the path."""
        return self.permitted(crawl_id(self.path["crawl_id"]))

    def permitted(self, name: str) -> Crawl:
        """A crawl of the caller's tenant, by a name that can be one; messages hold no others.

        Raises `Forbidden` where the credential does not reach that far.
        """
        self.credential.check(self.scope, name)
        return Crawl(self.tenant, name)

    async def readable(self) -> list[Crawl]:
        """All crawls that the credential may look at."""
        return [one for one in await self.guide.crawls.names(self.tenant) if self.credential.may(READ, one.name)]


@dataclass(frozen=True)
class Route:
    """An endpoint. `takes` is the message in its body (None: no body), `gives` the one in its answer."""

    method: str
    path: str
    scope: str
    summary: str
    takes: Any
    gives: Any
    serve: Callable[[RouteCall], Awaitable[Any]]
    query: tuple[str, ...] = ()
    tells: bool = False  # waits behind what others tell


def check_before_body(route: Route, credential: Credential, path: Mapping[str, str]) -> None:
    """What can be refused without reading the body is."""
    if "crawl_id" in path:
        credential.check(route.scope, path["crawl_id"])
    else:
        credential.check_some(route.scope)


async def ask(call: RouteCall) -> Advice:
    """An ask may seed, and tell what was fetched: that takes the scope for telling, too."""
    message: AskMessage = call.message
    call.permitted(message.crawl_id)
    call.credential.check_crawler(message.crawler_id)
    context = message.context
    if context is not None and (context.recent_history or context.seed_urls):
        call.credential.check(TELL, message.crawl_id)
    if context is not None and context.recent_history:
        call.guide.tells.check_room(call.tenant)
    learns = trains(call, message.crawl_id)
    return await call.guide.ask(message, call.tenant, create=call.create, trains=learns, is_awaited=call.is_awaited)


async def tell(call: RouteCall) -> Ack:
    message: ReportMessage = call.message
    call.permitted(message.crawl_id)
    call.credential.check_crawler(message.crawler_id)
    return await call.guide.tell(message, call.tenant, trains=trains(call, message.crawl_id))


def trains(call: RouteCall, crawl: str) -> bool:
    """Whether fetches that were never assigned teach the strategy, too."""
    return call.credential.may(IMPORT, crawl)


async def release(call: RouteCall) -> Released:
    call.credential.check_crawler(call.message.crawler_id)
    return Released(await call.guide.release(call.crawl, call.message.crawler_id))


async def put_crawl(call: RouteCall) -> tuple[CrawlMessage, bool]:
    await check_definition(call, call.message)
    new = await call.guide.define(call.crawl, call.message)
    return await get_crawl(call), new


async def get_crawl(call: RouteCall) -> CrawlMessage:
    return await lookups.crawl(call.guide, call.crawl)


async def patch_crawl(call: RouteCall) -> CrawlMessage:
    async def change(old: Definition) -> Definition:
        new = await lookups.patched_definition(old, call.message)
        await check_definition(call, new)
        return new

    await call.guide.redefine(call.crawl, change)
    return await get_crawl(call)


async def check_definition(call: RouteCall, new: Definition) -> None:
    """To ignore robots.txt takes a scope of its own, and to begin with what another crawl has learned, to read it."""
    old = await call.guide.definition(call.crawl) or Definition()
    exceptions = set(new.policy.robots_exceptions) - set(old.policy.robots_exceptions)
    if exceptions or (new.policy.robots == "ignore" != old.policy.robots):
        call.credential.check(ROBOTS_OVERRIDE, call.crawl.name)
    source = warm_start(new)
    if source is not None and source != warm_start(old):
        call.credential.check(READ, source)


async def list_crawls(call: RouteCall) -> CrawlsMessage:
    """By name, up to a limit: of crawls, and of bytes, since a definition may be as long as a message."""
    limit, after = lookups.limit(call.query), call.query.get("cursor", "")
    left = [crawl for crawl in await call.readable() if crawl.name > after]
    found, size = list[CrawlMessage](), 0
    async for some in in_turns(left[:limit], LISTED_AT_ONCE):
        for crawl in some:
            if size > LISTED_BYTES:
                break
            with suppress(NotFound):  # it was deleted meanwhile
                found.append(await lookups.crawl(call.guide, crawl))
                size += len(msgspec.json.encode(found[-1]))
                await make_way(size)
    more = bool(found) and found[-1].crawl_id != left[-1].name
    return CrawlsMessage(found, found[-1].crawl_id if more else None)


async def stats(call: RouteCall) -> StatsMessage:
    name = call.query.get("crawl_id")
    crawls = await call.readable() if name is None else None
    found = await call.guide.stats(call.tenant, name and call.permitted(crawl_id(name)).name, crawls)
    if call.credential.may(READ):
        return found
    asks = sum(crawl.asks for crawl in found.crawls.values())  # whoever sees some crawls sees what those were asked
    return msgspec.structs.replace(found, num_queries_completed=asks)


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
    permit = partial(check_definition, call)
    done = await transfer.imported(call.guide, call.crawl, call.message, permit=permit)
    return ImportedMessage(done.lines, done.urls, list(done.skipped), done.skipped_lines)


async def back_up(call: RouteCall) -> BackupMessage:
    """Copies lie within the data folder, under the instant they were made: a caller names no path of the server's."""
    if not call.credential.is_operator:
        raise Forbidden("a backup holds all tenants: expected the scope admin of tenant default; export crawls instead")
    folder = call.guide.store.folder
    if folder is None:
        raise MalformedRequest("data: this guide keeps nothing on disk, so there is nothing to copy")
    async with call.guide.copying:
        target = (folder / "backups" / iso(call.guide.clock.now()).replace(":", "")).resolve()
        slip = await backup.backup(call.guide, target)
    return BackupMessage(str(target), slip.made, slip.state_hash)


async def set_paused(call: RouteCall, paused: bool) -> CrawlState:
    await call.guide.pause(call.crawl, paused=paused)
    return CrawlState(call.crawl.name, (await lookups.crawl(call.guide, call.crawl)).state)


LISTED_AT_ONCE, LISTED_BYTES = 20, 4 * 1024 * 1024
CRAWL = "/v1/crawls/{crawl_id}"
SELECTION = ("crawl_id", "state", "host")
PAGE = (*SELECTION, "limit", "cursor")
# fmt: off
ROUTES = (
    Route("POST", "/v1/next", ASK, "Ask: what should this crawler fetch next?", AskMessage, Advice,
          ask),
    Route("POST", "/v1/report", TELL, "Tell: what was fetched, and what was found there.", ReportMessage, Ack,
          tell, tells=True),
    Route("GET", "/v1/crawls", READ, "All crawls, page by page.", None, CrawlsMessage, list_crawls,
          query=("limit", "cursor")),
    Route("PUT", CRAWL, ADMIN, "Create a crawl, or replace its definition.", Definition, CrawlMessage, put_crawl),
    Route("GET", CRAWL, READ, "One crawl's definition and state.", None, CrawlMessage, get_crawl),
    Route("PATCH", CRAWL, ADMIN, "Change parts of a crawl's definition (RFC 7396).", dict, CrawlMessage, patch_crawl),
    Route("DELETE", CRAWL, ADMIN, "Delete a crawl with all its data.", None, Deleted, delete_crawl),
    Route("POST", CRAWL + "/seeds", TELL, "Add seeds.", SeedsMessage, SeedsAdded, add_seeds),
    Route("POST", CRAWL + "/pause", ADMIN, "Pause: assign nothing until resumed.", None, CrawlState,
          lambda call: set_paused(call, paused=True)),
    Route("POST", CRAWL + "/resume", ADMIN, "Resume a paused crawl.", None, CrawlState,
          lambda call: set_paused(call, paused=False)),
    Route("POST", CRAWL + "/release", TELL, "Release the URLs that a crawler holds.", ReleaseMessage, Released,
          release),
    Route("GET", CRAWL + "/rules", READ, "Bans and priorities of a crawl.", None, HandRules,
          lambda call: call.guide.rules(call.crawl)),
    Route("POST", CRAWL + "/rules", ADMIN, "Ban, unban, set priorities.", RulesEdit, HandRules,
          lambda call: call.guide.edit_rules(call.crawl, call.message)),
    Route("GET", CRAWL + "/export", READ, "All URLs and links of a crawl, a line each.", None, Lines, export),
    Route("POST", CRAWL + "/import", ADMIN, "Take over lines of an export.", Lines, ImportedMessage, import_lines),
    Route("POST", "/v1/backups", ADMIN, "Copy the data folder while it is in use.", None, BackupMessage, back_up),
    Route("GET", "/v1/urls", READ, "URLs of a crawl, page by page.", None, UrlsMessage, lookups.urls, query=PAGE),
    Route("DELETE", "/v1/urls", ADMIN, "Forget URLs.", None, lookups.Forgotten, lookups.forget_urls, query=SELECTION),
    Route("GET", "/v1/explain", READ, "Explain a URL.", None, Explanation, lookups.explain, query=("crawl_id", "url")),
    Route("GET", "/v1/stats", READ, "Statistics of all crawls, or of one.", None, StatsMessage,
          stats, query=("crawl_id",)),
)
# fmt: on
BY_ENDPOINT = {(route.method, route.path): route for route in ROUTES}
