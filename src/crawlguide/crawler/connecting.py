"""Connections to addresses that were checked, and to nothing else.

A name is resolved once, every address it has is checked, and the connection goes to one of those. The socket itself is
checked once more: whatever leads to a connection passes there.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from aiohttp.abc import AbstractResolver, ResolveResult

from crawlguide.core import urls
from crawlguide.guide.robots.outgoing import USUAL_PORTS, Refused
from crawlguide.policy.addresses import address_of, may_reach

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from aiohttp import AddrInfoType

    from crawlguide.policy.addresses import Network

    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

WEB_PORTS = (80, 443)


class Reach:
    """Where connections may lead: public addresses, and networks that the operator allows."""

    def __init__(self, allowed: tuple[Network, ...]) -> None:
        self._allowed = allowed

    def check_url(self, url: str) -> None:
        """A literal address, and the port, of a canonical URL. Raises `Refused`."""
        scheme, host, port, _, _ = urls.parts(url)
        number = int(port or USUAL_PORTS[scheme])
        if number < 1_024 and number not in WEB_PORTS:
            raise Refused(f"port {number} belongs to another protocol")
        if address_of(host.strip("[]")) is not None:
            self.check(host.strip("[]"), host)

    def check(self, address: str, host: str) -> None:
        if not may_reach(address, self._allowed):
            raise Refused(f"{host[:100]} leads to {address}, which is no public address")

    def socket(self, info: AddrInfoType) -> socket.socket:
        """For an address that is about to be connected to."""
        family, kind, protocol, _, address = info
        self.check(str(address[0]), str(address[0]))
        return socket.socket(family, kind, protocol)


class CheckedResolver(AbstractResolver):
    """Names to addresses, all of which were checked; without `reach`, for the name of a proxy, none."""

    def __init__(self, resolve: Resolve, reach: Reach | None) -> None:
        self._resolve, self._reach = resolve, reach

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - as aiohttp calls it
    ) -> list[ResolveResult]:
        addresses = await self._resolve(host, port)
        if not addresses:
            raise OSError(f"{host[:100]} has no address")
        if self._reach is not None:
            for address in addresses:
                self._reach.check(address, host)
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing is held."""


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)
