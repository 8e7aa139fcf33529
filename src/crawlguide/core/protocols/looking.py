"""How others look into a store, and carry what it knows into another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Crawl, Hosts, KnownLink, KnownPage, KnownUrl, UrlRecord


class Views(Protocol):
    """What people and judges may look at: a bounded part at a time."""

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]: ...

    async def scan(
        self, crawl: Crawl, state: str | None, host: str | None, limit: int, cursor: str | None
    ) -> tuple[list[UrlRecord], str | None]:
        """A page of URLs and the cursor of the next; a URL that is there throughout is seen exactly once."""
        ...

    async def count_above(self, crawl: Crawl, priority: float, cursor: int) -> tuple[int, int | None]:
        """How many of the next waiting URLs stand before this priority; and the next cursor, None at the end."""
        ...

    async def hosts(self, crawl: Crawl, limit: int) -> tuple[Hosts, I64, F64]:
        """The hosts to look at first, how many URLs wait on each, and until when it is withheld (-inf: it is not).

        Up to half of them failed most, on the others most URLs wait. Looks at a bounded number of hosts.
        """
        ...

    async def open_hosts(
        self, crawl: Crawl, domain: str | None, until: float, limit: int, cursor: int
    ) -> tuple[list[str], int | None]:
        """Hosts, of a registrable domain or of any, on which URLs wait and that may be fetched by then.

        From a cursor (0: the beginning) on; and the next cursor, None at the end. Looks at a bounded number of hosts.
        """
        ...


class Transfer(Protocol):
    """What goes from one store into another, and what is forgotten."""

    async def dump(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownUrl], int | None]:
        """Everything known of some URLs, from a cursor (0: the beginning) on; and the next cursor, None at the end."""
        ...

    async def dump_links(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownPage], int | None]:
        """The same for the links between them."""
        ...

    async def adopt(self, crawl: Crawl, ids: U64, hosts: Sequence[str], urls: Sequence[KnownUrl], at: float) -> int:
        """Take over URLs as another store knew them; those known here are left alone. Returns how many were new."""
        ...

    async def adopt_links(self, crawl: Crawl, page: int, children: U64, links: Sequence[KnownLink], at: float) -> None:
        """Take over the links of a page to URLs that are known here, unless it has links here."""
        ...

    async def purge(self, crawl: Crawl, state: str | None, host: str | None) -> int:
        """Forget the matching URLs, except leased ones."""
        ...

    async def forget_old(self, crawl: Crawl, at: float) -> int:
        """Look at some of the URLs that are done or dropped and forget those that are too old or too many."""
        ...
