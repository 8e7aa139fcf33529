"""A server that wants credentials, and the keys with which tests come in."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.conftest import NO_ROBOTS, SCRIPT, Served, serving

from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WITHIN_S = 10.0
RATES = ("REQUESTS_PER_S", "ADDRESS_REQUESTS_PER_S", "ADDRESS_FAILURES_PER_S")
NO_LIMITS = {f"CRAWLGUIDE_ACCESS_{name}": "0" for name in RATES}


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
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # for this server and none that is started while it runs
            for name, text in settings.items():
                patch.setenv(name, text)
            server = stack.enter_context(serving(folder, data))
        yield Guarded(server, data)


def run(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command line, as somebody types it who has no token anywhere but here."""
    bare = {name: text for name, text in os.environ.items() if not name.startswith("CRAWLGUIDE")}
    env = {**bare, "XDG_CONFIG_HOME": str(cwd / "config"), **NO_ROBOTS, **environment}
    return subprocess.run(
        [str(SCRIPT), *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def until(happens: Callable[[], bool]) -> bool:
    ends = time.monotonic() + WITHIN_S
    while time.monotonic() < ends and not happens():
        time.sleep(0.05)
    return happens()


def audited(data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / "access" / "audit.jsonl").read_text().splitlines()]
