"""How much each tenant may have: crawls, URLs and bytes. Who is over a bound keeps what it has and gets no more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from crawlguide.core.bounded import Bounded
from crawlguide.core.config import TenantOptions
from crawlguide.core.errors import Forbidden, TooLarge
from crawlguide.core.types import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.protocols import Store

EVERYBODY_ELSE = "*"
LOOKS_EVERY_S = 1.0
MOST_TENANTS = 10_000  # of which the usage is remembered
NOTHING = Usage(0, 0, 0)


class Quotas:
    """Bounds by tenant. Only of a tenant that has some is it looked up what it keeps."""

    def __init__(self, store: Store, tenants: Sequence[TenantOptions]) -> None:
        self._store = store
        self._of = {tenant.name: tenant for tenant in tenants}
        self._recent = Bounded[str, tuple[float, Usage]](MOST_TENANTS)
        self._others = self._of.get(EVERYBODY_ELSE, TenantOptions(name=EVERYBODY_ELSE))

    async def check_new_crawl(self, tenant: str) -> None:
        """Raise `Forbidden` where a tenant has as many crawls as it may."""
        most = self._bounds(tenant).max_crawls
        if most and (await self._store.usage(tenant)).crawls >= most:
            raise Forbidden(f"quota: tenant {tenant} may have {most} crawls (max_crawls), and has them; delete one")

    async def check_room(self, tenant: str) -> None:
        """Raise `TooLarge` where a tenant may not know more URLs."""
        if not await self.has_room(tenant):
            bounds = self._bounds(tenant)
            said = ", ".join(f"{name} {most}" for name in ("max_urls", "max_bytes") if (most := getattr(bounds, name)))
            raise TooLarge(f"quota: tenant {tenant} knows as much as it may ({said}); delete a crawl or forget URLs")

    async def has_room(self, tenant: str) -> bool:
        bounds = self._bounds(tenant)
        if not (bounds.max_urls or bounds.max_bytes):
            return True
        usage = await self._recent_usage(tenant)
        is_full = (bounds.max_urls and usage.urls >= bounds.max_urls) or (
            bounds.max_bytes and usage.bytes >= bounds.max_bytes
        )
        return not is_full

    def grew(self, tenant: str, urls: int) -> None:
        """So many URLs are new, since it was last looked up how many there are."""
        if tenant in self._recent:
            at, usage = self._recent[tenant]
            self._recent[tenant] = at, usage._replace(urls=usage.urls + urls)

    async def _recent_usage(self, tenant: str) -> Usage:
        """Looked up once a second: it takes a look at every crawl of the tenant."""
        now = time.monotonic()
        at, usage = self._recent.get(tenant, (float("-inf"), NOTHING))
        if now - at >= LOOKS_EVERY_S:
            usage = await self._store.usage(tenant)
            self._recent[tenant] = now, usage
        return usage

    def _bounds(self, tenant: str) -> TenantOptions:
        return self._of.get(tenant, self._others)
