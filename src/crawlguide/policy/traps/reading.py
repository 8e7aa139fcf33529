"""URLs read once, for all that is to be known of them: their templates, their suspicion, their bare form, their words.

`shape.py` and `templates.py` say the same of one URL, in words; a test holds that the two never differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.policy.traps import scanning
from crawlguide.policy.traps.names import KINDS, NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, U64


@dataclass(frozen=True)
class Reading:
    """A column for each URL: its suspicion, and hashes, one row of `codes` for each kind of them."""

    much: F64
    codes: U64

    def take(self, rows: Sequence[int]) -> Reading:
        places = np.array(rows, np.intp)
        return Reading(self.much.take(places), self.codes.take(places, axis=1))

    @property
    def levels(self) -> U64:
        """The keys of its accounts (see `novelty.py`), one row each; 0 in the first for a home page."""
        return self._code(slice(scanning.LEVELS))

    @property
    def here(self) -> U64:
        """Its part of its host."""
        return self._code(scanning.HOST_COARSE)

    @property
    def coarse(self) -> U64:
        """The same part of any host."""
        return self._code(scanning.COARSE)

    @property
    def bare(self) -> U64:
        return self._code(scanning.BARE)

    @property
    def whole(self) -> U64:
        """Of the URL itself."""
        return self._code(scanning.WHOLE)

    @property
    def clothed(self) -> U64:
        """1: it is not its own bare form."""
        return self._code(scanning.CLOTHED)

    @property
    def words(self) -> U64:
        """Of the words it speaks in; 0: it does not."""
        return self._code(scanning.SAID)

    def _code(self, which: int | slice) -> U64:
        found: U64 = self.codes[which]
        return found


def read(urls: Sequence[str], year: int | None) -> Reading:
    """Canonical URLs; `year` is the present one, None where nobody knows it."""
    found = Reading(np.empty(len(urls)), np.empty((scanning.CODES, len(urls)), np.uint64))
    text = np.frombuffer("\n".join(urls).encode("ascii", "replace"), np.uint8)
    scanning.scan(text, scanning.NO_YEAR if year is None else year, NAMES, KINDS, found.much, found.codes)
    return found
