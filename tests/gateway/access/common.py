"""A server that wants credentials, and the keys with which tests come in."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from tests.gateway.conftest import NO_ROBOTS, SCRIPT, Served, serving

from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Guarded:
    """A server with its data folder."""

    server: Served
    data: Path

    @property
    def keys(self) -> Path:
        return self.data / "access" / api_keys.FILE

    def key(self, *scopes: str, crawl: str = "*", tenant: str = "default", **more: Any) -> str:
        text, _ = api_keys.create(self.keys, grants_of(scopes, crawl), tenant, **more)
        return text

    def client(self, token: str | None = None, **more: Any) -> httpx.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.server.url, headers=headers, timeout=30.0, trust_env=False, **more)


@contextmanager
def guarding(folder: Path, **settings: str) -> Iterator[Guarded]:
    """A server that knows one key already, so that it wants one from the start."""
    data = folder / "data"
    api_keys.create(data / "access" / api_keys.FILE, grants_of(["admin"]), "default")
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        with serving(folder, data) as server:
            yield Guarded(server, data)
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, as somebody types it who has no token anywhere but here."""
    bare = {name: text for name, text in os.environ.items() if not name.startswith("CRAWLGUIDE")}
    env = {**bare, "XDG_CONFIG_HOME": str(cwd / "config"), **NO_ROBOTS, **environment}
    return subprocess.run(
        [str(SCRIPT), *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def audited(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "access" / "audit.jsonl").read_text().splitlines()]
