"""What goes wrong with one crawl, or one file, and must not keep the others from their upkeep."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from crawlguide.core.errors import StorageFull, UnavailableError
from crawlguide.core.telemetry import ERROR, happened

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def contained(part: str) -> Iterator[None]:
    """A fault within is logged, and all else goes on. That the store cannot be used concerns all, and is raised."""
    try:
        yield
    except (StorageFull, UnavailableError):
        raise
    except Exception as fault:  # noqa: BLE001 - whatever it is, the others are to be served
        happened("task_failed", "upkeep of {part} failed: {problem}", ERROR, part=part, problem=repr(fault)[:200])
