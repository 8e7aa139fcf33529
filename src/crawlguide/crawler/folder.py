"""The folder of a crawl: where its files lie, and which crawl it is."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

IDENTITY = "crawl.json"


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """How far a crawl was to go; 0 and None: no limit."""

    max_pages: int = 0
    max_time_s: float = 0.0
    until: float | None = None
    min_harvest: float | None = None


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whose folder it is. The crawler keeps its name, so that what a killed run held goes back to the guide."""

    crawl_id: str
    crawler_id: str
    definition: dict[str, Any]
    seeds: list[str]
    guide: str | None = None  # None: the one in the folder
    proxy: str | None = None  # without its password
    allow_networks: list[str] = []
    user_agent: str | None = None  # as sites see it; None: ours
    contact: str = ""
    parquet: bool | None = None  # None: nobody said
    extent: Extent | None = None  # of its last run; None: from before it was kept


@dataclass(frozen=True)
class CrawlFolder:
    path: Path

    @property
    def identity(self) -> Path:
        return self.path / IDENTITY

    @property
    def guide(self) -> Path:
        """The data folder of an embedded guide."""
        return self.path / "guide"

    @property
    def pages(self) -> Path:
        return self.path / "pages.jsonl"

    @property
    def warc(self) -> Path:
        return self.path / "pages.warc.gz"

    @property
    def export(self) -> Path:
        return self.path / "crawl.ndjson"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def journal(self) -> Path:
        return self.path / "journal.ndjson"

    @property
    def parts(self) -> Path:
        """Links that are not in `links.parquet` yet."""
        return self.path / "links.parts"

    @property
    def files(self) -> list[Path]:
        """What a crawl leaves for people and programs, whether it is there yet or not."""
        tables = [self.path / name for name in ("links.parquet", "pages.parquet")]
        return sorted([self.export, self.journal, *tables, self.pages, self.warc, self.report])

    def read(self) -> Identity | None:
        """Which crawl lies here; None: none."""
        if not self.identity.exists():
            return None
        try:
            return msgspec.json.decode(self.identity.read_bytes(), type=Identity)
        except (msgspec.DecodeError, UnicodeDecodeError, OSError) as wrong:
            raise ConfigError(f"--out: {self.identity} cannot be read: {wrong}") from None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else works in it meanwhile."""
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDONLY)
        try:
            _lock(handle, self.path)
            yield
        finally:
            os.close(handle)

    def begin(self, identity: Identity) -> None:
        """Make it the folder of a crawl."""
        self.path.mkdir(parents=True, exist_ok=True)
        new = self.identity.with_suffix(".new")
        new.write_bytes(msgspec.json.format(msgspec.json.encode(identity)) + b"\n")
        new.replace(self.identity)


def _lock(handle: int, path: Path) -> None:
    try:
        flock(handle, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise ConfigError(f"--out: another crawl is at work in {path}; end it, or name another folder") from None


def crawler_name() -> str:
    return f"crawl-{token_hex(6)}"


def checked(path: Path, *, resume: bool) -> CrawlFolder:
    """A folder for a new crawl, or the one whose crawl goes on."""
    folder = CrawlFolder(path)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"--out: expected a folder, got the file {path}")
    found = folder.read()
    if found is None and resume:
        raise ConfigError(f"--resume: there is no crawl in {path}; leave out --resume to begin one")
    if found is not None and not resume:
        topic = found.definition.get("goal", {}).get("topic") or found.crawl_id
        raise ConfigError(f"--out: {path} holds a crawl already ({topic}); go on with --resume, or name another folder")
    theirs = next((file.name for file in folder.files if file.exists()), None)
    if found is None and theirs is not None:
        raise ConfigError(
            f"--out: {path} holds a {theirs} of no crawl, which would be overwritten: name another folder"
        )
    return folder
