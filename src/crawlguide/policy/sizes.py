"""Expected size of files by their extension: the usual size, corrected by the sizes that the crawl has seen."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.notebook import Sheet
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.link_rules import LONGEST_EXTENSION, extension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Batch, Lesson

KILO, MEGA = 1e3, 1e6
USUAL = {  # bytes; pages are expected to be like other pages of their host
    **dict.fromkeys(("iso", "img", "vmdk", "qcow2", "ova"), 700 * MEGA),
    **dict.fromkeys(("mp4", "mkv", "avi", "mov", "webm", "wmv", "m4v"), 50 * MEGA),
    **dict.fromkeys(("exe", "msi", "dmg", "pkg", "apk", "ipa", "rpm", "deb", "whl", "jar", "bin"), 20 * MEGA),
    **dict.fromkeys(("zip", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "tar", "psd", "tif", "tiff"), 10 * MEGA),
    **dict.fromkeys(("mp3", "wav", "flac", "ogg", "m4a"), 5 * MEGA),
    **dict.fromkeys(("pdf", "ps", "epub", "djvu", "ppt", "pptx"), MEGA),
    **dict.fromkeys(("doc", "docx", "xls", "xlsx", "odt", "png", "jpg", "jpeg", "gif", "webp"), 200 * KILO),
}
PAGES = ("html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "cgi")
TRUST = 3.0  # files that the usual size counts for
TOO_LARGE = 16 * MEGA  # the least size of a file that was too large for its crawler
MOST = 1_000  # extensions
EXTENSION = np.dtype([("name", f"S{LONGEST_EXTENSION}"), ("sum", np.float64), ("count", np.float64)])


class Sizes:
    """Extensions have numbers; 0 stands for those without an expected size, for which the mean of the host counts."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self._numbers = dict.fromkeys(("", *PAGES), 0)
        self._sums, self._counts, self._expected = [0.0], [0.0], np.array([np.nan])
        for ending, size in USUAL.items():
            self._add(ending, TRUST * log(size), TRUST)
        self._expected[1:] = list(USUAL.values())  # to the byte
        self._known = ValueCache()  # numbers of extensions, by URL
        self.sheet = Sheet(EXTENSION) if sheet is None else sheet  # sizes seen, by extension
        self._rows: dict[str, int] = {}
        for row, (name, total, count) in enumerate(self.sheet.rows[: self.sheet.used].tolist()):
            self._rows[name.decode()] = row
            self._add_sizes(name.decode(), total, count)

    def see(self, urls: Sequence[str], ids: U64) -> None:
        """Cache the extensions of new URLs, so that no ask has to read their texts."""
        self._known.put(ids, self._numbered(urls))

    def _numbered(self, urls: Sequence[str]) -> F64:
        return np.array([self._numbers.get(extension(url), 0) for url in urls], np.float64)

    def expected(self, batch: Batch, *, remember: bool = True) -> F64:
        """The expected bytes of each row by its extension; NaN: unknown."""
        numbers, unknown = self._known.get(batch.id)
        if len(unknown):
            numbers[unknown] = self._numbered(batch.url[unknown].tolist())
            if remember:
                self._known.put(batch.id[unknown], numbers[unknown])
        return self._expected[numbers.astype(np.int64)]

    def learn(self, lesson: Lesson) -> None:
        """Learn from files that were fetched, or were too large to be."""
        fetches = lesson.fetches
        files = zip(fetches.target_url.tolist(), fetches.bytes.tolist(), fetches.error.tolist(), strict=True)
        for url, size, error in files:
            ending = extension(url)
            if ending and error == "too_large":
                self._record(ending, max(TOO_LARGE, size))
            elif ending and not error and size > 0:
                self._record(ending, size)

    def _record(self, ending: str, size: float) -> None:
        if self._add_sizes(ending, log(size), 1.0):
            row = self._rows.setdefault(ending, self.sheet.used)
            self.sheet.fit(row + 1)
            self.sheet.rows["name"][row] = ending.encode()
            self.sheet.rows["sum"][row] += log(size)
            self.sheet.rows["count"][row] += 1.0
            self.sheet.changed(np.array([row]))

    def _add_sizes(self, ending: str, total: float, count: float) -> bool:
        """Add sizes, as a sum of logarithms; False: this extension is not counted."""
        number = self._numbers.get(ending)
        if number == 0 or (number is None and len(self._numbers) >= MOST):
            return False
        if number is None:
            number = self._add(ending, 0.0, 0.0)
        self._sums[number] += total
        self._counts[number] += count
        if self._counts[number] >= TRUST:
            self._expected[number] = exp(self._sums[number] / self._counts[number])
        return True

    def _add(self, ending: str, total: float, count: float) -> int:
        number = self._numbers[ending] = len(self._counts)
        self._sums.append(total)
        self._counts.append(count)
        self._expected = np.append(self._expected, exp(total / count) if count else np.nan)
        return number
