"""A crawl of somebody else's crawler: a guide in this process or a server, the crawl defined and seeded there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from crawlguide.core.errors import ConfigError, NotFound
from crawlguide.core.telemetry import LOGGER, UNASKED
from crawlguide.gateway.client import AsyncClient
from crawlguide.gateway.client.assignments import Assignments
from crawlguide.policy.robots.parser import agent_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
    from types import TracebackType

    from crawlguide.gateway.client.verbs import AsyncVerbs

Found = TypeVar("Found")
Seeds = str | Sequence[str | Mapping[str, Any]]
Goal = str | Mapping[str, Any] | None
PRODUCT = re.compile(r"[A-Za-z_-]+")  # what robots.txt calls a crawler by
CANCELLED_AT_MOST = 3
SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})
FRAMING = frozenset({  # by which a request would go to another host, or swallow the next one
    "host", "connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
STAYING = SECRET | FRAMING  # headers that do not travel with a URL: others may share the guide


class Options(TypedDict, total=False):
    """What every integration takes, beside its crawler, seeds and goal."""

    guide: str | AsyncVerbs | None
    data: str | Path | None
    crawl_id: str
    crawler_id: str | None
    strategy: str | Mapping[str, Any] | None
    policy: Mapping[str, Any]
    limits: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The same with what holds where nothing is said.

    `guide` is the address of a server, or a guide that is open already; without one a guide is opened in this process,
    over the folder `data` or over memory. A crawl that exists keeps whatever is not said here.
    """

    guide: str | AsyncVerbs | None = None
    data: str | Path | None = None
    crawl_id: str = "default"
    crawler_id: str | None = None
    strategy: str | Mapping[str, Any] | None = None
    policy: Mapping[str, Any] | None = None
    limits: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.guide is not None and self.data is not None:
            raise ConfigError("data: expected either guide= (a server) or data= (a folder of this process), got both")
        for name in ("policy", "limits"):
            if not isinstance(getattr(self, name), Mapping | None):
                raise ConfigError(f"{name}: expected a dictionary, got {getattr(self, name)!r}")

    @property
    def served(self) -> bool:
        return self.guide is not None

    def definition(self, goal: Goal) -> dict[str, Any]:
        """What the caller says about the crawl, and nothing else."""
        strategy = {"kind": self.strategy} if isinstance(self.strategy, str) else self.strategy
        said = {"goal": _goal(goal), "strategy": strategy, "policy": self.policy, "limits": self.limits}
        return {name: dict(value) for name, value in said.items() if value}


class GuidedCrawl:
    """One crawler's part in one crawl, from its definition to the last lease given back. An async context manager.

    `agent` is the User-Agent of the crawler, by whose name robots.txt is read unless the crawl says another. What it
    comes to is `robots_name`, once the crawl is open.
    """

    def __init__(
        self,
        seeds: Seeds,
        goal: Goal,
        settings: Settings,
        *,
        agent: str = "",
        concurrency: int = 8,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"concurrency: expected an integer from 1, got {concurrency}")
        self.seeds: list[str | Mapping[str, Any]] = [seeds] if isinstance(seeds, str) else list(seeds)
        self.goal, self.settings, self.agent = goal, settings, agent
        self.robots_name = ""
        self._concurrency, self._on_change = concurrency, on_change
        self._assignments: Assignments | None = None
        self._guide: AsyncVerbs | None = None
        self._closing = asyncio.Lock()

    async def open(self) -> Assignments:
        """From now on Python shows warnings of ours to a program that has set up no log: a crawl may wait for ever."""
        LOGGER.removeHandler(UNASKED)
        settings = self.settings
        self._guide = guide = await _opened(settings)
        try:
            await self._define(guide)
            if self.seeds:
                await guide.seed(settings.crawl_id, self.seeds)
            ahead = None if self._concurrency > 1 else 0  # one after the other: each answer knows all reports
            self._assignments = Assignments(
                guide,
                settings.crawl_id,
                settings.crawler_id,
                concurrency=self._concurrency,
                ahead=ahead,
                on_change=self._on_change,
            )
            return await self._assignments.__aenter__()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Reports go out and leases go back, also when `asyncio.run` cancels everybody because its program ends."""
        await to_the_end(self._closed)

    async def _closed(self) -> None:
        async with self._closing:
            if self._assignments is not None:
                await self._assignments.close()
                self._assignments = None
            if self._guide is not None and self._guide is not self.settings.guide:
                await self._guide.close()
            self._guide = None

    async def __aenter__(self) -> Assignments:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _define(self, guide: AsyncVerbs) -> None:
        """A crawl that others defined keeps what they said of it; a new one is read robots.txt by our own name."""
        said = self.settings.definition(self.goal)
        name = PRODUCT.match(self.agent)
        ours = {"user_agent": name[0]} if name else {}
        if not self.settings.served:
            ours["robots"] = "crawler"  # nobody else here can fetch it
        whole = said | {"policy": ours | said.get("policy", {})}
        try:
            there = await guide.patch(self.settings.crawl_id, said if self.settings.served else whole)
        except NotFound:
            await guide.define(self.settings.crawl_id, whole)
            there = await guide.crawl(self.settings.crawl_id)
        self.robots_name = agent_name(there["definition"]["policy"]["user_agent"])


async def side_by_side(
    step: Callable[[], Coroutine[Any, Any, Found | None]], concurrency: int, most: float
) -> AsyncGenerator[Found, None]:
    """What the step comes to, done `most` times and so many at a time, until it is None: nothing is left.

    Whoever stops listening has not seen what else was done by then.
    """
    begun, unseen = 0, list[asyncio.Task[Found | None]]()  # under way, or done and not yet looked at
    try:
        while True:
            while len(unseen) < concurrency and begun < most:
                unseen.append(asyncio.create_task(step()))
                begun += 1
            if not unseen:
                return
            done, _ = await asyncio.wait(unseen, return_when=asyncio.FIRST_COMPLETED)
            first = next(task for task in unseen if task in done)
            unseen.remove(first)
            found = first.result()
            if found is None:
                most = 0  # those who still wait will hear so too
            else:
                yield found
    finally:
        for task in unseen:
            task.cancel()
        await asyncio.gather(*unseen, return_exceptions=True)  # also of those that have failed together with the first


def most_pages(max_pages: int) -> float:
    """How many are requested at most; 0: as many as there are. Raises `ConfigError`."""
    if not isinstance(max_pages, int) or max_pages < 0:
        raise ConfigError(f"max_pages: expected an integer from 0, got {max_pages!r}")
    return max_pages or float("inf")


async def to_the_end(step: Callable[[], Awaitable[None]]) -> None:
    """Do what can be begun again, and be cancelled only afterwards."""
    cancelled: asyncio.CancelledError | None = None
    for _ in range(CANCELLED_AT_MOST):
        try:
            await step()
            break
        except asyncio.CancelledError as problem:
            cancelled = problem
    if cancelled is not None:
        raise cancelled


async def _opened(settings: Settings) -> AsyncVerbs:
    if isinstance(settings.guide, str):
        async with AsyncClient(settings.guide, retries=0) as first:  # a person waits, and is told at once
            with suppress(NotFound):
                await first.stats(settings.crawl_id)
        return AsyncClient(settings.guide)
    if settings.guide is not None:
        return settings.guide
    from crawlguide.gateway.library import AsyncGuide  # noqa: PLC0415 - a guide takes a second to load

    return AsyncGuide.open(settings.data or ":memory:")


def _goal(goal: Goal) -> Mapping[str, Any] | None:
    if goal is None or isinstance(goal, Mapping):
        return goal
    if isinstance(goal, str):
        return {"topic": goal}
    raise ConfigError(f"goal: expected text or a dictionary such as {{'topic': '…'}}, got {type(goal).__name__}")
