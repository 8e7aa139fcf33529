"""Other people's lists of URLs, read as seeds. A format is a file here, named after it, with `read(path)`.

A reader streams: it holds one entry at a time, whatever the size of the list. An entry that cannot be used is `Skipped`
and the rest goes on; a file that is not of the format at all is a `DataError` that names the file and the position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.errors import UrlError
from crawlguide.guide.tell.intake import seed_of

if TYPE_CHECKING:
    from crawlguide.core.messages import SeedMessage


@dataclass(frozen=True)
class Skipped:
    """An entry that does not become a seed: where it stands in its file, and why."""

    where: str
    why: str


def usable(seed: SeedMessage, where: str) -> SeedMessage | Skipped:
    """The seed, if the guide would take it; found out here, because only the reader knows where the entry stands."""
    try:
        seed_of(seed)
    except UrlError as wrong:
        return Skipped(where, wrong.message)
    return seed
