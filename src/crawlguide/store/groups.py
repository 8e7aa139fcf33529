"""Hosts that are one to politeness: they share an address, or an owner who counts their visitors together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from crawlguide.core import urls
from crawlguide.core.errors import ConfigError, UrlError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.config import StoreOptions

FIELD = "store.politeness_groups"


class Sharing(NamedTuple):
    """Which hosts share a queue: those of a named group, and where it is wanted all others of one address."""

    groups: Mapping[str, str] = {}
    by_address: bool = False


ALONE = Sharing()


def sharing(options: StoreOptions) -> Sharing:
    return Sharing(read(options.politeness_groups), options.politeness_queue == "ip")


def read(texts: Sequence[str]) -> dict[str, str]:
    """The queue of each host or domain that a group names: "shops = a.example b.example"."""
    found: dict[str, str] = {}
    for text in texts:
        name, mark, hosts = text.partition("=")
        if not mark or not name.strip() or not hosts.split():
            raise ConfigError(f"{FIELD}: expected a name and hosts such as 'shops = a.example b.example', got {text!r}")
        for host in hosts.split():
            try:
                known = urls.parts(urls.canonical(f"https://{host.strip('.')}/")).host
            except UrlError:
                raise ConfigError(f"{FIELD}: expected a host, got {host!r}") from None
            found[known] = f"group {name.strip()}"  # no host has a blank in its name
    return found


def queue_of(queue: str, groups: Mapping[str, str]) -> str:
    """The queue that a host shares, by its own name or that of a domain above it; else its own."""
    name = urls.host_of(queue)
    while name:
        if name in groups:
            return groups[name]
        name = name.partition(".")[2]
    return queue
