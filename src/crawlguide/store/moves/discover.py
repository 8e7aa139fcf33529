"""Discover: links become rows. A new URL is queued or dropped, a known one gains evidence, and the links are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import f64s, i32s, i64s, kernel, named_tuple, nothing, one_i64, part, records, u8s, u64s
from crawlguide.core.types import Discovery
from crawlguide.store.crawls import Crawls
from crawlguide.store.frontier import DEEPEST
from crawlguide.store.tables.links import NO_LINKS, LinkRun
from crawlguide.store.tables.rows import DROPPED, FREE, QUEUED, ROW

if TYPE_CHECKING:
    from crawlguide.core.tables import I32, I64, U8, U64, Mask, Text
    from crawlguide.core.types import Crawl, Fetches, Links
    from crawlguide.store.frontier import Frontier

NOTHING, QUEUE, DROP, REVIVE = 0, 1, 2, 3  # what is to be done with a link's target
UNKNOWN_RELEVANCE = 0.5
OUT_OF_SCOPE = "scope"


class LinkColumns(NamedTuple):
    row: np.ndarray[Any, Any]  # of the link's target
    page: np.ndarray[Any, Any]  # which of the pages of this tell it stands on, -1 for a seed
    manual_priority: np.ndarray[Any, Any]
    max_depth: np.ndarray[Any, Any]
    refused: np.ndarray[Any, Any]
    new: np.ndarray[Any, Any]  # its target was unknown
    repeated: np.ndarray[Any, Any]  # its page had it when it was fetched before


class PageColumns(NamedTuple):
    row: np.ndarray[Any, Any]
    relevance: np.ndarray[Any, Any]


LINKS = named_tuple(LinkColumns, i64s, i64s, f64s, i32s, u8s, i64s, u8s)
PAGES = named_tuple(PageColumns, i64s, f64s)


class Discovering(Crawls):
    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        self.before_change(at)
        frontier = self.frontier(crawl)
        pages = _pages(frontier, parents)
        links = _on_known_pages(links, pages.row)
        if not len(links):
            return Discovery(0, links.id, links.id)
        rows, new = frontier.claim(links.id, links.url, links.host, at)
        repeated = _repeated(frontier, rows, links, pages.row)
        first, action = _count(frontier, rows, new, repeated, links, pages)
        _keep_links(frontier, rows, links, pages.row, first & _on_changed_pages(links, repeated))
        _keep_metadata(frontier, rows, links)
        _settle(frontier, rows, links, action)
        frontier.counts["discovered"] += int(np.count_nonzero(new))
        return Discovery(int(np.count_nonzero(new)), links.id, links.id[new != 0])


# evidence


def _pages(frontier: Frontier, parents: Fetches | None) -> PageColumns:
    """The rows of the pages that links stand on, and how relevant `record` found those pages."""
    if parents is None:
        return PageColumns(np.zeros(0, np.int64), np.zeros(0))
    rows = frontier.index.find(parents.target_id)
    if (rows < 0).any():  # a redirect that failed led nowhere: its links stand on the page that was asked for
        rows = np.where(rows < 0, frontier.index.find(parents.id), rows)
    return PageColumns(rows, frontier.table["relevance"][rows])


def _on_known_pages(links: Links, page_rows: I64) -> Links:
    """Seeds, and links of pages that have a row; two fetches of one page count as one page."""
    rows = page_rows.tolist()
    if len(set(rows)) == len(rows) and -1 not in rows:  # as always, but for redirects
        return links
    first = np.array([rows.index(row) for row in rows], np.int64)
    parent = np.where(links.parent >= 0, first[links.parent], -1)
    order = np.argsort(parent, kind="stable")  # a page's links stand together
    links = links.attach(parent=parent).take(order)
    return links.take((links.parent < 0) | (page_rows[links.parent] >= 0))


def _repeated(frontier: Frontier, rows: I64, links: Links, page_rows: I64) -> U8:
    """Marks links that their page had when it was fetched before."""
    repeated = np.zeros(len(links), np.uint8)
    for page in np.flatnonzero(frontier.table["outs"][page_rows] > 0).tolist():
        mine = links.parent == page
        repeated[mine] = np.isin(rows[mine], frontier.children(int(page_rows[page])))
    return repeated


def _count(frontier: Frontier, rows: I64, new: I64, repeated: U8, links: Links, pages: PageColumns) -> tuple[U8, U8]:
    """Add the evidence of the links to their targets; marks the first of equal links, and what is to be done."""
    first, action = np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.uint8)
    refused = np.array([reason is not None for reason in links.reason], np.uint8)
    columns = LinkColumns(rows, links.parent, links.manual_priority, links.max_depth, refused, new, repeated)
    frontier.stamp = count_links(columns, pages, links.deepest, frontier.stamp, frontier.table, first, action)
    decide(rows, frontier.table, action)
    frontier.dirty.rows(rows)
    return first, action


# the link table


def _on_changed_pages(links: Links, repeated: U8) -> U8:
    """Marks every link of a page that has a link it did not have before: then its whole run is written anew."""
    if not np.count_nonzero(repeated):
        return np.ones(len(repeated), np.uint8)
    pages = np.unique(links.parent[repeated == 0])
    return np.isin(links.parent, pages).astype(np.uint8)


def _keep_links(frontier: Frontier, rows: I64, links: Links, page_rows: I64, marked: U8) -> None:
    """Keep the marked links of pages in the link table, as long as there is room."""
    some = np.flatnonzero(marked & (links.parent >= 0))
    if not len(some) or frontier.links_kept + len(some) > frontier.quota.links:
        return
    parent = links.parent[some]
    ends = [*(np.flatnonzero(np.diff(parent)) + 1).tolist(), len(some)]
    for start, end in zip([0, *ends], ends, strict=False):  # a page's links stand together
        mine = some[start:end]
        page, anchors = int(page_rows[parent[start]]), links.anchor[mine].tolist()
        write_links(frontier, page, rows[mine], links.id[mine], links.position[mine], anchors)


def write_links(frontier: Frontier, page_row: int, rows: I64, ids: U64, position: I32, anchors: list[str]) -> None:
    """Hang a page's links into the chains of their targets; links it held before keep their place there."""
    page, outs = frontier.id_of(page_row), int(frontier.table["outs"][page_row])
    run = LinkRun(len(ids), frontier.sequence, ids, np.empty(len(ids), np.uint64), position, anchors)
    old = _in_chains(frontier, frontier.links.run(page)) if outs else NO_LINKS
    new = ~np.isin(run.child, old.child) if outs else np.ones(len(rows), np.bool_)
    next_in = np.empty(int(new.sum()), np.uint64)
    chain(rows[new], np.full(len(next_in), page, np.uint64), next_in, frontier.table)
    run.next_in[new] = next_in
    if outs:
        run = _merged(run, old, new)
    frontier.links.write(page, run)
    frontier.links_kept += run.live - outs
    frontier.table["outs"][page_row] = run.live
    frontier.dirty.row(page_row)


def _in_chains(frontier: Frontier, run: LinkRun) -> LinkRun:
    """Without links whose target was forgotten since, whether it came back or not."""
    here = np.flatnonzero(frontier.rows_in(run) >= 0)
    anchors = [run.anchors[number] for number in here.tolist()]
    return LinkRun(0, run.sequence, run.child[here], run.next_in[here], run.position[here], anchors)


def _merged(run: LinkRun, old: LinkRun, new: Mask) -> LinkRun:
    """The links of a page seen again; those it lost stay behind, since chains lead through them."""
    order = np.argsort(old.child)
    places = order[np.searchsorted(old.child, run.child[~new], sorter=order)]
    run.next_in[~new] = old.next_in[places]
    lost = np.flatnonzero(~np.isin(old.child, run.child)).tolist()
    return LinkRun(
        run.live,
        run.sequence,
        np.concatenate([run.child, old.child[lost]]),
        np.concatenate([run.next_in, old.next_in[lost]]),
        np.concatenate([run.position, old.position[lost]]),
        run.anchors + [old.anchors[number] for number in lost],
    )


# the targets


def _keep_metadata(frontier: Frontier, rows: I64, links: Links) -> None:
    """What came along with a link is handed out when its target is leased; the first wins."""
    for row, metadata in zip(rows.tolist(), links.metadata.tolist(), strict=True):
        if metadata is not None:
            frontier.add_metadata(row, metadata)


def _settle(frontier: Frontier, rows: I64, links: Links, action: U8) -> None:
    """Queue what is new and permitted, drop what is new and not, let in what was refused and no longer is."""
    queued = rows[action == QUEUE]
    if len(queued):
        frontier.start(queued)
    _drop(frontier, rows[action == DROP], links.reason[action == DROP])
    revived = rows[action == REVIVE]
    if len(revived):
        revived = np.unique(revived)
        frontier.revive(revived[_may_return(frontier, revived, links.revivable)], links.deepest)


def _drop(frontier: Frontier, rows: I64, reasons: Text) -> None:
    """Each new row once, for the reason of the first link that leads to it."""
    new = frontier.table["state"][rows] == FREE
    rows, first = np.unique(rows[new], return_index=True)
    reasons = reasons[new][first]
    for reason in dict.fromkeys(reasons.tolist()):
        frontier.drop(rows[reasons == reason], reason or OUT_OF_SCOPE)


def _may_return(frontier: Frontier, rows: I64, revivable: frozenset[str]) -> Mask:
    """Dropped for a reason that may cease to hold, as a filter says of itself, or for its depth."""
    numbers = [number for number, reason in enumerate(frontier.reasons) if reason in revivable | {OUT_OF_SCOPE}]
    dropped: Mask = (frontier.table["state"][rows] == DROPPED) & np.isin(frontier.table["reason"][rows], numbers)
    return dropped


# kernels


@part
def tighter(a, b):  # type: ignore[no-untyped-def]
    """Of two bounds on depth, of which -1 is none."""
    return max(a, b) if a < 0 or b < 0 else min(a, b)


@part
def looser(a, b):  # type: ignore[no-untyped-def]
    return -1 if a < 0 or b < 0 else max(a, b)


@part
def add_parent(row, relevance, depth):  # type: ignore[no-untyped-def]
    row.depth = min(row.depth, depth)
    row.parents += 1
    row.parent_sum += relevance
    row.parent_best = max(row.parent_best, relevance)


@kernel(one_i64(LINKS, PAGES, one_i64, one_i64, records(ROW), u8s, u8s))
def count_links(links, pages, deepest, stamp, table, first, action):  # type: ignore[no-untyped-def]
    """Count each link once per page; a page's links stand together, so one stamp per page is enough.

    A seed counts as one page of relevance 1 if nothing else leads there. A repeated link is nothing new. Of several
    ways to a URL the one with the loosest bound on depth counts. `first` receives a mark for the first of equal links
    on a page, `action` what the link alone asks for. Returns the last stamp used.
    """
    last = -2
    for number in range(len(links.row)):
        row, page = links.row[number], links.page[number]
        if page != last or page < 0:
            last = page
            stamp += 1
        depth, bound, relevance = 0, min(links.max_depth[number], DEEPEST), 1.0
        if page >= 0:
            parent = table[pages.row[page]]
            depth, bound = min(parent.depth + 1, DEEPEST), tighter(bound, parent.max_depth)
            relevance = UNKNOWN_RELEVANCE if np.isnan(pages.relevance[page]) else pages.relevance[page]
        table[row].max_depth = bound if links.new[number] else looser(table[row].max_depth, bound)
        if not np.isnan(links.manual_priority[number]):
            table[row].given = links.manual_priority[number]
        too_deep = (0 <= bound < depth) or (0 <= deepest < depth)
        action[number] = DROP if links.refused[number] or too_deep else QUEUE
        if table[row].stamp == stamp:
            continue
        table[row].stamp = stamp
        first[number] = 1
        if links.repeated[number] or (page < 0 and table[row].parents > 0):
            table[row].depth = min(table[row].depth, depth)
        else:
            add_parent(table[row], relevance, depth)
    return stamp


@kernel(nothing(i64s, records(ROW), u8s))
def decide(rows, table, action):  # type: ignore[no-untyped-def]
    """What is to be done with each target, all its links counted: a new row is queued if one of them is permitted.

    Until a strategy ranks it, a row has its manual priority, else its parents' mean relevance.
    """
    for number in range(len(rows)):
        row = table[rows[number]]
        if action[number] == QUEUE and row.state == FREE:
            row.state = QUEUED
            row.priority = row.parent_sum / max(row.parents, 1) if np.isnan(row.given) else row.given
        elif action[number] == QUEUE:
            action[number] = REVIVE if row.state == DROPPED else NOTHING
    for number in range(len(rows)):
        if action[number] == DROP and table[rows[number]].state != FREE:
            action[number] = NOTHING


@kernel(nothing(i64s, u64s, u64s, records(ROW)))
def chain(rows, pages, next_in, table):  # type: ignore[no-untyped-def]
    """Hang links of these pages before those that lead to the same rows already."""
    for number in range(len(rows)):
        next_in[number] = table[rows[number]].newest_in
        table[rows[number]].newest_in = pages[number]
