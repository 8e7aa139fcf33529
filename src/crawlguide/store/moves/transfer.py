"""Transfer: a crawl's URLs and links as plain records, out of one store and into another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import msgspec
import numpy as np

from crawlguide.core.columns import texts
from crawlguide.core.outcomes import is_failure
from crawlguide.core.types import KnownLink, KnownPage, KnownUrl
from crawlguide.store.crawls import Crawls
from crawlguide.store.moves.discover import write_links
from crawlguide.store.tables.rows import DONE, DROPPED, FREE, LEASED, QUEUED, STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl
    from crawlguide.store.frontier import Frontier

State = Literal["queued", "done", "dropped"]
NUMBERS = ("priority", "given", "relevance", "discovered", "fetched", "due", "parent_sum", "parent_best")
LINKS_AT_ONCE = 2_000  # that are looked up in one go, unless a single page has more
MOST_REASONS = 200  # of the 255 that a row can name
COUNTS = ("depth", "max_depth", "status", "tries", "parents")


class Transferring(Crawls):
    async def dump(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownUrl], int | None]:
        frontier = self.frontier(crawl)
        end = min(cursor + limit, frontier.index.rows)
        rows = cursor + np.flatnonzero(frontier.table["state"][cursor:end] < FREE)
        urls = frontier.urls.take(rows).tolist()
        known = [_known_url(frontier, row, url) for row, url in zip(rows.tolist(), urls, strict=True)]
        return known, end if end < frontier.index.rows else None

    async def dump_links(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownPage], int | None]:
        frontier = self.frontier(crawl)
        end = min(cursor + limit, frontier.index.rows)
        table = frontier.table[cursor:end]
        rows = cursor + np.flatnonzero((table["state"] < FREE) & (table["outs"] > 0))
        links = np.cumsum(frontier.table["outs"][rows])
        if len(rows) and links[-1] > LINKS_AT_ONCE:  # at least one page, whatever it has
            rows = rows[: max(1, int(np.searchsorted(links, LINKS_AT_ONCE, "right")))]
            end = int(rows[-1]) + 1
        pages = [KnownPage(frontier.urls.of(row), _known_links(frontier, row)) for row in rows.tolist()]
        return pages, end if end < frontier.index.rows else None

    async def adopt(self, crawl: Crawl, ids: U64, hosts: Sequence[str], urls: Sequence[KnownUrl], at: float) -> int:
        self.before_change(at)
        frontier = self.frontier(crawl)
        rows, new = frontier.claim(ids, texts(record.url for record in urls), texts(hosts), at)
        for number in np.flatnonzero(new).tolist():
            _adopt_url(frontier, int(rows[number]), urls[number])
        count = int(new.sum())
        frontier.counts["discovered"] += count
        return count

    async def adopt_links(self, crawl: Crawl, page: int, children: U64, links: Sequence[KnownLink], at: float) -> None:
        """The evidence that the links give came with the URLs."""
        self.before_change(at)
        frontier = self.frontier(crawl)
        rows = frontier.index.find(np.append(children, np.uint64(page)))
        known = np.flatnonzero(rows[:-1] >= 0)
        if rows[-1] < 0 or not len(known) or frontier.table["outs"][rows[-1]]:
            return
        some = [links[number] for number in known.tolist()]
        position, anchors = np.array([link.position for link in some], np.int32), [link.anchor for link in some]
        write_links(frontier, int(rows[-1]), rows[known], children[known], position, anchors)
        frontier.dirty.rows(rows[known])


def _known_url(frontier: Frontier, row: int, url: str) -> KnownUrl:
    taken = frontier.table[row]
    state = int(taken["state"])
    numbers = {name: None if np.isnan(taken[name]) else float(taken[name]) for name in NUMBERS}
    counts = {name: int(taken[name]) for name in COUNTS}
    metadata = frontier.metadata(np.array([row]))[0]
    return KnownUrl(
        url=url,
        state=cast("State", STATES[QUEUED if state == LEASED else state]),
        reason=frontier.reasons[int(taken["reason"])] if state == DROPPED else None,
        metadata=None if metadata is None else msgspec.json.decode(metadata),
        **numbers,  # type: ignore[arg-type]
        **counts,
    )


def _adopt_url(frontier: Frontier, row: int, record: KnownUrl) -> None:
    table, here = frontier.table, np.array([row])
    for name in (*NUMBERS, *COUNTS):
        value = getattr(record, name)
        if value is not None and name != "due":
            table[name][row] = value
    if record.metadata is not None:
        frontier.add_metadata(row, msgspec.json.encode(record.metadata))
    if record.state == STATES[DROPPED]:
        frontier.drop(here, _reason(frontier, record))
        return
    if record.state == STATES[DONE]:
        frontier.move(here, DONE)
        _count_page(frontier, row, record)
    if record.due is not None:
        frontier.move(here, DONE if record.state == STATES[DONE] else QUEUED)
        frontier.postpone(here, np.array([record.due]))
    elif record.state == STATES[QUEUED]:
        frontier.enqueue(here)


def _reason(frontier: Frontier, record: KnownUrl) -> str:
    """A crawl has room for so many reasons; beyond, it is only known to be imported."""
    full = len(frontier.reasons) >= MOST_REASONS and record.reason not in frontier.reasons
    return "import" if full or record.reason is None else record.reason


def _count_page(frontier: Frontier, row: int, record: KnownUrl) -> None:
    """A page that was fetched elsewhere counts for its host and its domain as if it had been fetched here."""
    hosts, host = frontier.hosts, int(frontier.table["host"][row])
    failed = record.status == 0 or is_failure(record.status)
    hosts.rows["failures" if failed else "pages"][host] += 1
    if not failed:
        frontier.table["counted"][row] = 1
        hosts.domain_pages[hosts.rows["domain"][host]] += 1
    if record.relevance is not None:
        hosts.rows["judged"][host] += 1
        hosts.rows["relevance_sum"][host] += record.relevance
    frontier.counts.update({"fetches": 1, "failed": int(failed), "relevant": int((record.relevance or 0.0) >= 0.5)})


def _known_links(frontier: Frontier, row: int) -> list[KnownLink]:
    paths = frontier.links.children(frontier.id_of(row))
    rows = frontier.index.find(paths.child)
    paths, rows = paths.take(rows >= 0), rows[rows >= 0]
    columns = (frontier.urls.take(rows).tolist(), paths.anchor.tolist(), paths.position.tolist())
    return list(map(KnownLink, *columns))
