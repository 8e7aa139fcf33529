"""tasks.json: what can be looked for in a recorded web."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.errors import ConfigError
from crawlguide.lab.pages import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


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
