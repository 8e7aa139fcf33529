"""Runs inside the namespace: leads requests of our own astray in every way there is, and says where they went.

python -m tests.ssrf.inside < urls.json
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from crawlguide.core import urls
from crawlguide.core.config import OutgoingOptions as Options
from crawlguide.core.errors import UrlError
from crawlguide.guide.robots.outgoing import Outgoing
from crawlguide.policy.addresses import is_public
from tests.crash.server import Server
from tests.ssrf.canary import REDIRECT, Canary

if TYPE_CHECKING:
    from collections.abc import Sequence

PUBLIC = "93.184.215.14"
SECRETS = ("127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fd00:ec2::254", "::ffff:192.168.0.1")
CONTROL = ("10.99.99.99", 9)  # somebody does connect there, to show that it would be heard
REBINDINGS = 1_000
SERVED_FOR_S = 6.0
OPTIONS = Options(ports=(), timeout_s=1.0)


@dataclass
class Resolver:
    """`site.test` is public, `rebind…` leads elsewhere whenever it is asked again, all others lead to secrets."""

    turn: count[int] = field(default_factory=count)
    asked: dict[str, int] = field(default_factory=dict)

    async def __call__(self, host: str, _: int) -> Sequence[str]:
        secret = SECRETS[next(self.turn) % len(SECRETS)]
        self.asked[host] = self.asked.get(host, 0) + 1
        if host == "site.test":
            return [PUBLIC]
        if not host.startswith("rebind"):
            return [secret]
        ways = ([PUBLIC], [secret], [PUBLIC, secret], [secret, PUBLIC])
        return ways[0] if self.asked[host] == 1 and host.startswith("rebind-late") else ways[next(self.turn) % 4]


async def main(hostile: list[str]) -> None:
    canary = Canary(hostile)
    canary.listen()
    for address in ("0.0.0.0", "::"):
        for port in (80, 443, 8080):
            await asyncio.start_server(canary.answer, address, port)
    with contextlib.suppress(OSError):
        await asyncio.open_connection(*CONTROL)
    control = CONTROL in canary.tried
    canary.tried.clear()
    fetcher = Outgoing(OPTIONS, Resolver())
    for url in filter(None, map(known, hostile)):
        await fetcher.get(url, "bot", 1_000)
    for number in range(len(hostile)):
        await fetcher.get(f"http://site.test{REDIRECT}{number}", "bot", 1_000)
    for number in range(REBINDINGS):
        name = f"rebind{'-late' if number % 2 else ''}-{number}.test"
        await fetcher.get(f"http://{name}/", "bot", 1_000)
        await fetcher.get(f"http://{name}/again", "bot", 1_000)
    door = await served(hostile)
    await asyncio.sleep(0.1)
    secret = sorted(place for place in canary.tried if not is_public(place[0]) and place[1] != door)
    public = len({place for place in canary.tried if is_public(place[0])})
    report = {"control": control, "secret": secret, "public": public, "requests": canary.requests}
    sys.stdout.write(json.dumps(report))


def known(url: str) -> str | None:
    try:
        return urls.canonical(url)
    except UrlError:
        return None


async def served(hostile: list[str]) -> int:
    """A whole server that obeys robots.txt and is given these URLs; returns its own port, to which we connect."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "crawlguide.toml").write_text("[outgoing]\nports = []\ntimeout_s = 2\n")
        server = Server(Path(folder), ":memory:")
        try:
            await server.start()
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as http:
                seeds = {"urls": [url for url in hostile if known(url)]}
                (await http.post("/v1/crawls/default/seeds", json=seeds)).raise_for_status()
                ask = {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 1_000}}
                ends = asyncio.get_running_loop().time() + SERVED_FOR_S
                while asyncio.get_running_loop().time() < ends:
                    (await http.post("/v1/next", json=ask)).raise_for_status()
                    await asyncio.sleep(0.5)
        finally:
            await server.end()
    return server.port


if __name__ == "__main__":
    socket.setdefaulttimeout(5.0)
    asyncio.run(main(json.load(sys.stdin)))
