"""API keys: random, shown once, kept as hashes in a file that only its owner can read.

A key is `cg_NAME_SECRET`. The secret has 256 random bits, so that one round of SHA-256 keeps it as well as many would.
The file lies beside the data and not in it: keys are made while a server runs, and it reads the file again when it has
changed. Once there was a file, no key means nobody: to delete it lets nobody in, and no server begins without it.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.clock import iso
from crawlguide.core.errors import ConfigError, NotFound, Unauthenticated
from crawlguide.core.stable import put_in_place
from crawlguide.gateway.access.credential import Credential, Grant, checked_tenant, grants_of
from crawlguide.gateway.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFIX = "cg"
FILE = "keys.json"
KEY = re.compile(rf"{PREFIX}_(?P<name>[0-9a-f]{{12}})_(?P<secret>[0-9A-Za-z]{{43}})")
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
REFUSED = "the API key is not one of this server's, or was revoked; `crawlguide keys create` makes them there"


class ApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a key."""

    name: str
    hash: str  # SHA-256 of the secret
    tenant: str
    scopes: list[str]  # such as `ask` or `read@news-*`
    created: str
    expires: float | None = None
    crawler_id: str | None = None
    note: str = ""

    def credential(self) -> Credential:
        ends = float("inf") if self.expires is None else self.expires
        return Credential(f"key {self.name}", self.tenant, grants_of(self.scopes), self.crawler_id, ends)


class ApiKeys:
    """The keys of one file, as it is now."""

    def __init__(self, path: Path) -> None:
        self._file = WatchedFiles([path], lambda: _read(path))
        self.path = path

    @property
    def were_there(self) -> bool:
        """Whether somebody has ever made or revoked a key of this file."""
        return _lock(self.path).exists()

    @property
    def configured(self) -> bool:
        """Whether there is, or was since this server began, a file of keys."""
        return self._file.content() is not None

    @property
    def version(self) -> int:
        """Of the file, as it is now."""
        self._file.content()
        return self._file.version

    def credential(self, text: str) -> Credential:
        """Whose key this is. Raises `Unauthenticated`."""
        found = KEY.fullmatch(text)
        if found is None:
            raise Unauthenticated(REFUSED)
        kept, credential = self._kept(found["name"])
        if not hmac.compare_digest(_hash(found["secret"]), kept) or credential is None:
            raise Unauthenticated(REFUSED)
        return credential

    def _kept(self, name: str) -> tuple[str, Credential | None]:
        """One that is not known may have been made a moment ago."""
        found = (self._file.content() or {}).get(name) or (self._file.content(newest=True) or {}).get(name)
        return found or (_hash(""), None)


def claimed(authorization: str) -> str | None:
    """The name of the key that somebody shows, right or wrong."""
    found = KEY.search(authorization)
    return found and f"key {found['name']}"


def create(
    path: Path,
    grants: Sequence[Grant],
    tenant: str,
    *,
    days: float | None = None,
    crawler_id: str | None = None,
    note: str = "",
) -> tuple[str, ApiKey]:
    """A new key, and what is kept of it. The text is nowhere else: whoever loses it makes another."""
    secret = "".join(secrets.choice(ALPHABET) for _ in range(43))
    expires = None if days is None else time.time() + days * 86_400.0
    key = ApiKey(
        name=secrets.token_hex(6),
        hash=_hash(secret),
        tenant=checked_tenant(tenant),
        scopes=[str(grant) for grant in grants],
        created=iso(time.time()),
        expires=expires,
        crawler_id=crawler_id,
        note=note,
    )
    with _edited(path) as keys:
        keys.append(key)
    return f"{PREFIX}_{key.name}_{secret}", key


def revoke(path: Path, name: str) -> ApiKey:
    """Forget a key. A server that runs refuses it from its next look at the file on, within a second."""
    if not path.exists():  # nothing is made of a mistake: a file that was there is missed by the next server
        raise _unknown(name, [])
    with _edited(path) as keys:
        found = next((key for key in keys if key.name == name), None)
        if found is None:
            raise _unknown(name, keys)
        keys.remove(found)
    return found


def _unknown(name: str, keys: Sequence[ApiKey]) -> NotFound:
    known = ", ".join(key.name for key in keys[:20]) or "none"
    return NotFound(f"keys: no key is named {name[:80]!r}; there are: {known}")


def listed(path: Path) -> list[ApiKey]:
    return _decoded(path.read_bytes(), path) if path.exists() else []


def _read(path: Path) -> dict[str, tuple[str, Credential]]:
    return {key.name: (key.hash, key.credential()) for key in _decoded(path.read_bytes(), path)}


def _decoded(text: bytes, path: Path) -> list[ApiKey]:
    try:
        return msgspec.json.decode(text, type=list[ApiKey])
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{path}: not a file of keys: {wrong}") from None


@contextmanager
def _edited(path: Path) -> Iterator[list[ApiKey]]:
    """The keys, to be changed by one process at a time and written whole."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _lock(path).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = listed(path)
            yield keys
            write_privately(path, msgspec.json.format(msgspec.json.encode(keys)))
    except OSError as problem:
        raise ConfigError(f"keys: {path} cannot be written: {problem.strerror}") from None


def _lock(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def write_privately(path: Path, content: bytes) -> None:
    """A file that only its owner can read, whole or not at all."""
    half = path.with_name(f".{path.name}.half")
    half.unlink(missing_ok=True)
    with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - with its mode
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    put_in_place(half, path)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
