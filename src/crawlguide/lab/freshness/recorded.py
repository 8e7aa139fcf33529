"""Histories of real changes, from Parquet or NDJSON files, prepared so that they show what a crawler could see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import Meta
from pyarrow import ArrowException, parquet

from crawlguide.core.errors import ConfigError, DataError
from crawlguide.lab.freshness.histories import Histories, from_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.tables import F64, Mask

MECHANICAL = 100  # files that one edit touches; more are no edit of these pages
BURST_S = 3_600  # edits that follow each other so closely are one change, which is there when the last is made
DAY_S = 86_400
COLUMNS = ("repo", "url", "ts", "op", "bulk", "importance")


class Line(msgspec.Struct, forbid_unknown_fields=False, kw_only=True):
    """A page, or a part of its history: several lines may tell of one URL."""

    url: Annotated[str, Meta(min_length=1)]
    ts: list[float]  # unix seconds of what happened, rising; the first is when the page appeared
    repo: str = ""  # which web it is of; each is replayed alone
    op: str = ""  # a letter for each: A appeared, M changed, D went; without it all but the first are changes
    bulk: list[int] | None = None  # how many pages were edited together, for each
    importance: Annotated[float, Meta(gt=0)] = 1.0


class Page(msgspec.Struct):
    """One URL: when things happened to it, as unix seconds."""

    url: str
    importance: float
    born: float
    gone: float
    changes: F64


def recorded(path: Path, days: int) -> list[Histories]:
    """The last days of every web in a file."""
    by_web: dict[str, dict[str, list[Line]]] = {}
    for line in _lines(path):
        by_web.setdefault(line.repo, {}).setdefault(line.url, []).append(line)
    made = [_histories(web or path.stem, parts, days) for web, parts in sorted(by_web.items())]
    if not made:
        raise DataError(f"{path}: expected a line for each page, got none")
    return made


def _lines(path: Path) -> Iterator[Line]:
    if not path.is_file():
        raise ConfigError(f"--histories: expected a file, got {path}")
    rows = _parquet(path) if path.suffix == ".parquet" else _ndjson(path)
    for number, row in enumerate(rows, 1):
        yield _checked(row, f"{path}: line {number}")


def _parquet(path: Path) -> Iterator[Line]:
    try:
        file = parquet.ParquetFile(path)
        present = [name for name in COLUMNS if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=present):
            yield from msgspec.convert(batch.to_pylist(), list[Line])
    except (ArrowException, msgspec.ValidationError) as problem:
        raise DataError(f"{path}: expected histories: {problem}") from None


def _ndjson(path: Path) -> Iterator[Line]:
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                try:
                    yield msgspec.json.decode(text, type=Line)
                except msgspec.DecodeError as problem:
                    raise DataError(f"{path}: line {number}: {problem}") from None


def _checked(line: Line, where: str) -> Line:
    for name, column in (("op", line.op), ("bulk", line.bulk)):
        if column and len(column) != len(line.ts):
            raise DataError(f"{where}: {name}: expected {len(line.ts)} as in ts, got {len(column)}")
    if odd := set(line.op) - set("AMD"):
        raise DataError(f"{where}: op: expected letters of AMD, got {min(odd)!r}")
    if not line.ts:
        raise DataError(f"{where}: ts: expected at least the time when the page appeared, got none")
    return line


def _histories(name: str, parts: dict[str, list[Line]], days: int) -> Histories:
    pages = [_page(url, lines) for url, lines in parts.items()]
    end = max(max(page.born, *page.changes) if len(page.changes) else page.born for page in pages)
    start = end - days * DAY_S
    there = [page for page in pages if page.gone > start and page.born < end]
    changes = [page.changes[(page.changes > max(start, page.born)) & (page.changes < end)] for page in there]
    numbers = np.repeat(np.arange(len(there)), [len(one) for one in changes])
    first, at = from_events(numbers, (np.concatenate([[], *changes]) - start) / DAY_S, len(there))
    gone = np.array([page.gone for page in there])
    return Histories(
        name=name, urls=[page.url for page in there], importance=np.array([page.importance for page in there]),
        born=np.maximum((np.array([page.born for page in there]) - start) / DAY_S, 0.0),
        gone=np.where(gone < end, (gone - start) / DAY_S, np.inf), first=first, at=at, days=days,
    )  # fmt: skip


def _page(url: str, lines: list[Line]) -> Page:
    """All parts of one URL by time. That a page goes and comes at once, as when its file is renamed, is a change."""
    at = np.concatenate([np.asarray(line.ts, np.float64) for line in lines])
    letters = "".join(line.op or "A" + "M" * (len(line.ts) - 1) for line in lines)
    op = np.array(list(letters))
    together = np.concatenate([np.asarray(line.bulk or [1] * len(line.ts)) for line in lines])
    order = np.lexsort((op != "D", at))  # what goes and comes in one moment is there afterwards
    at, op, together = at[order], op[order], together[order]
    own = together <= MECHANICAL
    gone = float(at[-1]) if op[-1] == "D" else np.inf
    changes = settled(at[own & (at > at[0])])
    if np.isfinite(gone):
        changes = np.append(changes[changes < gone], gone)
    importance = max(line.importance for line in lines)
    return Page(url, importance, float(at[0]), gone, changes)


def settled(at: F64) -> F64:
    """The last moment of every burst."""
    ends: Mask = np.append(np.diff(at) > BURST_S, True)[: len(at)]
    return at[ends]
