"""Hosts that share a politeness queue: those of one address, or of one owner who counts their visitors together."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

from crawlguide.core import urls
from crawlguide.core.errors import ConfigError, UrlError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.config import StoreOptions
    from crawlguide.store.tables.keyspace import Keyspace

FIELD = "store.politeness_groups"
MOST_AT_ADDRESS = 10_000  # hosts; of more the one that was found there first is forgotten
ADDRESS_MARK, GROUP_MARK = "ip ", "group "  # no host has a blank in its name


class Sharing(NamedTuple):
    """Which hosts share a queue: those of a named group, and if `by_address` all others of one address."""

    groups: Mapping[str, str] = {}
    by_address: bool = False


ALONE = Sharing()


def sharing(options: StoreOptions) -> Sharing:
    return Sharing(read(options.politeness_groups), options.politeness_queue == "ip")


def read(texts: Sequence[str]) -> dict[str, str]:
    """The queue of each host or domain that a group names: "shops = a.example b.example"."""
    queues: dict[str, str] = {}
    for text in texts:
        name, mark, hosts = text.partition("=")
        if not mark or not name.strip() or not hosts.split():
            raise ConfigError(f"{FIELD}: expected a name and hosts such as 'shops = a.example b.example', got {text!r}")
        for host in hosts.split():
            try:
                canonical = urls.parts(urls.canonical(f"https://{host.strip('.')}/")).host
            except UrlError:
                raise ConfigError(f"{FIELD}: expected a host, got {host!r}") from None
            queues[canonical] = f"{GROUP_MARK}{name.strip()}"
    return queues


def queue_of(queue: str, groups: Mapping[str, str]) -> str:
    """The queue that a host shares, by its own name or that of a domain above it; else its own."""
    name = urls.host_of(queue)
    while name:
        if name in groups:
            return groups[name]
        name = name.partition(".")[2]
    return queue


class Addresses:
    """The queue of each host whose address is known; bounded by the queues in use, and at each address."""

    def __init__(self, keyspace: Keyspace, used: bool) -> None:
        self._keyspace, self._used = keyspace, used
        self._queue_of: dict[str, str] = {}  # by the host's own queue
        self._hosts_at: dict[str, dict[str, None]] = {}  # in the order in which they were found there

    def load(self) -> None:
        if self._used:
            for host, queue in self._keyspace.items():
                self._add(host.decode(), queue.decode())

    def queue_of(self, host: str) -> str:
        """The queue that a host shares with all at its address; its own where that is not known yet."""
        if not self._used:
            return host
        return self._queue_of.get(host) or (queue_at(urls.host_of(host)) if _may_be_address(host) else None) or host

    def locate(self, host: str, address: str) -> bool:
        """A host is at an address; True if that is new."""
        queue = queue_at(address) if self._used else None
        if queue is None or self._queue_of.get(host) == queue or _may_be_address(host):
            return False
        self._leave(host)
        self._add(host, queue)
        self._keyspace.put(host.encode(), queue.encode())
        if len(self._hosts_at[queue]) > MOST_AT_ADDRESS:
            self._leave(next(iter(self._hosts_at[queue])))
        return True

    def forget(self, queue: str) -> None:
        """Nobody knows the queue of an address any more: its hosts are located anew."""
        for host in list(self._hosts_at.get(queue, ())):
            self._leave(host)

    def _add(self, host: str, queue: str) -> None:
        self._queue_of[host] = queue
        self._hosts_at.setdefault(queue, {})[host] = None

    def _leave(self, host: str) -> None:
        """Nobody knows where a host is; it has a queue of its own again until it is located anew."""
        queue = self._queue_of.pop(host, None)
        if queue is None:
            return
        self._keyspace.delete(host.encode())
        del self._hosts_at[queue][host]
        if not self._hosts_at[queue]:
            del self._hosts_at[queue]


def queue_at(address: str) -> str | None:
    """The queue of an address, in whatever form it is written; None for what is no address."""
    try:
        parsed = ip_address(address.strip("[]"))
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return f"{ADDRESS_MARK}{parsed}"


def _may_be_address(queue: str) -> bool:
    """Cheap, and right for the hosts of canonical URLs: an IPv4 address ends in a digit, and no other host does."""
    return queue.startswith("[") or urls.host_of(queue)[-1:].isdigit()
