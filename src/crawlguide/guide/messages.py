"""What is looked at in every message: its version, and whether it came before."""

from __future__ import annotations

from typing import Any

import msgspec
import xxhash

from crawlguide.core.errors import UnsupportedVersion
from crawlguide.core.messages import VERSION


def check_version(version: str) -> None:
    if version != VERSION:
        raise UnsupportedVersion(f"mcp_version: expected {VERSION!r}, got {version[:40]!r}", field="mcp_version")


def digest(message: Any) -> bytes:
    """What makes two messages the same: all they say, whatever the order of their keys."""
    return xxhash.xxh3_128_digest(msgspec.json.encode(message, order="deterministic"))
