"""Both clients as one kind, and messages for them."""

from __future__ import annotations

import asyncio
import inspect
import socket
from typing import TYPE_CHECKING, Any

from crawlguide import AsyncClient
from crawlguide.core.messages import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}
GONE_WITHIN_S = 30.0
SHORT = {"retries": 1, "deadline_s": 5.0}
Kind = type[Any]


class Awaited:
    """An `AsyncClient` whose methods are awaited for us, so that one test holds both clients to the same facts."""

    def __init__(self, url: str, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncClient(url, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*words: Any, **more: Any) -> Any:
            given = method(*words, **more)
            return self._each(given) if inspect.isasyncgen(given) else self._runner.run(given)

        return call

    def _each(self, given: Any) -> Iterator[Any]:
        nothing = object()

        async def following() -> Any:
            return await anext(given, nothing)

        try:
            while (one := self._runner.run(following())) is not nothing:
                yield one
        finally:
            self._runner.run(given.aclose())

    def __enter__(self) -> Awaited:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


def asking(crawl: str, max_urls: int = 1, **more: Any) -> dict[str, Any]:
    budget = {"max_urls": max_urls}
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": budget} | more


def telling(crawl: str, *urls: str, **more: Any) -> dict[str, Any]:
    fetches = [{"url": url, "status": 200, "outlinks": [{"url": "/next"}]} for url in urls]
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": fetches} | more


def pages(count: int) -> list[str]:
    return [f"https://h{number % 7}.example/{number}" for number in range(count)]


def given(advice: Any) -> list[str]:
    return [one["url"] for one in advice["assigned_urls"]]


def numbers(guide: Any, crawl: str) -> dict[str, Any]:
    found: dict[str, Any] = guide.stats(crawl)["crawls"][crawl]
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
