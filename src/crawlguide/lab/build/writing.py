"""Writes a collection of pages as the folder that `lab.web.open` opens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.core.urls import canonical, queue
from crawlguide.lab.recorded import TaskEntry, arrow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from crawlguide.lab.build.html import SourcePage
    from crawlguide.lab.build.sources import Collection

TITLE, TEXT, ANCHOR = 300, 2_000, 120  # bytes that are kept
PORTAL, NEAR, FAR = 54, 3, 5


@dataclass(frozen=True)
class Links:
    """Links as columns; inside ones lead to a row, outside ones to a URL."""

    source: list[int]
    to: list[Any]
    anchor: list[str]
    position: list[int]
    kind: list[str]


@dataclass(frozen=True)
class Written:
    """What lies in the folder now."""

    pages: int
    links: int
    outside: int
    hosts: int
    tasks: dict[str, int]


def check(folder: Path) -> None:
    """The folder must be new or empty, and it must be possible to make it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: expected a new or an empty folder")
    there = next(place for place in (folder.resolve(), *folder.resolve().parents) if place.exists())
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        raise ConfigError(f"{folder}: expected a folder that can be made, but {there} cannot be written to")


def written(folder: Path, collection: Collection) -> Written:
    """Write the whole web."""
    try:
        return _written(folder, collection)
    except OSError as problem:
        raise CrawlGuideError(f"{folder}: the web cannot be written: {problem.strerror or problem}") from None


def _written(folder: Path, collection: Collection) -> Written:
    pages = list({page.url: page for page in reversed(collection.pages)}.values())[::-1]  # the first of each URL
    if not pages:
        raise ConfigError("expected pages, got none: there is nothing to make a web of")
    rows = {page.url: row for row, page in enumerate(pages)}
    inside, outside = _links(pages, rows)
    tasks = _tasks(collection, pages, rows, inside)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "nodes.parquet", _nodes(pages, inside, tasks))
    _write(folder / "edges.parquet", _columns(inside, "dst", arrow().int32()) | {"kind": inside.kind})
    _write(folder / "external.parquet", _columns(outside, "url", arrow().string()))
    (folder / "tasks.json").write_bytes(msgspec.json.encode(tasks))
    hosts = len({queue(page.url) for page in pages})
    counts = {"pages": len(pages), "edges": len(inside.to), "external_links": len(outside.to), "hosts": hosts}
    (folder / "meta.json").write_bytes(msgspec.json.encode({"name": folder.name, **counts, "homes": collection.homes}))
    return Written(len(pages), len(inside.to), len(outside.to), hosts, {task.topic: task.n_relevant for task in tasks})


def _links(pages: Sequence[SourcePage], rows: dict[str, int]) -> tuple[Links, Links]:
    """Of several links to one page the first counts; a page's links to itself do not."""
    inside, outside = (Links([], [], [], [], []) for _ in range(2))
    for source, page in enumerate(pages):
        seen = {page.url}
        for position, link in enumerate(page.links):
            if link.url in seen:
                continue
            seen.add(link.url)
            row = rows.get(link.url)
            its = outside if row is None else inside
            its.source.append(source)
            its.to.append(link.url if row is None else row)
            its.anchor.append(cut(link.anchor, ANCHOR))
            its.position.append(position)
            its.kind.append(link.kind)
    return inside, outside


def _nodes(pages: Sequence[SourcePage], inside: Links, tasks: Sequence[TaskEntry]) -> dict[str, Any]:
    count, types = len(pages), arrow()
    topics: list[list[str]] = [[] for _ in pages]
    for task in tasks:
        for row in task.relevant_ids:
            topics[row].append(task.topic)
    return {
        "id": np.arange(count, dtype=np.int32),
        "url": [page.url for page in pages],
        "host": [queue(page.url) for page in pages],
        "title": [cut(page.title, TITLE) for page in pages],
        "text": [cut(page.text, TEXT) for page in pages],
        "topics": types.array(topics, types.list_(types.string())),
        "lang": [page.language for page in pages],
        "size": np.array([page.size for page in pages], np.int32),
        "src_label": [page.label for page in pages],
        "n_in": _counted(inside.to, count),
        "n_out": _counted(inside.source, count),
        "status": np.array([page.status for page in pages], np.int16),
        "redirect": types.array([page.redirect for page in pages], types.string()),
    }


def _tasks(collection: Collection, pages: Sequence[SourcePage], rows: dict[str, int], inside: Links) -> list[TaskEntry]:
    """One for each topic that has a page. Only pages that were there can be relevant."""
    there = np.array([page.status == 200 for page in pages])
    known, leads = _counted(inside.to, len(pages)) * there, _counted(inside.source, len(pages)) * there
    portal = [rows[url] for url in dict.fromkeys(map(canonical, collection.homes)) if url in rows][:PORTAL]
    tasks = []
    for name, urls in collection.relevant.items():
        relevant = np.array(sorted(rows[url] for url in urls if url in rows and there[rows[url]]), np.int64)
        if len(relevant):
            others = leads.copy()
            others[relevant] = 0
            seeds = {
                "portal": portal,
                "near": _best(known, relevant, NEAR),
                "far": _best(others, np.flatnonzero(others), FAR),
            }
            tasks.append(_task(name, relevant, seeds, pages))
    return tasks


def _best(worth: NDArray[np.int32], rows: NDArray[np.int64], most: int) -> list[int]:
    best: list[int] = rows[np.argsort(-worth[rows], kind="stable")[:most]].tolist()
    return best


def _task(
    name: str, relevant: NDArray[np.int64], seeds: dict[str, list[int]], pages: Sequence[SourcePage]
) -> TaskEntry:
    urls = {kind: [pages[row].url for row in rows] for kind, rows in seeds.items()}
    return TaskEntry(
        task=name,
        topic=name,
        relevant_ids=relevant.tolist(),
        n_relevant=len(relevant),
        base_rate=round(len(relevant) / len(pages), 6),
        n_hosts_relevant=len({queue(pages[row].url) for row in relevant}),
        seeds_portal=urls["portal"],
        seeds_near=urls["near"],
        seeds_far=urls["far"],
        seeds_portal_id=seeds["portal"],
        seeds_near_id=seeds["near"],
        seeds_far_id=seeds["far"],
    )


def _counted(rows: list[int], count: int) -> NDArray[np.int32]:
    return np.bincount(np.array(rows, np.int64), minlength=count).astype(np.int32)


def _columns(links: Links, target: str, its_type: Any) -> dict[str, Any]:
    types = arrow()
    return {
        "src": np.array(links.source, np.int32),
        target: types.array(links.to, its_type),
        "anchor": types.array(links.anchor, types.string()),
        "pos": np.array(links.position, np.int32),
    }


def _write(file: Path, columns: dict[str, Any]) -> None:
    arrow("pyarrow.parquet").write_table(arrow().table(columns), file, compression="zstd")


def cut(text: str, most_bytes: int) -> str:
    """The beginning of a text, never half a letter."""
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")
