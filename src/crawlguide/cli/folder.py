"""A data folder that no server has open, answering as a server would. Importing this loads the whole guide."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from crawlguide.core.messages import AskMessage, ReportMessage
from crawlguide.gateway import looking, routes, wire
from crawlguide.gateway.library import open_guide, plain
from crawlguide.guide.local import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from crawlguide.core.config import Config


class OpenFolder:
    """The methods of `crawlguide.Client` that commands use, through the functions that serve HTTP."""

    def __init__(self, path: Path, config: Config) -> None:
        self._guide = open_guide(path, config)
        self._runner = asyncio.Runner()

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._served(routes.ask, message=wire.convert(message, AskMessage))

    def tell(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return self._served(routes.tell, message=wire.convert(message, ReportMessage))

    def explain(self, crawl_id: str, url: str) -> dict[str, Any]:
        return self._served(looking.explain, query={"crawl_id": crawl_id, "url": url})

    def stats(self, crawl_id: str | None = None) -> dict[str, Any]:
        return self._served(routes.stats, query={} if crawl_id is None else {"crawl_id": crawl_id})

    def close(self) -> None:
        self._runner.run(self._guide.close())
        self._runner.close()

    def _served(
        self,
        serve: Callable[[routes.Call], Awaitable[Any]],
        message: Any = None,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        async def answer() -> dict[str, Any]:
            return plain(await serve(routes.Call(self._guide, DEFAULT_TENANT, {}, query or {}, message)))

        return self._runner.run(answer())
