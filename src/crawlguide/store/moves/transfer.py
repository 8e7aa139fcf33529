"""A crawl's URLs and links as plain records: what goes out of one store and into another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import msgspec
import numpy as np

from crawlguide.core.outcomes import is_failure
from crawlguide.core.types import KnownLink, KnownPage, KnownUrl
from crawlguide.store.moves.discover import write_run
from crawlguide.store.tables.links import LinkRun
from crawlguide.store.tables.rows import DONE, DROPPED, FREE, LEASED, QUEUED, STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import U64
    from crawlguide.store.frontier import Frontier

State = Literal["queued", "done", "dropped"]
NUMBERS = ("priority", "given", "relevance", "discovered", "fetched", "due", "parent_sum", "parent_best")
MOST_REASONS = 200  # of the 255 that a row can name
COUNTS = ("depth", "max_depth", "status", "tries", "parents")


def known_urls(frontier: Frontier, start: int, limit: int) -> tuple[list[KnownUrl], int | None]:
    """Up to `limit` URLs from row `start` on, and where to go on; None at the end."""
    end = min(start + limit, frontier.index.rows)
    rows = start + np.flatnonzero(frontier.table["state"][start:end] < FREE)
    texts = frontier.urls.take(rows)
    found = [_known(frontier, row, url) for row, url in zip(rows.tolist(), texts.tolist(), strict=True)]
    return found, end if end < frontier.index.rows else None


def _known(frontier: Frontier, row: int, url: str) -> KnownUrl:
    taken = frontier.table[row]
    state = int(taken["state"])
    numbers = {name: None if np.isnan(taken[name]) else float(taken[name]) for name in NUMBERS}
    counts = {name: int(taken[name]) for name in COUNTS}
    metadata = frontier.notes(np.array([row]))[0]
    return KnownUrl(
        url=url,
        state=cast("State", STATES[QUEUED if state == LEASED else state]),
        reason=frontier.reasons[int(taken["reason"])] if state == DROPPED else None,
        metadata=None if metadata is None else msgspec.json.decode(metadata),
        **numbers,  # type: ignore[arg-type]
        **counts,
    )


def adopt(frontier: Frontier, ids: U64, hosts: Sequence[str], urls: Sequence[KnownUrl], at: float) -> int:
    """Take over URLs as they were elsewhere; those known here already are left alone. Returns how many were new."""
    texts, names = np.array([known.url for known in urls], object), np.array(hosts, object)
    rows, fresh = frontier.claim(ids, texts, names, at)
    for row, known in [(row, known) for row, known, new in zip(rows.tolist(), urls, fresh, strict=True) if new]:
        _write(frontier, row, known)
    new = int(fresh.sum())
    frontier.counts["discovered"] += new
    return new


def _write(frontier: Frontier, row: int, known: KnownUrl) -> None:
    table, here = frontier.table, np.array([row])
    for name in (*NUMBERS, *COUNTS):
        value = getattr(known, name)
        if value is not None and name != "due":
            table[name][row] = value
    if known.metadata is not None:
        frontier.note(row, msgspec.json.encode(known.metadata))
    if known.state == STATES[DROPPED]:
        frontier.drop(here, _reason(frontier, known))
        return
    if known.state == STATES[DONE]:
        frontier.move(here, DONE)
        _count_page(frontier, row, known)
    if known.due is not None:
        frontier.move(here, DONE if known.state == STATES[DONE] else QUEUED)
        frontier.postpone(here, np.array([known.due]))
    elif known.state == STATES[QUEUED]:
        frontier.enqueue(here)


def _reason(frontier: Frontier, known: KnownUrl) -> str:
    """A crawl has room for so many reasons; beyond, it says only that it was told so."""
    full = len(frontier.reasons) >= MOST_REASONS and known.reason not in frontier.reasons
    return "import" if full or known.reason is None else known.reason


def _count_page(frontier: Frontier, row: int, known: KnownUrl) -> None:
    """A page that was fetched elsewhere counts for its host and its domain as if it had been fetched here."""
    hosts, host = frontier.hosts, int(frontier.table["host"][row])
    failed = known.status == 0 or is_failure(known.status)
    hosts.rows["failures" if failed else "pages"][host] += 1
    if not failed:
        frontier.table["counted"][row] = 1
        hosts.domain_pages[hosts.rows["domain"][host]] += 1
    if known.relevance is not None:
        hosts.rows["judged"][host] += 1
        hosts.rows["relevance_sum"][host] += known.relevance
    frontier.counts.update({"fetches": 1, "failed": int(failed), "relevant": int((known.relevance or 0.0) >= 0.5)})


def known_pages(frontier: Frontier, start: int, limit: int) -> tuple[list[KnownPage], int | None]:
    """The links of up to `limit` rows from `start` on, where their targets are known."""
    end = min(start + limit, frontier.index.rows)
    rows = start + np.flatnonzero((frontier.table["state"][start:end] < FREE) & (frontier.table["outs"][start:end] > 0))
    pages = [KnownPage(frontier.urls.of(row), _links(frontier, row)) for row in rows.tolist()]
    return pages, end if end < frontier.index.rows else None


def _links(frontier: Frontier, row: int) -> list[KnownLink]:
    paths = frontier.links.children(frontier.id_of(row))
    rows = frontier.index.find(paths.child)
    return [
        KnownLink(frontier.urls.of(child), anchor, position)
        for child, anchor, position in zip(rows.tolist(), paths.anchor, paths.position.tolist(), strict=True)
        if child >= 0
    ]


def adopt_links(frontier: Frontier, page: int, children: U64, links: Sequence[KnownLink]) -> None:
    """The links of a page, as they were elsewhere. What they say as evidence came with the URLs."""
    rows = frontier.index.find(np.append(children, np.uint64(page)))
    known = np.flatnonzero(rows[:-1] >= 0)
    if rows[-1] < 0 or not len(known) or frontier.table["outs"][rows[-1]]:
        return
    kept = [links[number] for number in known.tolist()]
    position, anchors = np.array([link.position for link in kept], np.int32), [link.anchor for link in kept]
    run = LinkRun(len(known), frontier.sequence, children[known], np.empty(len(known), np.uint64), position, anchors)
    write_run(frontier, int(rows[-1]), rows[known], run)
    frontier.changes.rows(rows[known])
