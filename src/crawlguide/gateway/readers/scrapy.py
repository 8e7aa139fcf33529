"""The requests that wait in a Scrapy JOBDIR, as Scrapy 2.19 leaves it (https://docs.scrapy.org/en/latest/topics/jobs.html).

    requests.queue/active.json               not needed: a queue that is empty is not there
    requests.queue/[slot-md5/]PRIORITY[s]    a disk queue each, of requests as pickled or marshalled dictionaries

PRIORITY is negated, so that the lowest is served first; `s` is for start requests; slots are for the downloader-aware
queue, which is Scrapy's default. Nothing in the folder is changed, and nothing in it is ever run.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlguide.core.errors import DataError
from crawlguide.core.messages import SeedMessage
from crawlguide.gateway.readers import Skipped, _marshalled, _pickled, usable
from crawlguide.gateway.readers._queues import Record, records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_QUEUE = re.compile(r"(-?[0-9]{1,15})s?")
_NOT_QUEUES = {"active.json"}


@dataclass(frozen=True)
class Queue:
    """One disk queue: its place, and the priority of all that is in it."""

    path: Path
    name: str
    priority: int


def read(path: Path) -> Iterator[SeedMessage | Skipped]:
    """Waiting GET requests as seeds, the best of each slot first. Raises `DataError` for a folder that is no JOBDIR.

    Scrapy's priorities have no bounds: where there is more than one, a seed's `priority` is the rank of its own among
    them, from 0 for the lowest to 1 for the highest. The names of the queues tell them, before any is opened.
    """
    folder = path / "requests.queue"
    if not folder.is_dir():
        raise DataError(f"{path}: expected a Scrapy JOBDIR with requests.queue in it, got none")
    try:
        ranks = _ranks(found.priority for found in _queues(folder) if isinstance(found, Queue))
    except OSError as wrong:
        raise DataError(f"{folder}: cannot be read: {wrong.strerror}") from wrong
    for found in _queues(folder):
        if isinstance(found, Queue):
            yield from _seeds(found, ranks.get(found.priority))
        else:
            yield found


def _ranks(priorities: Iterable[int]) -> dict[int, float]:
    distinct = sorted(set(priorities))
    return {priority: rank / (len(distinct) - 1) for rank, priority in enumerate(distinct) if len(distinct) > 1}


def _queues(folder: Path) -> Iterator[Queue | Skipped]:
    for entry in _listed(folder):
        if not entry.is_dir() or _QUEUE.fullmatch(entry.name):
            yield from _queue(entry, entry.name)
            continue
        try:
            for inner in _listed(folder / entry.name):
                yield from _queue(inner, f"{entry.name}/{inner.name}")
        except OSError as wrong:
            yield Skipped(_one_line(entry.name), f"cannot be read: {wrong.strerror}")


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """In the order in which Scrapy would serve queues, and otherwise by name."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=_order)


def _order(entry: os.DirEntry[str]) -> tuple[int, str]:
    queue = _QUEUE.fullmatch(entry.name)
    return int(queue[1]) if queue else 0, entry.name


def _queue(entry: os.DirEntry[str], name: str) -> Iterator[Queue | Skipped]:
    matched = _QUEUE.fullmatch(entry.name)
    if matched and (entry.is_file() or entry.is_dir()):
        yield Queue(Path(entry.path), _one_line(name), -int(matched[1]))
    elif entry.name not in _NOT_QUEUES:
        yield Skipped(_one_line(name), "expected a queue named after a priority, got something else")


def _one_line(name: str) -> str:
    """A file's name may hold anything, and this one will be printed."""
    return repr(name)[1:-1]


def _seeds(queue: Queue, rank: float | None) -> Iterator[SeedMessage | Skipped]:
    for record in records(queue.path, queue.name):
        yield _seed(record, queue.priority, rank) if isinstance(record, Record) else record


def _seed(record: Record, priority: int, rank: float | None) -> SeedMessage | Skipped:
    try:
        request = _request(record.content)
    except DataError as wrong:
        return Skipped(record.where, wrong.message)
    metadata: dict[str, Any] = {"scrapy_priority": priority}
    if isinstance(callback := request.get("callback"), str) and callback.isidentifier():
        metadata["callback"] = callback
    return usable(SeedMessage(request["url"], rank, metadata=metadata), record.where)


def _request(content: bytes) -> dict[str, Any]:
    """The request as `Request.to_dict` wrote it. Raises `DataError` for one that a URL alone does not tell."""
    request = _plain(content)
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        raise DataError("expected a request with a url, got other data")
    method, body = request.get("method", "GET"), request.get("body")
    if method != "GET":
        raise DataError(f"method: expected GET, got {_shown(method)}")
    if body:
        raise DataError("body: expected none, got one")
    return request


def _shown(method: object) -> str:
    """Only text is shown: nested lists that share their parts are small in a pickle, and without end in writing."""
    return repr(method[:40]) if isinstance(method, str) else f"a {type(method).__name__}"


def _plain(content: bytes) -> object:
    """A pickle starts with its protocol, a marshalled dictionary with a brace, its top bit set or not."""
    if content[:1] in {b"{", b"\xfb"}:
        return _marshalled.plain(content)
    return _pickled.plain(content)
