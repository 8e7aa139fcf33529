"""A crawl out of a file into a place: what the command `import` does.

No file is held whole, whatever its size. A batch that was taken is on stable storage, and taking it again changes
nothing: whoever was stopped in the middle begins again.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from crawlguide.gateway import batches
from crawlguide.gateway.readers import Skipped
from crawlguide.guide.transfer import Imported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from crawlguide.core.messages import SeedMessage
    from crawlguide.gateway.places import Place

REASONS = 10


@dataclass(frozen=True)
class Source:
    """What is imported, and as which crawl."""

    path: Path
    kind: str
    crawl: str


@dataclass
class Tally:
    """How far an import has come. Of the reasons only the first are kept."""

    read: int = 0
    new: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, done: Imported) -> None:
        self.read += done.lines + len(done.skipped)
        self.new += done.urls
        self.skipped += len(done.skipped)
        self.reasons += done.skipped[: REASONS - len(self.reasons)]

    def __str__(self) -> str:
        return f"{self.read} read, {self.new} new, {self.skipped} skipped"


def take(place: Place, source: Source, tally: Tally, heard: Callable[[Tally], None]) -> None:
    """Import, saying after each batch how far it has come. Ctrl-C ends it between two batches."""
    for step in _steps(place, source):
        with uninterrupted():
            tally.add(step())
        heard(tally)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C is heard when the block has ended; a second one, by somebody who will not wait, at once."""
    heard: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def _steps(place: Place, source: Source) -> Iterator[Callable[[], Imported]]:
    """Each batch as a step still to be done."""
    if source.kind != batches.LINES:
        for found in batches.seeds(source.path, source.kind, place.most_bytes):
            yield partial(_take_seeds, place, source.crawl, found)
        return
    first = 1
    for lines in batches.lines(source.path, place.most_bytes):
        yield partial(_take_lines, place, source.crawl, lines, first)
        first += len(lines)


def _take_lines(place: Place, crawl: str, batch: Sequence[bytes | Skipped], first: int) -> Imported:
    done = place.imported(crawl, [b"" if isinstance(one, Skipped) else one for one in batch], first)
    return replace(done, skipped=_reasons(batch) + done.skipped)


def _take_seeds(place: Place, crawl: str, batch: Sequence[SeedMessage | Skipped]) -> Imported:
    seeds = [one for one in batch if not isinstance(one, Skipped)]
    return Imported(len(seeds), place.seeded(crawl, seeds) if seeds else 0, _reasons(batch))


def _reasons(batch: Sequence[object]) -> tuple[str, ...]:
    return tuple(f"{one.where}: {one.why}" for one in batch if isinstance(one, Skipped))
