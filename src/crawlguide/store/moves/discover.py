"""What a link says about where it leads, added to the row of its target, and what becomes of that row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, i32s, i64s, kernel, nothing, one_i64, part, records, u8s, u64s
from crawlguide.core.types import Discovery
from crawlguide.store.columns import DEEPEST
from crawlguide.store.tables.links import NO_LINKS, LinkRun
from crawlguide.store.tables.rows import DROPPED, FREE, QUEUED, ROW

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, U8, Mask
    from crawlguide.core.types import Fetches, Links
    from crawlguide.store.frontier import Frontier

NOTHING, WAITS, REFUSED, BACK = 0, 1, 2, 3  # what becomes of a link's target
UNKNOWN_RELEVANCE = 0.5


@part
def tighter(a, b):  # type: ignore[no-untyped-def]
    """Of two bounds on depth, of which -1 is none."""
    return max(a, b) if a < 0 or b < 0 else min(a, b)


@part
def looser(a, b):  # type: ignore[no-untyped-def]
    return -1 if a < 0 or b < 0 else max(a, b)


@part
def count_link(row, relevance, depth):  # type: ignore[no-untyped-def]
    row.depth = min(row.depth, depth)
    row.parents += 1
    row.parent_sum += relevance
    row.parent_best = max(row.parent_best, relevance)


@kernel(one_i64(i64s, i64s, i64s, f64s, f64s, i32s, u8s, one_i64, i64s, u8s, one_i64, records(ROW), u8s, u8s))
def add(  # type: ignore[no-untyped-def]
    rows, page, page_rows, page_relevance, given, max_depth, refused, deepest, fresh, known, stamp, table, kept, fate
):
    """Count each link once per page; a page's links stand together, so one stamp per page is enough.

    `page` numbers the pages of this tell; -1 is a seed, which counts as one page of relevance 1 if nothing else leads
    there. `known` marks links that their page had when it was fetched before: nothing new. `kept` receives a mark for
    the first of equal links on a page, `fate` what the link alone asks for. Of several ways to a URL the one with the
    loosest bound on depth counts. Returns the last stamp used.
    """
    last = -2
    for number in range(len(rows)):
        row, mine = rows[number], page[number]
        if mine != last or mine < 0:
            last = mine
            stamp += 1
        depth, bound, relevance = 0, min(max_depth[number], DEEPEST), 1.0
        if mine >= 0:
            parent = table[page_rows[mine]]
            depth, bound = min(parent.depth + 1, DEEPEST), tighter(bound, parent.max_depth)
            relevance = UNKNOWN_RELEVANCE if np.isnan(page_relevance[mine]) else page_relevance[mine]
        table[row].max_depth = bound if fresh[number] else looser(table[row].max_depth, bound)
        if not np.isnan(given[number]):
            table[row].given = given[number]
        too_deep = (0 <= bound < depth) or (0 <= deepest < depth)
        fate[number] = REFUSED if refused[number] or too_deep else WAITS
        if table[row].stamp == stamp:
            continue
        table[row].stamp = stamp
        kept[number] = 1
        if known[number] or (mine < 0 and table[row].parents > 0):
            table[row].depth = min(table[row].depth, depth)
        else:
            count_link(table[row], relevance, depth)
    return stamp


@kernel(nothing(i64s, records(ROW), u8s))
def settle(rows, table, fate):  # type: ignore[no-untyped-def]
    """What becomes of each target, all its links heard: a new row waits if one of them is permitted.

    Until a strategy ranks it, a row rests at the priority given by hand, else at its parents' mean relevance.
    """
    for number in range(len(rows)):
        row = table[rows[number]]
        if fate[number] == WAITS and row.state == FREE:
            row.state = QUEUED
            row.priority = row.parent_sum / max(row.parents, 1) if np.isnan(row.given) else row.given
        elif fate[number] == WAITS:
            fate[number] = BACK if row.state == DROPPED else NOTHING
    for number in range(len(rows)):
        if fate[number] == REFUSED and table[rows[number]].state != FREE:
            fate[number] = NOTHING


@kernel(nothing(i64s, u64s, u64s, records(ROW)))
def chain(rows, pages, next_in, table):  # type: ignore[no-untyped-def]
    """Hang links of these pages before those that lead to the same rows already."""
    for number in range(len(rows)):
        next_in[number] = table[rows[number]].newest_in
        table[rows[number]].newest_in = pages[number]


# How links become rows: new URLs get a place in their queue, known ones gain evidence.

OUT_OF_SCOPE = "scope"
PASSING = (OUT_OF_SCOPE, "banned", "traps", "risk", "robots", "rules")  # reasons that may cease to hold


def discover(frontier: Frontier, links: Links, parents: Fetches | None, at: float) -> Discovery:
    page_rows, relevance = pages(frontier, parents)
    links = on_known_pages(links, page_rows)
    if not len(links):
        return Discovery(0, links.id, links.id)
    rows, fresh = frontier.claim(links.id, links.url, links.host, at)
    kept, fate = np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.uint8)
    refused = np.array([reason is not None for reason in links.reason], np.uint8)
    known = known_pairs(frontier, rows, links, page_rows)
    frontier.stamp = add(
        rows, links.parent, page_rows, relevance, links.manual_priority, links.max_depth, refused, links.deepest, fresh,
        known, frontier.stamp, frontier.table, kept, fate,
    )  # fmt: skip
    settle(rows, frontier.table, fate)
    frontier.changes.rows(rows)
    add_links(frontier, rows, links, page_rows, kept & fresh_pages(links, known))
    keep_metadata(frontier, rows, links)
    sort_out(frontier, rows, links, fate)
    new = int(np.count_nonzero(fresh))
    frontier.counts["discovered"] += new
    return Discovery(new, links.id, links.id[fresh != 0])


def pages(frontier: Frontier, parents: Fetches | None) -> tuple[I64, F64]:
    """The rows of the pages that links stand on, and how relevant `record` found those pages."""
    if parents is None:
        return np.zeros(0, np.int64), np.zeros(0)
    rows = frontier.index.find(parents.target_id)
    if (rows < 0).any():  # a redirect that failed led nowhere: its links stand on the page that was asked for
        rows = np.where(rows < 0, frontier.index.find(parents.id), rows)
    return rows, frontier.table["relevance"][rows]


def on_known_pages(links: Links, page_rows: I64) -> Links:
    """Seeds, and links of pages that have a row; two fetches of one page count as one page."""
    rows = page_rows.tolist()
    if len(set(rows)) == len(rows) and -1 not in rows:  # as always, but for redirects
        return links
    first = np.array([rows.index(row) for row in rows], np.int64)
    parent = np.where(links.parent >= 0, first[links.parent], -1)
    order = np.argsort(parent, kind="stable")  # a page's links stand together
    links = links.attach(parent=parent).take(order)
    return links.take((links.parent < 0) | (page_rows[links.parent] >= 0))


def fresh_pages(links: Links, known: U8) -> U8:
    """1 for every link of a page that has a link it did not have before: then its whole run is written anew."""
    if not np.count_nonzero(known):
        return np.ones(len(known), np.uint8)
    pages = np.unique(links.parent[known == 0])
    return np.isin(links.parent, pages).astype(np.uint8)


def known_pairs(frontier: Frontier, rows: I64, links: Links, page_rows: I64) -> U8:
    """Links that their page already had when it was fetched before."""
    known = np.zeros(len(links), np.uint8)
    for page in np.flatnonzero(frontier.table["outs"][page_rows] > 0).tolist():
        mine = links.parent == page
        known[mine] = np.isin(rows[mine], frontier.children(int(page_rows[page])))
    return known


def add_links(frontier: Frontier, rows: I64, links: Links, page_rows: I64, kept: U8) -> None:
    """Keep the links of pages, each once, in the link table, as long as there is room."""
    some = np.flatnonzero(kept & (links.parent >= 0))
    if not len(some) or frontier.links_kept + len(some) > frontier.quota.links:
        return
    parent = links.parent[some]
    ends = [*(np.flatnonzero(np.diff(parent)) + 1).tolist(), len(some)]
    for start, end in zip([0, *ends], ends, strict=False):  # a page's links stand together
        mine = some[start:end]
        anchors = links.anchor[mine].tolist()
        run = LinkRun(
            len(mine), frontier.sequence, links.id[mine], np.empty(len(mine), np.uint64), links.position[mine], anchors
        )
        write_run(frontier, int(page_rows[parent[start]]), rows[mine], run)


def write_run(frontier: Frontier, page_row: int, rows: I64, run: LinkRun) -> None:
    """Hang a page's links into the chains of their targets; links it held before keep their place there."""
    page, outs = frontier.id_of(page_row), int(frontier.table["outs"][page_row])
    old = in_chains(frontier, frontier.links.run(page)) if outs else NO_LINKS
    new = ~np.isin(run.child, old.child) if outs else np.ones(len(rows), np.bool_)
    next_in = np.empty(int(new.sum()), np.uint64)
    chain(rows[new], np.full(len(next_in), page, np.uint64), next_in, frontier.table)
    run.next_in[new] = next_in
    if outs:
        run = kept_in_chains(run, old, new)
    frontier.links.write(page, run)
    frontier.links_kept += run.live - outs
    frontier.table["outs"][page_row] = run.live
    frontier.changes.row(page_row)


def in_chains(frontier: Frontier, run: LinkRun) -> LinkRun:
    """Without links whose target was forgotten since, whether it came back or not."""
    here = np.flatnonzero(frontier.rows_in(run) >= 0)
    anchors = [run.anchors[number] for number in here.tolist()]
    return LinkRun(0, run.sequence, run.child[here], run.next_in[here], run.position[here], anchors)


def kept_in_chains(run: LinkRun, old: LinkRun, new: Mask) -> LinkRun:
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


def keep_metadata(frontier: Frontier, rows: I64, links: Links) -> None:
    """What came along with a link is handed back when its target is assigned; the first who gives some wins."""
    for row, metadata in zip(rows.tolist(), links.metadata.tolist(), strict=True):
        if metadata is not None:
            frontier.note(row, metadata)


def sort_out(frontier: Frontier, rows: I64, links: Links, fate: U8) -> None:
    """Queue what is new and permitted, drop what is new and not, let in what was refused and no longer is."""
    waits = rows[fate == WAITS]
    if len(waits):
        frontier.start(waits)
    for number in np.flatnonzero(fate == REFUSED):
        row = rows[number : number + 1]
        if frontier.table["state"][row[0]] == FREE:
            frontier.drop(row, links.reason[number] or OUT_OF_SCOPE)
    back = rows[fate == BACK]
    if len(back):
        back = np.unique(back)
        frontier.revive(back[may_return(frontier, back)], links.deepest)


def may_return(frontier: Frontier, rows: I64) -> Mask:
    """Dropped for a reason that may cease to hold."""
    numbers = [number for number, reason in enumerate(frontier.reasons) if reason in PASSING]
    dropped: Mask = (frontier.table["state"][rows] == DROPPED) & np.isin(frontier.table["reason"][rows], numbers)
    return dropped
