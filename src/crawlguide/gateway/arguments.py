"""What people type: folders, addresses, names of crawls. What cannot be one is said before anything is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.messages import crawl_id

if TYPE_CHECKING:
    from pathlib import Path

SCHEMES = {"http": 80, "https": 443, "grpc": 8081, "grpcs": 8081}  # with the port of an address that names none


def kept(path: Path) -> Path:
    """The folder, unless nothing in it would be kept."""
    if str(path) == ":memory:":
        raise ConfigError("data: expected a folder, got :memory:, where nothing is kept")
    return path


def existing(path: Path) -> Path:
    """The folder, if it was served before: what only reads should not make an empty one."""
    if not (kept(path) / "CURRENT").is_file():
        raise ConfigError(f"data: expected a folder that crawlguide has written, got {path}: there is none")
    return path


def address(text: str, option: str = "--url") -> str:
    """The URL of a server, without a slash at its end."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in SCHEMES and parts.hostname and (parts.port is None or parts.port > 0)
        over_grpc = parts.scheme.startswith("grpc")  # which knows no paths, and no passwords in an address
        good = good and not (over_grpc and (parts.path.strip("/") or parts.username))
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise ConfigError(f"{option}: expected one such as http://127.0.0.1:8080, got {text[:200]!r}")
    return text.rstrip("/")


def bracketed(host: str) -> str:
    """A host as it stands before a port: IPv6 addresses have brackets there."""
    return f"[{host}]" if ":" in host else host


def crawl_name(text: str) -> str:
    try:
        return crawl_id(text)
    except MalformedRequest:
        expected = "text of 1 to 200 characters without slash"
        raise ConfigError(f"--crawl: expected {expected}, got {text[:80]!r}") from None


def readable(path: Path) -> Path:
    """The file or folder to read, or `-`."""
    if str(path) != "-" and not path.exists():
        raise ConfigError(f"{path}: no such file")
    return path
