"""What goes over a bus, whatever its kind: names, messages in and out, what a kind of bus has to do, its settings."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol
from urllib.parse import quote, urlsplit

import msgspec

from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.config import BusOptions

PREFIX = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
LONGEST_NAME = 249  # of a topic
VERBS = ("next", "report")
NATS_SCHEMES = ("nats", "tls", "ws", "wss")
SHOWN_HEADERS = " !#$&'()*+,/:;<=>?@[]^`{|}\"\\"  # what stands in a header as it is, besides letters, digits and _.-~


# Takes a body and headers; nothing happens if nobody waits any more.
Respond = Callable[[bytes, dict[str, str]], Awaitable[None]]


class BusAway(Exception):
    """The bus cannot be reached, or does not do what it is asked to. What is under way comes again."""


class TooLargeForBus(Exception):
    """The bus does not carry messages of this size."""


class Received(NamedTuple):
    """A message for the guide. `delivery_id` is its own in this bus, for ever: if it comes again, it has the same."""

    verb: str
    subject: str
    body: bytes
    headers: Mapping[str, str]  # by names in small letters
    delivery_id: str = ""  # empty: it never comes again
    respond: Respond | None = None  # to somebody who waits for the answer now
    handle: Any = None  # by which the connection acknowledges it


class BusMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message of the guide."""

    place: Literal["answers", "events", "dead"]
    tenant: str
    subject_end: str  # its last level, where subjects have many
    partition_key: str  # messages of one key stay in order, where there are partitions
    body: bytes
    headers: dict[str, str]
    reply_to: str = ""  # a place within the tenant's answers that the crawler has named


class Connection(Protocol):
    """A connection to a bus, from `connect` until anything raises `BusAway`; then a new one is made."""

    kind: str

    async def connect(self, on_request: Callable[[Received], None], /) -> None:
        """`on_request` is given what somebody waits for at once."""

    async def receive(self, most: int) -> Sequence[Received]:
        """Some messages that the bus keeps, or none for now."""

    async def done(self, received: Received) -> None:
        """It need not come again."""

    async def later(self, received: Received, delay_s: float, aside: bool = False) -> None:
        """It comes again, not before. `aside`: it takes no place of those that are received meanwhile."""

    async def publish(self, outgoing: Sequence[BusMessage]) -> None:
        """Returns when the bus keeps all of them. Raises `TooLargeForBus`."""

    async def close(self) -> None: ...


class Names:
    """Subjects and topics: all begin with the prefix, and those of a tenant hold its name."""

    def __init__(self, prefix: str) -> None:
        if not PREFIX.fullmatch(prefix) or len(prefix) > 100:
            words = "expected up to 100 letters, digits, - and _, in parts with a dot between"
            raise ConfigError(f"bus.prefix: {words}, got {prefix[:80]!r}")
        self.prefix = prefix

    def of(self, place: str, tenant: str) -> str:
        if place == "dead":
            return f"{self.prefix}.dead"
        return f"{self.prefix}.{place}.{tenant_part(tenant)}"

    def is_own(self, reply_to: str, tenant: str) -> bool:
        """Whether answers to a tenant may go there."""
        is_name = PREFIX.fullmatch(reply_to) is not None and len(reply_to) <= LONGEST_NAME
        return is_name and reply_to.startswith(self.of("answers", tenant) + ".")


def tenant_part(tenant: str) -> str:
    """Without dots, so that no tenant's places lie within another's; names of tenants have no capital letters."""
    return tenant.replace(".", "DOT")


def token(text: str) -> str:
    """One level of a subject of NATS."""
    return quote(text, safe="").replace(".", "%2E").replace("~", "%7E") or "_"


def header(text: str) -> str:
    """What can stand in a header: printable ASCII, anything else in %XX."""
    return quote(text, safe=SHOWN_HEADERS)


class Server(NamedTuple):
    """Where one is."""

    host: str
    port: int | None  # None: the usual one


def addresses(text: str) -> list[str]:
    """The addresses in a setting, which has commas between them."""
    return [one for one in map(str.strip, text.split(",")) if one]


def server_at(address: str) -> Server | None:
    """Where an address with or without a scheme leads; None: nowhere."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return Server(parts.hostname, parts.port) if parts.hostname else None
    except ValueError:  # a port or an IPv6 address that is none
        return None


def check(options: BusOptions) -> None:
    """Addresses that cannot be any, and files that are not there, are refused at the start. Raises `ConfigError`."""
    Names(options.prefix)
    for address in addresses(options.nats):
        if address.partition("://")[0] not in NATS_SCHEMES or server_at(address) is None:
            raise ConfigError(f"bus.nats: expected nats://HOST:PORT, got {without_secrets(address)[:80]!r}")
    for address in addresses(options.kafka):
        found = None if "/" in address else server_at(address)
        if found is None or found.port is None:
            raise ConfigError(f"bus.kafka: expected HOST:PORT, several with commas between, got {address[:80]!r}")
    for name in ("nats_credentials", "tls_ca"):
        if (file := getattr(options, name)) and not Path(file).is_file():
            raise ConfigError(f"bus.{name}: no such file: {file}")
    if options.nats_credentials and not _is_installed("nkeys"):
        raise ConfigError("bus.nats_credentials: this needs nkeys, which is not installed: pip install nkeys")


def _is_installed(package: str) -> bool:
    try:
        import_module(package)
    except ModuleNotFoundError:
        return False
    return True
