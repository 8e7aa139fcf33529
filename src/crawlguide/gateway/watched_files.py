"""Files that may change while the server runs: read again when they have, at most once a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import ERROR, happened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Content = TypeVar("Content")
LOOKS_EVERY_S = 1.0
Stamp = tuple[int, ...]


def credentials_unread(path: Path, problem: str) -> None:
    words = "{path} cannot be used, so what was read before goes on: {problem}"
    happened("credentials_unread", words, ERROR, path=str(path), problem=problem)


class WatchedFiles(Generic[Content]):
    """What `read` makes of some files; None before all are there. What cannot be read later leaves the last content."""

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[], Content],
        unread: Callable[[Path, str], None] = credentials_unread,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`unread` is told when the files have changed and cannot be used."""
        self._paths, self._read, self._unread, self._clock = paths, read, unread, clock
        self._content: Content | None = None
        self._stamp: Stamp | None = None
        self._looked = float("-inf")
        self.version = 0  # another number: another content
        try:
            self._renew(_stamp(paths))
        except OSError as problem:  # what is wrong with the first is said before anything opens
            raise ConfigError(f"{paths[0]} cannot be read: {problem.strerror}") from None

    def content(self, *, newest: bool = False) -> Content | None:
        """What was read last; the `newest` there is for whoever missed something in it."""
        now = self._clock()
        if newest or now - self._looked >= LOOKS_EVERY_S:
            self._looked = now
            self._look_again()
        return self._content

    def _look_again(self) -> None:
        stamp: Stamp | None = ()  # of files that cannot even be looked at
        try:
            stamp = _stamp(self._paths)
            if stamp != self._stamp:
                self._renew(stamp)
        except (ConfigError, OSError) as wrong:
            if stamp == self._stamp:
                return
            self._stamp = stamp
            self._unread(self._paths[0], str(wrong))

    def _renew(self, stamp: Stamp | None) -> None:
        if stamp is not None:
            self._content = self._read()
            self.version += 1
        self._stamp = stamp


def _stamp(paths: Sequence[Path]) -> Stamp | None:
    """Changes when a file does, also when another is put in its place; None: one of them is not there."""
    try:
        found = [path.stat() for path in paths]
    except (FileNotFoundError, NotADirectoryError):
        return None
    return tuple(number for one in found for number in (one.st_mtime_ns, one.st_ino, one.st_size))
