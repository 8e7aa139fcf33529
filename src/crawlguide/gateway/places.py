"""Where the commands `backup`, `export` and `import` find crawls: a data folder, or a server that runs.

What a call returned is on stable storage. A guide takes a second to load, so it is imported where it is needed.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from crawlguide.core import stable
from crawlguide.core.errors import CrawlGuideError
from crawlguide.gateway.client import Client, calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from crawlguide.core.config import Config
    from crawlguide.core.messages import SeedMessage
    from crawlguide.core.types import Crawl
    from crawlguide.gateway.backup import Slip
    from crawlguide.gateway.client.verbs import Verbs
    from crawlguide.guide.crawl.transfer import Imported

ANSWER_S = 300.0
_NUMBERED = re.compile(r"line (\d+): (.*)", re.DOTALL)


class Place(Protocol):
    """A `Folder` or a `Remote`."""

    most_bytes: int  # what it takes in one call

    @property
    def guide(self) -> Verbs: ...

    def backed_up(self, target: Path) -> Slip: ...

    def exported(self, crawl: str) -> Iterator[bytes]:
        """Lines without their ends."""
        return self.guide.export(crawl)

    def imported(self, crawl: str, lines: Sequence[bytes], first: int) -> Imported:
        """Take over lines of an export, of which the first has this number in its file."""
        from crawlguide.guide.crawl.transfer import Imported  # noqa: PLC0415

        done = self.guide._done(calls.import_lines(crawl, lines))
        skipped = tuple(_renumbered(reason, first) for reason in done.skipped)
        return Imported(done.lines, done.discovered, skipped, max(0, done.skipped_lines - len(skipped)))

    def seeded(self, crawl: str, seeds: Sequence[SeedMessage]) -> int:
        return self.guide.seed(crawl, msgspec.to_builtins(seeds))

    def close(self) -> None:
        self.guide.close()


class Folder(Place):
    """A data folder that no server has open, opened for one command."""

    most_bytes = 128 * 1024 * 1024  # more than the longest line an export writes

    def __init__(self, path: Path, config: Config) -> None:
        from crawlguide.gateway.library import Guide  # noqa: PLC0415

        self._guide = Guide.open(path, config=config)

    @property
    def guide(self) -> Verbs:
        return self._guide

    def backed_up(self, target: Path) -> Slip:
        from crawlguide.gateway.backup import backup  # noqa: PLC0415

        return self._guide._run_on(lambda guide: backup(guide, target))

    def counts(self) -> dict[Crawl, Mapping[str, Any]]:
        """The numbers of each crawl."""
        from crawlguide.gateway.opening import counts  # noqa: PLC0415

        return self._guide._run_on(counts)


class Remote(Place):
    """A server that runs. Nothing is tried twice: a person waits, and is told what went wrong."""

    def __init__(self, url: str, most_bytes: int, answer_s: float = ANSWER_S) -> None:
        self.most_bytes = most_bytes
        self._client = Client(url, timeout_s=answer_s, retries=0, deadline_s=answer_s)

    @property
    def guide(self) -> Verbs:
        return self._client

    def backed_up(self, target: Path) -> Slip:
        """The server puts its copy beside its data; it is moved here, which takes the server's machine."""
        from crawlguide.gateway.backup import half_of  # noqa: PLC0415

        half = half_of(target, "backup")  # refuses before anything is copied
        made = self._client._done(calls.back_up())
        source = Path(made.path)
        slip = self._reached(source, made)
        try:
            shutil.move(source, half)
            stable.sync_all(half)  # on another file system it was copied
            stable.put_in_place(half, target)
        except OSError as problem:
            raise CrawlGuideError(f"backup: {source} cannot be moved to {target}: {problem}") from None
        return slip

    def _reached(self, source: Path, made: calls.BackupAnswer) -> Slip:
        """What lies at that path must be what the server has just made: it may name a path of another machine."""
        from crawlguide.gateway.backup import read_slip  # noqa: PLC0415

        try:
            slip = read_slip(source)
        except CrawlGuideError:
            slip = None
        if slip is None or (slip.made, slip.state_hash) != (made.made, made.state_hash):
            raise CrawlGuideError(
                f"backup: the server has put it into {source}, which cannot be reached from here; fetch it from there"
            )
        return slip


def _renumbered(reason: str, first: int) -> str:
    """The server counts the lines of one request, a person those of the file."""
    numbered = _NUMBERED.fullmatch(reason)
    return f"line {first - 1 + int(numbered[1])}: {numbered[2]}" if numbered else reason
