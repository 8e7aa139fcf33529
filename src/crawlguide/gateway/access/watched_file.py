"""A file that may change while the server runs: read again when it has, at most once a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import ERROR, happened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Content = TypeVar("Content")
LOOKS_EVERY_S = 1.0


class WatchedFile(Generic[Content]):
    """What `read` makes of a file; None before there is one. What cannot be read later leaves the last content."""

    def __init__(
        self, path: Path, read: Callable[[Path], Content], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path, self._read, self._clock = path, read, clock
        self._content: Content | None = None
        self._stamp: tuple[int, ...] | None = None
        self._looked = float("-inf")
        self.version = 0  # another number: another content
        try:
            self._renew(_stamp(path))
        except OSError as problem:  # what is wrong with the first is said before anything opens
            raise ConfigError(f"{path} cannot be read: {problem.strerror}") from None

    def content(self, *, newest: bool = False) -> Content | None:
        """What was read last; the `newest` there is for whoever missed something in it."""
        now = self._clock()
        if newest or now - self._looked >= LOOKS_EVERY_S:
            self._looked = now
            self._look_again()
        return self._content

    def _look_again(self) -> None:
        stamp: tuple[int, ...] | None = ()  # of a file that cannot even be looked at
        try:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._renew(stamp)
        except (ConfigError, OSError) as wrong:
            if stamp == self._stamp:
                return
            self._stamp = stamp
            words = "{path} cannot be used, so what was read before goes on: {problem}"
            happened("credentials_unread", words, ERROR, path=str(self._path), problem=str(wrong))

    def _renew(self, stamp: tuple[int, ...] | None) -> None:
        if stamp is not None:
            self._content = self._read(self._path)
            self.version += 1
        self._stamp = stamp


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Changes when the file does, also when another is put in its place; None: there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
