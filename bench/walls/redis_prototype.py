"""A throw-away proof that asks and tells can live on Redis Cluster; not the store that will ship.

The top byte of an id is its domain's partition, so a domain's rows, queues and politeness buckets share one hash tag
("{p17}"). Every step is one Redis function on one tag, so it is atomic there and nowhere else. What crosses tags
(evidence on a child that lives elsewhere) is a call of its own and *sets* what a parent says: it may be sent again.
An ask is `gather`, then `reserve`, on at most TOUCHED partitions; which ones, hints of earlier replies say.
Left out: quotas, scan, purge, recrawls, the link table, answers, learned state, deleting, pages per domain; and a
parent that takes its relevance back lowers `parent_sum`, not `parent_best`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import orjson
from bench.walls import redis_columns as redis_side
from bench.walls.redis_functions import source

from crawlguide.core import urls
from crawlguide.core.tables import column_names
from crawlguide.core.types import Batch, Crawl, Discovery, Fetches, Grants, Recorded, UrlRecord
from crawlguide.store.tables.rows import DROPPED, LEASED, QUEUED, STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from redis.asyncio import Redis

    from crawlguide.core.tables import F64, I64, U64, column_names
    from crawlguide.core.types import Ask, LeaseTerms, Links

TOUCHED = 4  # partitions of an ask
AT_ONCE = 500  # items of one call, so that no call holds the server for long
NO_BOUND = 2**31 - 1


class RedisPrototype:
    """The part of `Store` that asks and tells need."""

    def __init__(self, redis: Redis, partitions: int = 256) -> None:
        """`partitions`: a power of two, at most 256."""
        self.redis, self._partitions = redis, partitions
        self._hints: dict[Crawl, dict[int, tuple[float, float]]] = {}
        self.calls: list[tuple[str, int]] = []  # what the tests count

    async def load(self) -> None:
        await self.redis.function_load(source(), replace=True)

    def partition(self, host: str) -> int:
        return urls.partition(host) % self._partitions

    def partitions(self, ids: U64) -> I64:
        return (ids >> np.uint64(56)).astype(np.int64) % self._partitions

    async def _call(self, crawl: Crawl, function: str, calls: Iterable[tuple[int, dict[str, Any]]]) -> list[list[Any]]:
        """One function on some partitions, side by side; their hints are kept."""
        calls, hints = list(calls), self._hints.setdefault(crawl, {})
        name = orjson.dumps(list(crawl)).decode()
        pipe = self.redis.pipeline(transaction=False)
        for tag, query in calls:
            pipe.fcall(f"cg_{function}", 1, f"{{p{tag}}}:{name}", msgspec.msgpack.encode(query))
        replies: list[list[Any]] = await pipe.execute()
        for (tag, _), reply in zip(calls, replies, strict=True):
            self.calls.append((function, tag))
            hints[tag] = tuple(np.frombuffer(reply[0]).tolist())
        return replies

    async def _send(self, crawl: Crawl, function: str, ids: U64, items: Sequence[Any], **query: Any) -> Any:
        """Items to where their ids live, in pieces; the numbers of the items of each piece, and the reply to it."""
        tags = self.partitions(ids)
        order = np.argsort(tags, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(tags[order])) + 1)
        pieces = [rows[n : n + AT_ONCE].tolist() for rows in groups for n in range(0, len(rows), AT_ONCE)]
        calls = [(int(tags[rows[0]]), query | {"items": [items[n] for n in rows]}) for rows in pieces]
        return list(zip(pieces, await self._call(crawl, function, calls), strict=True))

    async def _everywhere(self, crawl: Crawl, function: str, **query: Any) -> list[Any]:
        """For what no id leads to."""
        return [reply[1] for reply in await self._call(crawl, function, [(n, query) for n in range(self._partitions)])]

    # crawls, as far as the contract needs them

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:  # noqa: ARG002
        return bool(await self.redis.hset(f"crawls:{crawl.tenant}", crawl.name, definition))

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        names = await self.redis.hkeys(f"crawls:{tenant}")
        return sorted(Crawl(tenant, name if isinstance(name, str) else name.decode()) for name in names)

    # an ask

    async def gather(self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int) -> Batch:
        till = ask.at + horizon_s
        query = {"at": ask.at, "till": till, "limit": limit, "per_host": per_host}
        tags = await self._chosen(crawl, ask, till)
        calls = [(tag, query | {"focus": [h for h in ask.focus if self.partition(h) == tag]}) for tag in tags]
        batch = redis_side.batch(await self._call(crawl, "gather", calls))
        order = np.lexsort((batch.sequence, -batch.priority))
        focus = np.isin(np.array(batch.hosts.name.tolist(), str), list(ask.focus))[batch.host[order]]
        return batch.take(order[(np.arange(len(order)) < limit) | focus])

    async def _chosen(self, crawl: Crawl, ask: Ask, till: float) -> list[int]:
        """At most TOUCHED partitions: those of the focus, then those with the best open rows."""
        if self._partitions <= TOUCHED:
            return list(range(self._partitions))
        if len(self._hints.get(crawl, {})) < self._partitions:  # once; a shipped store would share hints by a key
            await self._everywhere(crawl, "stats")
        hints, focus = self._hints[crawl], {self.partition(host) for host in ask.focus}
        ready = [tag for tag, (best, soon) in hints.items() if best < np.inf or soon <= till]
        return sorted(ready, key=lambda tag: (tag not in focus, hints[tag][0]))[:TOUCHED]

    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        outcome, start, metadata = np.empty(len(batch), np.uint8), np.empty(len(batch)), np.empty(len(batch), object)
        for rows, reply in await self._send(crawl, "reserve", batch.id, redis_side.raw(batch.id), **asdict(terms)):
            outcome[rows], start[rows] = np.frombuffer(reply[1], np.uint8), np.frombuffer(reply[2])
            metadata[rows] = reply[3]
        return Grants(outcome, start, metadata.tolist())

    # a tell

    async def record(
        self,
        crawl: Crawl,
        fetches: Fetches,
        at: float,
        max_retries: int,
        trains: bool = True,  # noqa: ARG002
    ) -> Recorded:
        """Fetched pages, then targets of redirects elsewhere, then evidence for children elsewhere: three rounds."""
        skipped: list[str | None] = [None] * len(fetches)
        told, elsewhere = [], []
        query = {"at": at, "max_retries": max_retries, "crawler": next(iter(fetches.crawler_id), "")}
        for rows, reply in await self._send(crawl, "record", fetches.id, await self._fetched(crawl, fetches), **query):
            told += reply[1]
            elsewhere += [msgspec.msgpack.decode(item) for item in reply[3]]
            for row, skip in zip(rows, reply[2], strict=True):
                skipped[row] = skip.decode() or None
        targets = redis_side.ids(*(item["target_id"].encode() for item in elsewhere))
        for _, reply in await self._send(crawl, "record", targets, elsewhere, **query):
            told += reply[1]
        heard = [
            (children[n : n + 16].decode(), parent.decode(), float(relevance))
            for parent, relevance, children in told
            for n in range(0, len(children), 16)
        ]
        children = redis_side.ids(*(children for _, _, children in told))
        await self._send(crawl, "evidence", children, heard)
        return Recorded(skipped, np.unique(children), np.ones(len(skipped), np.bool_))

    async def _fetched(self, crawl: Crawl, fetches: Fetches) -> list[dict[str, Any]]:
        first, here = await self._numbers(crawl, len(fetches)), self.partitions(fetches.id)
        columns: dict[str, Any] = {name: getattr(fetches, name).tolist() for name in column_names(Fetches)}
        columns |= {"id": redis_side.raw(fetches.id), "target_id": redis_side.raw(fetches.target_id)}
        columns |= {"sequence": range(first, first + len(fetches))}
        columns |= {"failed": ((fetches.error != "") | (fetches.status >= 400)).tolist()}
        columns |= {"here": (here == self.partitions(fetches.target_id)).tolist()}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    async def _numbers(self, crawl: Crawl, count: int) -> int:
        """Numbers of discovery, from one counter a crawl: the only key that every tell shares."""
        return int(await self.redis.incrby(f"sequence:{orjson.dumps(list(crawl)).decode()}", count)) - count

    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        """First where the pages live (their links, how deep they lie), then where the links lead."""
        first = await self._numbers(crawl, len(links))
        pages = await self._outlinks(crawl, links, parents) if parents is not None else {}
        names = ("parent", "url", "host", "manual_priority", "max_depth", "reason", "metadata")
        columns = [getattr(links, name).tolist() for name in names]
        items: list[Any] = []
        for id_, page, url, host, priority, bound, reason, metadata in zip(
            redis_side.raw(links.id), *columns, strict=True
        ):
            parent, relevance, depth, inherited = pages.get(page, ("", 1.0, -1, -1))
            tightest = min([b for b in (bound, inherited) if b >= 0], default=-1)
            what = (id_, url, host, first + len(items), priority, depth + 1, tightest, reason or "")
            items.append((*what, metadata.decode() if metadata else False, parent, relevance))
        replies = await self._send(crawl, "discover", links.id, items, at=at, deepest=links.deepest)
        return Discovery(sum(reply[1] for _, reply in replies), links.id, links.id[:0])  # which were new is not told

    async def _outlinks(self, crawl: Crawl, links: Links, parents: Fetches) -> dict[int, tuple[str, float, int, int]]:
        """Per page its id, relevance, depth and bound. Neither links nor fetches carry the last two."""
        ids, children = redis_side.raw(parents.target_id), redis_side.raw(links.id)
        pages = np.unique(links.parent[links.parent >= 0]).tolist()
        items = [(ids[page], [children[n] for n in np.flatnonzero(links.parent == page)]) for page in pages]
        relevance = np.where(np.isnan(parents.relevance), 0.5, parents.relevance).tolist()
        return {
            pages[row]: (ids[pages[row]], relevance[pages[row]], depth, bound)
            for rows, reply in await self._send(crawl, "outlinks", parents.target_id[pages], items)
            for row, (depth, bound) in zip(rows, reply[1], strict=True)
        }

    async def rank(self, crawl: Crawl, ids: U64, priority: F64) -> None:
        await self._send(crawl, "rank", ids, list(zip(redis_side.raw(ids), priority.tolist(), strict=True)))

    async def look(self, crawl: Crawl, ids: U64) -> Batch:
        batch = redis_side.batch([reply for _, reply in await self._send(crawl, "look", ids, redis_side.raw(ids))])
        place = {id_: n for n, id_ in enumerate(batch.id.tolist())}
        return batch.take(np.array([place[id_] for id_ in ids.tolist() if id_ in place], np.intp))

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]:
        found: list[UrlRecord | None] = [None] * len(ids)
        for rows, reply in await self._send(crawl, "find", ids, redis_side.raw(ids)):
            for row, one in zip(rows, reply[1], strict=True):
                found[row] = redis_side.record(*one) if one else None
        return found

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        query = {"from": QUEUED, "to": DROPPED, "reason": reason}
        await self._send(crawl, "alter", ids, redis_side.raw(ids), **query)

    async def revive(self, crawl: Crawl, ids: U64, deepest: int = -1) -> None:
        query = {"from": DROPPED, "to": QUEUED, "deepest": deepest if deepest >= 0 else NO_BOUND}
        await self._send(crawl, "alter", ids, redis_side.raw(ids), **query)

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        return sum(await self._everywhere(crawl, "alter", **{"crawler": crawler_id, "from": LEASED, "to": QUEUED}))

    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: F64) -> None:
        pairs = zip(hosts, until.tolist(), strict=True)
        await self._call(crawl, "withhold", [(self.partition(h), {"host": h, "till": till}) for h, till in pairs])

    async def control(self, queue: str, **given: float | None) -> None:
        await self._call(Crawl("", ""), "control", [(self.partition(queue), {"queue": queue} | given)])  # of no crawl
        self._hints.clear()

    async def wait(self, crawl: Crawl, at: float, *, changes: bool = False) -> float | None:
        await self._everywhere(crawl, "stats")
        best, soon = np.array(list(self._hints[crawl].values())).min(0).tolist()
        if best < np.inf and not changes:
            return 0.0
        return max(soon - at, 0.0) if soon < np.inf else None

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]:
        total = dict.fromkeys((*STATES[:3], "fetches", "failed", "relevant"), 0)
        for counts in await self._everywhere(crawl, "stats"):
            for name, number in zip(counts[::2], counts[1::2], strict=True):
                total[name.decode()] = total.get(name.decode(), 0) + int(number)
        dropped = {name[8:]: total.pop(name) for name in list(total) if name.startswith("dropped:")}
        return {**total, "dropped": {reason: number for reason, number in dropped.items() if number}}

    async def close(self) -> None:
        await self.redis.aclose()
