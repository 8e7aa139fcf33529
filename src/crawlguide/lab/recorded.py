"""A recorded web: real pages with their links, in a folder of Parquet files.

    nodes.parquet      url, title, text, lang, size; a web made by `crawlguide lab build` adds status and redirect
    edges.parquet      src, dst (rows of nodes), anchor, pos; sorted by src
    external.parquet   src, url, anchor, pos: links to what the web does not hold; sorted by src
    tasks.json         what can be looked for, with seeds

Texts stay in Arrow's columns and are made into strings when a page is fetched, so a fetch costs as much as the page has
links, and a web of four million links opens in a second or two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import xxhash

from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.extras import installing
from crawlguide.core.urls import canonical
from crawlguide.lab.pages import Link, Page, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

TEXTS = ("title", "text", "lang")


class RecordedWeb:
    """A folder of Parquet files as a web."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.resolve().name
        self._folder = folder
        pages = folder / "nodes.parquet"
        nodes = _table(pages, ("url", *TEXTS, "size"))
        self._urls: list[str] = nodes["url"].to_pylist()
        self._canonical = [_canonical_url(url, row, pages) for row, url in enumerate(self._urls)]
        self._rows = {url: row for row, url in reversed(list(enumerate(self._canonical)))}
        self._texts = {name: _column(nodes, name) for name in TEXTS}
        self._size: list[int] = nodes["size"].to_pylist()
        self._status: list[int] = nodes["status"].to_pylist() if "status" in nodes.column_names else []
        self._redirect: list[str | None] = nodes["redirect"].to_pylist() if "redirect" in nodes.column_names else []
        self._inside = self._links("edges.parquet", "dst")
        self._outside = self._links("external.parquet", "url")
        self._tasks = read_tasks(folder / "tasks.json", self._canonical)

    def __len__(self) -> int:
        return len(self._urls)

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def fetch(self, url: str) -> Page:
        row = self._row(url)
        if row is None:
            return Page(url, 404)
        status = self._status[row] if self._status else 200
        target = self._redirect[row] if self._redirect else None
        if status != 200:
            return Page(url, status, redirected_to=target or None)
        title, text, language = (self._texts[name][row].as_py() or "" for name in TEXTS)
        return Page(
            url, status, title, text, self._size[row], language, self._links_of(row), content_hash=self._hash(row)
        )

    def is_relevant(self, task: Task, url: str) -> bool:
        row = self._row(url)
        return row is not None and self._canonical[row] in task.relevant

    def waste(self, url: str) -> str | None:
        row = self._row(url)
        if row is None:
            return "dead"
        status = self._status[row] if self._status else 200
        if status >= 400:
            return "dead" if status in {404, 410} else "error"
        return "duplicate" if row in self._duplicates else None

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        reached = np.zeros(len(self), bool)
        frontier = np.array([row for row in map(self._row, seeds) if row is not None], np.int64)
        while len(frontier):
            reached[frontier] = True
            inside = [self._inside.to[self._inside.of(row)] for row in frontier]
            following = np.concatenate([*inside, *self._returning_links(frontier)])
            frontier = np.unique(following[~reached[following]])
        return frozenset(self._canonical[row] for row in np.flatnonzero(reached))

    def link_targets(self, pages: Iterable[str], most: int) -> dict[str, tuple[str, ...]]:
        """Where the first `most` links of these pages lead within the web, in the order of the page: for references,
        which are shown all of it, so nothing but links is read."""
        rows = [self._rows[page] for page in pages]
        return {self._canonical[row]: self._link_targets_of(row, most) for row in rows}

    def _link_targets_of(self, row: int, most: int) -> tuple[str, ...]:
        near, far = self._inside.of(row), self._outside.of(row)
        is_page = not self._status or self._status[row] == 200
        if is_page and row not in self._returning and near.stop - near.start + far.stop - far.start <= most:
            order = np.argsort(self._inside.position[near], kind="stable")
            return tuple(dict.fromkeys(self._canonical[to] for to in self._inside.to[near][order].tolist()))
        page = self.fetch(self._canonical[row])  # the few that need a closer look
        urls = [link.url for link in page.links[:most]] + ([page.redirected_to] if page.redirected_to else [])
        return tuple(dict.fromkeys(self._canonical[to] for to in map(self._row, urls) if to is not None))

    def _row(self, url: str) -> int | None:
        row = self._rows.get(url)
        if row is not None:
            return row
        try:
            return self._rows.get(canonical(url))
        except UrlError:
            return None

    def _links_of(self, row: int) -> tuple[Link, ...]:
        """All links of a page, in the order of the page."""
        near, far = self._inside.of(row), self._outside.of(row)
        urls = [self._urls[to] for to in self._inside.to[near]] + self._outside.to[far].to_pylist()
        anchors = self._inside.anchor[near].to_pylist() + self._outside.anchor[far].to_pylist()
        places = self._inside.position[near].tolist() + self._outside.position[far].tolist()
        order = np.argsort(places, kind="stable").tolist()
        return tuple(Link(urls[at], anchors[at] or "", places[at]) for at in order)

    def _hash(self, row: int) -> str | None:
        """Of what the page shows; None where it shows no text, as such pages would all be the same."""
        title, text = self._texts["title"][row].as_py() or "", self._texts["text"][row].as_py()
        return xxhash.xxh3_64_hexdigest(f"{self._size[row]}\n{title}\n{text}".encode()) if text else None

    @cached_property
    def _duplicates(self) -> frozenset[int]:
        """Pages that show what a page before them shows."""
        seen: set[str] = set()
        duplicates: set[int] = set()
        for row in range(len(self)):
            content = self._hash(row)
            if content in seen:
                duplicates.add(row)
            elif content is not None:
                seen.add(content)
        return frozenset(duplicates)

    def _returning_links(self, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Where links that were recorded as outside ones lead back into the web, in another spelling maybe."""
        return [self._returning[row] for row in rows.tolist() if row in self._returning]

    @cached_property
    def _returning(self) -> dict[int, NDArray[np.int64]]:
        known = {url: row for url in self._outside.to.unique().to_pylist() if (row := self._row(url)) is not None}
        targets: dict[int, list[int]] = {}
        pages = np.searchsorted(self._outside.first, np.arange(len(self._outside.to)), side="right") - 1
        for page, url in zip(pages.tolist(), self._outside.to.to_pylist(), strict=True):
            if url in known:
                targets.setdefault(page, []).append(known[url])
        return {page: np.array(rows, np.int64) for page, rows in targets.items()}

    def _links(self, file: str, target: str) -> Links:
        """Both files of links are sorted by the page they lie on."""
        table = _table(self._folder / file, ("src", target, "anchor", "pos"))
        source = _numbers(table, "src", self._folder / file).astype(np.int64)
        if len(source) and (source.min() < 0 or source.max() >= len(self) or (np.diff(source) < 0).any()):
            raise ConfigError(f"{self._folder / file}: src: expected rows of nodes.parquet in ascending order")
        to = _column(table, target)
        if target == "dst":
            to = _numbers(table, target, self._folder / file)
            if len(to) and (to.min() < 0 or to.max() >= len(self)):
                raise ConfigError(f"{self._folder / file}: dst: expected rows of nodes.parquet, got {to.max()}")
        first = np.searchsorted(source, np.arange(len(self) + 1))
        position = _numbers(table, "pos", self._folder / file).astype(np.int32)
        return Links(first, to, _column(table, "anchor"), position)


@dataclass(frozen=True)
class Links:
    """The links of all pages: those of page `row` lie from `first[row]` to `first[row + 1]`."""

    first: NDArray[np.int64]
    to: Any  # the rows they lead to, or, outside, their URLs as Arrow's column
    anchor: Any
    position: NDArray[np.int32]

    def of(self, row: int) -> slice:
        return slice(int(self.first[row]), int(self.first[row + 1]))


class TaskEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One task as it lies in the file. Rows of `nodes.parquet` stand for pages; other fields are for people."""

    task: str
    topic: str
    relevant_ids: list[int]
    n_relevant: int = 0
    base_rate: float = 0.0
    n_hosts_relevant: int = 0
    seeds_portal_id: list[int] = []
    seeds_near_id: list[int] = []
    seeds_far_id: list[int] = []
    seeds_portal: list[str] = []
    seeds_near: list[str] = []
    seeds_far: list[str] = []


def read_tasks(file: Path, urls: Sequence[str]) -> list[Task]:
    """The tasks of a web whose pages are `urls`, row by row."""
    try:
        entries = msgspec.json.decode(file.read_bytes(), type=list[TaskEntry])
        return [_task(entry, urls) for entry in entries]
    except OSError as problem:
        raise ConfigError(f"{file}: cannot be read: {problem.strerror}") from None
    except msgspec.DecodeError as problem:
        raise ConfigError(f"{file}: expected a list of tasks: {problem}") from None
    except IndexError:
        raise ConfigError(f"{file}: expected rows of nodes.parquet, from 0 to {len(urls) - 1}, got another") from None


def _task(entry: TaskEntry, urls: Sequence[str]) -> Task:
    rows = {"portal": entry.seeds_portal_id, "near": entry.seeds_near_id, "far": entry.seeds_far_id}
    if min([*entry.relevant_ids, *chain(*rows.values())], default=0) < 0:
        raise IndexError  # Python would count from the end
    seeds = {kind: tuple(urls[row] for row in its) for kind, its in rows.items() if its}
    return Task(entry.topic, seeds, frozenset(urls[row] for row in entry.relevant_ids))


def _table(file: Path, columns: Sequence[str]) -> Any:
    """The columns of a file that are needed, or a clear word about what is not there."""
    if not file.is_file():
        raise ConfigError(
            f"{file.parent}: expected a recorded web, a folder with nodes.parquet, edges.parquet, external.parquet"
            f" and tasks.json; there is no {file.name}"
        )
    parquet = arrow("pyarrow.parquet")
    try:
        names = parquet.read_schema(file).names
        missing = [name for name in columns if name not in names]
        if missing:
            raise ConfigError(f"{file}: expected the columns {', '.join(columns)}; there is no {', '.join(missing)}")
        wanted = [*columns, *(name for name in ("status", "redirect") if name in names)]
        return parquet.read_table(file, columns=wanted)
    except arrow().ArrowInvalid as problem:
        raise ConfigError(f"{file}: expected a Parquet file: {problem}") from None


def _canonical_url(url: Any, row: int, file: Path) -> str:
    """The one spelling of a page's address; the file may hold anything."""
    try:
        return canonical(url)
    except (UrlError, TypeError, AttributeError) as problem:
        raise ConfigError(f"{file}: url: row {row}: expected a URL: {problem}") from None


def _numbers(table: Any, name: str, file: Path) -> NDArray[Any]:
    """A column of whole numbers; one without rows may be of any type."""
    column = table[name]
    if len(column) and (column.null_count or not arrow().types.is_integer(column.type)):
        raise ConfigError(f"{file}: {name}: expected whole numbers, got {column.type} with {column.null_count} nulls")
    numbers: NDArray[Any] = column.to_numpy()
    return numbers


def _column(table: Any, name: str) -> Any:
    """One unbroken column, so that taking a row is one step."""
    column = table[name].combine_chunks()
    return column.chunk(0) if hasattr(column, "chunk") and column.num_chunks == 1 else column


def arrow(part: str = "pyarrow") -> Any:
    """`pyarrow`, or a part of it such as `pyarrow.parquet`. A base install does without it."""
    try:
        return import_module(part)
    except ImportError:
        raise ConfigError(f"recorded webs need pyarrow, which is not installed: {installing('lab')}") from None
