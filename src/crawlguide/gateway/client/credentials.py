"""What a client shows to a server: a token, and for TLS an authority to trust and a certificate of its own.

Each is an argument, else an environment variable; a token may also lie in a file that only its owner can read.
"""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from crawlguide.gateway.client.transport import Shown

TOKEN, CA = "CRAWLGUIDE_TOKEN", "CRAWLGUIDE_CA"
CERTIFICATE, CERTIFICATE_KEY = "CRAWLGUIDE_CERTIFICATE", "CRAWLGUIDE_CERTIFICATE_KEY"


def token_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "crawlguide" / "token"


def found_token(given: str | None) -> str | None:
    """The token that is given, in the environment or in the file. Raises `ConfigError` for what can be none."""
    text = given or os.environ.get(TOKEN) or _read(token_file())
    if text is not None and not (text.isascii() and text.isprintable() and " " not in text):
        raise ConfigError("token: expected an API key or a token, got something with blanks or odd characters")
    return text


def _read(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"token: others can read {path}; run `chmod 600 {path}`")
        return path.read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"token: {path} cannot be read: {problem}") from None


class Files(NamedTuple):
    """An authority to trust in place of the usual ones; a certificate with its key, which may lie in one file."""

    ca: str | None
    certificate: str | None
    key: str | None


def files(shown: Shown) -> Files:
    """Those that are given, or in the environment."""
    return Files(
        shown.get("ca") or os.environ.get(CA),
        shown.get("certificate") or os.environ.get(CERTIFICATE),
        shown.get("certificate_key") or os.environ.get(CERTIFICATE_KEY),
    )


def trust(files: Files) -> ssl.SSLContext:
    """How servers are known, and what they are shown: for https alone."""
    ca, certificate, key = files
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError(f"ca: {ca} holds no certificates that can be read: {problem}") from None
    if certificate:
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as problem:
            raise ConfigError(f"certificate: {certificate} cannot be used: {problem}") from None
    return context
