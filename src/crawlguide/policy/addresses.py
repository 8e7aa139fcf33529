"""Which addresses belong to the public Internet. The guide connects to no others unless the operator says so.

The list is written out, since `ipaddress.is_global` of Python 3.11 takes multicast, NAT64, 6to4 and the metadata
service of a large cloud for public. An IPv4 address that travels inside an IPv6 address is judged as itself.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Address = IPv4Address | IPv6Address
    Network = IPv4Network | IPv6Network

NOT_PUBLIC = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # behind a carrier's address translation; also the metadata service of a cloud
            "127.0.0.0/8",  # this machine
            "168.63.129.16/32",  # the inside of a cloud, at an address that looks public
            "169.254.0.0/16",  # link-local; the metadata service of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; the metadata service of a cloud
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # measurements of networks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved; broadcast
        ),
    )
)
GLOBAL_UNICAST = IPv6Network("2000::/3")  # nothing else of IPv6 is public
NOT_PUBLIC_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))  # protocols (Teredo), documentation
LAST_FOUR_BYTES = tuple(map(IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
SIX_TO_FOUR = IPv6Network("2002::/16")
ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # the third quarter of an address that is made of an IPv4 address


def address_of(text: str | Address) -> Address | None:
    """What a text is as an address; None: it is none."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_public(address: str | Address) -> bool:
    """Does this address belong to the public Internet? What is no address does not."""
    known = address_of(address)
    if known is None:
        return False
    if isinstance(known, IPv4Address):
        return not any(known in network for network in NOT_PUBLIC)
    if known.scope_id is not None:  # an address that means something on one link alone
        return False
    if not all(map(is_public, _carried(known))):
        return False
    if any(known in network for network in LAST_FOUR_BYTES):
        return True
    return known in GLOBAL_UNICAST and not any(known in network for network in NOT_PUBLIC_6)


def networks(texts: Iterable[str], field: str) -> tuple[Network, ...]:
    """Networks as an operator names them; raises `ConfigError` for what is none."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text))
        except ValueError as wrong:
            raise ConfigError(f"{field}: expected a network such as 10.0.0.0/8, got {text!r}: {wrong}") from None
    return tuple(found)


def may_reach(address: str, allowed: Iterable[Network]) -> bool:
    """Public, or in a network that the operator allows."""
    if is_public(address):
        return True
    known = address_of(address)
    return known is not None and any(known in network for network in allowed)


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses inside an IPv6 address, by every scheme that puts them there."""
    number = int(address)
    last = IPv4Address(number & 0xFFFF_FFFF)
    if any(address in network for network in LAST_FOUR_BYTES) or (number >> 32) & 0xFFFF_FFFF in ISATAP:
        yield last
    if address in SIX_TO_FOUR:
        yield IPv4Address((number >> 80) & 0xFFFF_FFFF)
