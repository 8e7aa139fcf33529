"""How much one crawl may remember."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.core.config import StoreOptions


@dataclass(frozen=True)
class Quota:
    """How many URLs and links, and for how long."""

    urls: int  # waiting
    urls_per_host: int
    links: int
    done: int = 20_000_000  # fetched or dropped
    keep_done_s: float = float("inf")

    @classmethod
    def of(cls, options: StoreOptions) -> Quota:
        keep_s = options.keep_done_days * 86_400.0
        return cls(options.max_urls, options.max_urls_per_host, options.max_links, options.max_done, keep_s)
