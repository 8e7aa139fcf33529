"""How links become rows: new URLs get a place in their queue, known ones gain evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.types import Discovery, rows_of
from crawlguide.store.kernels import evidence
from crawlguide.store.rows import DROPPED, FREE

if TYPE_CHECKING:
    from crawlguide.core.types import F64, I32, I64, U8, Fetches, Links, Mask
    from crawlguide.store.frontier import Frontier

UNKNOWN_RELEVANCE = 0.5
OUT_OF_SCOPE = "scope"


def discover(frontier: Frontier, links: Links, parents: Fetches | None, at: float) -> Discovery:
    if not len(links):
        return Discovery(0, links.id)
    from_rows = parent_rows(frontier, links, parents)
    rows, fresh = frontier.claim(links.id, links.url, links.host, at)
    depth, bound = depths(frontier, links, from_rows)
    kept = add_evidence(frontier, rows, links, from_rows, relevance(links, parents), depth)
    add_links(frontier, rows, links, from_rows, kept)
    note_wishes(frontier, rows, links, bound, fresh.astype(np.bool_))
    too_deep = ((bound >= 0) & (depth > bound)) | ((links.deepest >= 0) & (depth > links.deepest))
    sort_out(frontier, rows, links, too_deep | np.array([reason is not None for reason in links.reason]))
    new = int(fresh.sum())
    frontier.counts["discovered"] += new
    return Discovery(new, links.id)


def parent_rows(frontier: Frontier, links: Links, parents: Fetches | None) -> I64:
    """The row of the page each link stands on, -1 for a seed."""
    if parents is None or not len(parents):
        return np.full(len(links), -1, np.int64)
    rows = frontier.index.find(parents.target_id)
    return np.where(links.parent >= 0, rows[links.parent], -1)


def relevance(links: Links, parents: Fetches | None) -> F64:
    """Of the page each link stands on; whoever gives a seed counts as a relevant page."""
    if parents is None or not len(parents):
        return np.ones(len(links))
    told = parents.relevance[links.parent]
    known = np.where(np.isnan(told), UNKNOWN_RELEVANCE, told)
    return np.where(links.parent >= 0, known, 1.0)


def depths(frontier: Frontier, links: Links, from_rows: I64) -> tuple[I32, I32]:
    """How deep each link lies, and how deep it may lie: the tighter of its own bound and its parent's (-1: none)."""
    linked = from_rows >= 0
    depth = np.where(linked, frontier.table["depth"][from_rows] + 1, 0)
    inherited = np.where(linked, frontier.table["max_depth"][from_rows], -1)
    none = np.iinfo(np.int32).max
    bound = np.minimum(np.where(links.max_depth < 0, none, links.max_depth), np.where(inherited < 0, none, inherited))
    return depth.astype(np.int32), np.where(bound == none, -1, bound).astype(np.int32)


def add_evidence(frontier: Frontier, rows: I64, links: Links, from_rows: I64, told: F64, depth: I32) -> U8:
    """Count every page that leads to a row, once; returns which links to keep in the link table."""
    kept = np.zeros(len(rows), np.uint8)
    known = known_pairs(frontier, links, from_rows)
    pages = links.parent.astype(np.int32)
    frontier.stamp = evidence.add(rows, pages, told, depth, known, kept, frontier.stamp, frontier.table)
    return kept


def known_pairs(frontier: Frontier, links: Links, from_rows: I64) -> U8:
    """Links that their page already had when it was fetched before."""
    known = np.zeros(len(links), np.uint8)
    pages = np.unique(from_rows[from_rows >= 0])
    for row in pages[frontier.table["outs"][pages] > 0]:
        first, count = int(frontier.table["first_out"][row]), int(frontier.table["outs"][row])
        mine = from_rows == row
        known[mine] = np.isin(links.id[mine], frontier.links.child_ids(first, count))
    return known


def add_links(frontier: Frontier, rows: I64, links: Links, from_rows: I64, kept: U8) -> None:
    some = (from_rows >= 0) & (kept > 0)
    if not some.any():
        return
    from_rows, rows, links = from_rows[some], rows[some], links.take(some)
    first, table = len(frontier.links), frontier.table
    if not frontier.links.has_room(len(links)):
        frontier.counts["links_not_kept"] += len(links)
        return
    next_in = np.empty(len(links), np.int64)
    evidence.chain(rows, first, next_in, table)
    frontier.links.add(frontier.index.ids[from_rows], links.id, links.anchor, links.position, next_in)
    numbers = first + np.arange(len(links))
    starts = np.flatnonzero(np.diff(from_rows, prepend=-1))
    table["first_out"][from_rows[starts]] = numbers[starts]
    table["outs"][from_rows[starts]] = np.diff(starts, append=len(links))


def note_wishes(frontier: Frontier, rows: I64, links: Links, bound: I32, new: Mask) -> None:
    """What came along with a link: a priority set by hand, metadata to hand back, a bound on depth.

    Of several ways to a URL the one with the loosest bound counts.
    """
    given = ~np.isnan(links.given)
    frontier.table["given"][rows[given]] = links.given[given]
    known = np.where(new, bound, frontier.table["max_depth"][rows])
    frontier.table["max_depth"][rows] = np.where((known < 0) | (bound < 0), -1, np.maximum(known, bound))
    for number, metadata in enumerate(links.metadata):
        if metadata is not None:
            frontier.metadata.setdefault(int(rows[number]), metadata)


def sort_out(frontier: Frontier, rows: I64, links: Links, refused: Mask) -> None:
    """Drop what is new and not permitted; queue what is new, or was out of scope and no longer is."""
    state = frontier.table["state"][rows]
    for number in np.flatnonzero(refused & (state == FREE)):
        row = rows[number : number + 1]
        if frontier.table["state"][row[0]] == FREE:
            frontier.drop(row, links.reason[number] or OUT_OF_SCOPE)
    welcome = np.unique(rows[~refused & ((state == FREE) | (state == DROPPED))])
    free = frontier.table["state"][welcome] == FREE
    start(frontier, welcome[free])
    frontier.revive(welcome[~free & out_of_scope(frontier, welcome)], links.deepest)


def out_of_scope(frontier: Frontier, rows: I64) -> Mask:
    number = frontier.reasons.index(OUT_OF_SCOPE) if OUT_OF_SCOPE in frontier.reasons else -1
    dropped: Mask = (frontier.table["state"][rows] == DROPPED) & (frontier.table["reason"][rows] == number)
    return dropped


def start(frontier: Frontier, rows: I64) -> None:
    """Until a strategy ranks a row, it rests at the priority given by hand, else at its parents' mean relevance."""
    if not len(rows):
        return
    taken = rows_of(frontier.table, rows)
    mean = taken["parent_sum"] / np.maximum(taken["parents"], 1)
    frontier.table["priority"][rows] = np.where(np.isnan(taken["given"]), mean, taken["given"])
    frontier.enqueue(rows)
