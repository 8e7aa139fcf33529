"""What a store keeps of whole crawls, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.core.types import Crawl


class Crawls(Protocol):
    """Whose frontiers there are, and what was counted of each."""

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:
        """Create or replace a crawl's definition; True if it is new. Its frontier stays."""
        ...

    async def crawl_get(self, crawl: Crawl) -> bytes | None: ...

    async def crawl_list(self, tenant: str) -> list[Crawl]: ...

    async def crawl_delete(self, crawl: Crawl) -> bool:
        """Forget a crawl and all it holds. What hosts are owed in politeness stays."""
        ...

    async def count(self, crawl: Crawl, numbers: Mapping[str, int]) -> None:
        """Add to the crawl's counters, which `stats` shows."""
        ...

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]: ...


class Memory(Protocol):
    """What is kept of a crawl besides its URLs: answers given, and what was learned."""

    async def answer_get(self, crawl: Crawl, key: str, at: float) -> bytes | None: ...

    async def answer_put(self, crawl: Crawl, key: str, answer: bytes, expires: float) -> None: ...

    async def state_get(self, crawl: Crawl, name: str) -> tuple[bytes, int] | None: ...

    async def state_put(self, crawl: Crawl, name: str, state: bytes, version: int) -> bool:
        """Write if `version` is newer than what is there; True if it was."""
        ...

    async def notebook(self, crawl: Crawl) -> Notebook:
        """Where the crawl's strategy keeps what it learns. It lasts with the next commit, like all else, and goes with
        the crawl."""
        ...

    async def generation(self) -> int:
        """Another number than before if all was read anew since: what was lent before (notebooks) is of no use then."""
        ...


class Lasting(Protocol):
    """What lasts beyond the process, and what that costs."""

    @property
    def opened_s(self) -> float:
        """How long opening it took."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where all is kept; None for a store that keeps nothing on a disk of its own."""
        ...

    def listen(self, telemetry: Telemetry) -> None:
        """From now on say to `telemetry` what keeping costs: `sync_seconds`, from any thread."""
        ...

    async def figures(self) -> Mapping[str, float]:
        """What it takes now: `columns_bytes` in memory, and of a folder `disk_bytes` and `log_bytes`."""
        ...

    async def commit(self, durable: bool = ...) -> None:
        """Returning means that all that was done so far survives this process; with `durable`, a loss of power.

        Calls between two commits last together or not at all. Raises `StorageFull` or `StoreUnavailable`; then what
        was done is still there, lasts with the next commit that returns, and is not to be acknowledged before.
        """
        ...

    async def backup(self, target: Path) -> str:
        """A copy of all that is known at this moment, in a new folder; returns its state hash."""
        ...

    async def close(self) -> None: ...
