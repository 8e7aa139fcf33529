"""What can be said of the settings of a bus before it is looked for; takes nothing but the base install."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import without_secrets
from crawlguide.gateway.bus.messages import Names

if TYPE_CHECKING:
    from crawlguide.core.config import BusOptions


def check(options: BusOptions) -> None:
    """Addresses that cannot be any, and files that are not there, are refused at the start. Raises `ConfigError`."""
    Names(options.prefix)
    for address in filter(None, (one.strip() for one in options.nats.split(","))):
        scheme, _, rest = address.partition("://")
        if scheme not in ("nats", "tls", "ws", "wss") or not rest.strip("/"):
            raise ConfigError(f"bus.nats: expected nats://HOST:PORT, got {without_secrets(address)[:80]!r}")
    for address in filter(None, (one.strip() for one in options.kafka.split(","))):
        host, _, port = address.rpartition(":")
        if not host or "/" in address or not port.isdigit():
            raise ConfigError(f"bus.kafka: expected HOST:PORT, several with commas between, got {address[:80]!r}")
    for name in ("nats_credentials", "tls_ca"):
        if (file := getattr(options, name)) and not Path(file).is_file():
            raise ConfigError(f"bus.{name}: no such file: {file}")
