"""Only what the robots.txt of a URL's origin permits (RFC 9309). Where that is not known yet, URLs wait for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.policy.robots import forms, matching, reading
from crawlguide.policy.robots.copies import Copies, File, is_file, origin_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.crawls import Definition
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Ask, Batch

SOON_S = 1.0  # a file that is on its way is looked for again after so long


def allowed(body: bytes, agent: str, url: str) -> bool:
    """May this agent fetch this URL, by the bytes of this robots.txt?"""
    said, _ = reading.read(body, agent)
    return bool(matching.compiled(said.rules).permits([forms.path(url)])[0])


@dataclass(frozen=True)
class Robots:
    """What may be fetched, by the copies in memory. Whoever asks has seen to it that they are there and compiled."""

    mode: str
    agent: str
    copies: Copies = field(default_factory=Copies)
    name: str = "robots"
    refusal: str = "either"

    @property
    def waits(self) -> bool:
        """For a file that is not known, since somebody goes for it. Otherwise whoever fetches has to read it."""
        return self.mode == "crawler" or self.copies.fetched

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        keep: Mask = self.wait(batch, ask) == 0.0
        return keep

    def wait(self, batch: Batch, ask: Ask) -> F64:
        """0 for what may be fetched, NaN for what never may, else how long to wait until more is known."""
        urls = batch.url.tolist()
        waits = np.zeros(len(urls))
        for origin, rows in _by_origin(urls).items():
            copy, file = self.copies.get(origin), self.copies.file(origin, self.agent)
            if copy is not None and file is not None and copy.stands(ask.at):
                permitted = file.matcher.permits([forms.path_of_canonical(urls[row]) for row in rows])
                waits[rows] = np.where(permitted, 0.0, np.nan)
            elif self.waits:
                later = copy.due() - ask.at if copy is not None and copy.failures else 0.0
                waits[rows] = max(later, SOON_S)
        waits[[is_file(url) for url in urls]] = 0.0
        return waits

    def sight(self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str]) -> list[str | None]:  # noqa: ARG002
        """Why each URL is dropped when it is found, by the files that are known at that moment; None: it is not."""
        found: list[str | None] = [None] * len(urls)
        for origin, rows in _by_origin(urls).items():
            file = self.copies.file(origin, self.agent)
            if file is not None and file.matcher.by_letter.texts:
                permitted = file.matcher.permits([forms.path_of_canonical(urls[row]) for row in rows]).tolist()
                for row, may in zip(rows, permitted, strict=True):
                    found[row] = None if may else "its robots.txt forbids it"
        return found

    def follows(self, url: str) -> bool:
        """Whether links on the page at a canonical URL may be followed, by robots.txt."""
        file = self.copies.file(origin_of(url), self.agent)
        return file is None or bool(file.nofollow.permits([forms.path_of_canonical(url)])[0])

    def degraded(self, batch: Batch, ask: Ask) -> str | None:
        """Which word says that URLs are given out for which no file, or an old one, has spoken."""
        copies = [self.copies.get(origin) for origin in _by_origin(batch.url.tolist())]
        if any(copy is None or not copy.stands(ask.at) for copy in copies):
            return None if self.waits else "robots_unchecked"  # then they are robots.txt files themselves
        return "stale_robots" if any(copy is not None and copy.failures for copy in copies) else None

    def why(self, batch: Batch, ask: Ask) -> str:
        url, wait = batch.url.tolist()[0], float(self.wait(batch, ask)[0])
        file = self.copies.file(origin_of(url), self.agent)
        if wait > 0:
            return f"its robots.txt could not be read yet; it is tried again in {wait:.0f} s"
        return "its robots.txt is not known" if file is None else file.matcher.why(forms.path_of_canonical(url))


def _by_origin(urls: Sequence[str]) -> dict[str, list[int]]:
    rows = defaultdict(list)
    for row, url in enumerate(urls):
        rows[origin_of(url)].append(row)
    return rows


def build(definition: Definition) -> Robots:
    return Robots(definition.policy.robots, definition.policy.user_agent)


__all__ = ["Copies", "File", "Robots", "allowed", "build"]
