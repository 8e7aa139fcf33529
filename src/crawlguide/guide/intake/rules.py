"""What a crawl's definition says about everything that comes in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crawlguide.core.messages import Fetch
    from crawlguide.core.protocols import Sees


@dataclass(frozen=True)
class Rules:
    """Who judges a page, what is refused on sight, and how deep it goes."""

    judge: Callable[[Fetch], float]
    verdict: Callable[[str], str | None]  # why a host is refused
    max_depth: int = -1
    bans: Callable[[str, str], str | None] | None = None  # the rule that bans a URL on a host, if any are banned
    priorities: Mapping[str, float] = field(default_factory=dict)  # of single URLs
    follows: Callable[[Fetch, str], bool] | None = None  # whether the links of a page at a URL may be followed
    keeps: Callable[[Fetch, str], bool] | None = None  # whether a page at a URL may be kept, else it is worth nothing
    seers: Sequence[Sees] = ()  # filters that judge a URL by itself
    seeded: Callable[[str], None] | None = None  # who hears of the host of each seed

    def worth(self, fetch: Fetch, url: str) -> float:
        return self.judge(fetch) if self.keeps is None or self.keeps(fetch, url) else 0.0

    def reason(self, url: str, host: str) -> str | None:
        """Why a URL is dropped on sight; None: it is not."""
        banned = self.verdict(host) or ("banned" if self.bans and self.bans(url, host) else None)
        if banned or not self.seers:
            return banned
        key = np.array([urls.identity(url, host)], np.uint64)
        return next((seer.name for seer in self.seers if seer.sight([host], [url], [""], key)[0]), None)
