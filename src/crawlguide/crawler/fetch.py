"""Fetching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from crawlguide.crawler.fetched import Fetched, Redirect, Validators

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Permitted = Callable[[str], Awaitable[str | None]]

__all__ = ["FetchOptions", "Fetched", "Fetcher", "Redirect", "Validators"]


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """How to fetch, and how much at most."""

    user_agent: str = "crawlguide"
    contact: str = ""  # a URL or an e-mail address, for those whose sites are crawled
    proxy: str | None = None  # http://host:port; names are then resolved by the proxy
    concurrency: int = 64
    per_host: int = 4
    max_bytes: int = 10 * 1024 * 1024  # of a body, unpacked
    max_ratio: int = 100  # so far may a body unpack
    max_redirects: int = 10
    max_headers: int = 128
    max_header_bytes: int = 16_384  # of one header
    timeout_s: float = 30.0  # until the answer begins, at most; hosts known to be quick get less
    total_s: float = 120.0  # for the whole of a fetch, with its redirects
    min_bytes_per_s: float = 512.0  # after the first seconds of a body
    allow_networks: tuple[str, ...] = ()  # as outgoing.allow_networks


class Fetcher:
    """Fetches canonical URLs; an async context manager."""

    def __init__(self, options: FetchOptions, permitted: Permitted | None = None) -> None:
        self.options = options
        self.permitted = permitted

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def fetch(self, url: str, validators: Validators | None = None) -> Fetched:
        """Never raises for what others do."""
        raise NotImplementedError
