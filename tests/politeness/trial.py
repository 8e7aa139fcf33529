"""One trial: hosts, a served guide, a fleet; then what the hosts saw.

python -m tests.politeness.trial --seconds 60 [usual] [killed] [strict] [strict-killed]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import httpx

from tests.crash.server import PATH, Server
from tests.politeness import web
from tests.politeness.crawlers import Fleet
from tests.politeness.judged import Verdict, judged
from tests.politeness.served import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CRAWL = "fleet"
SLACK_S = 0.05  # so much shorter than the delay may a gap be, since crawlers start within 20 ms
UTILISATION = 0.95
SHORT_S = 30.0
FEWEST_GAPS = 100  # fewer prove nothing
NAMES = ["usual", "killed", "strict", "strict-killed"]
CONFIG = '[outgoing]\nallow_networks = ["127.0.0.0/8"]\nports = [{port}]\n[server]\nlog_level = "warning"\n'


@dataclass(frozen=True)
class Trial:
    folder: Path
    seconds: float
    strict: bool = False
    killed: bool = False
    hosts: int = web.HOSTS
    crawlers: int = 16

    async def run(self) -> Verdict:
        """What the hosts saw. Others on this machine have to wait: what they do says nothing about the guide."""
        with _urgently():
            return await self._run()

    async def _run(self) -> Verdict:
        port = free_port()
        (self.folder / "crawlguide.toml").write_text(CONFIG.format(port=port))
        server = Server(self.folder, str(self.folder / "data"))
        log = self.folder / "seen.json"
        async with _hosts(port, self.hosts, log):
            try:
                await server.start()
                fleet = await self._fleet(server, port)
            finally:
                await server.end()
        seen = [tuple(one) for one in json.loads(log.read_text())]
        return judged(web.hosts(port, self.hosts), seen, fleet.starts, fleet.ends)

    async def _fleet(self, server: Server, port: int) -> Fleet:
        await self._defined(server.port, port)
        fleet = Fleet(server.port, CRAWL, time.monotonic() + self.seconds, self.crawlers)
        working = asyncio.create_task(fleet.work())
        if self.killed:
            await asyncio.sleep(self.seconds / 2)
            await server.kill()
            await server.start()
        await working
        return fleet

    async def _defined(self, guide: int, port: int) -> None:
        policy: dict[str, Any] = {"default_delay_s": web.SHORTEST_S, "strict": self.strict, "user_agent": "fleet"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{guide}", trust_env=False) as http:
            definition = {"policy": policy, "strategy": {"kind": "breadth-first"}}
            (await http.put(f"/v1/crawls/{CRAWL}", json=definition)).raise_for_status()
            seeds = [f"{host.url}/" for host in web.hosts(port, self.hosts)]
            (await http.post(f"/v1/crawls/{CRAWL}/seeds", json={"urls": seeds})).raise_for_status()


@contextmanager
def _urgently() -> Iterator[None]:
    """This process and those it starts go before others, as far as it is permitted."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, usual)


@asynccontextmanager
async def _hosts(port: int, count: int, log: Path) -> AsyncIterator[None]:
    command = (sys.executable, "-m", "tests.politeness.served", str(port), str(count), str(log))
    process = await asyncio.create_subprocess_exec(*command, env=os.environ | {"PYTHONPATH": PATH})
    try:
        while not log.with_suffix(".ready").exists():
            assert process.returncode is None, "the hosts could not be served"
            await asyncio.sleep(0.01)
        yield
    finally:
        process.terminate()
        await process.wait()


def holds(found: Verdict, strict: bool) -> bool:
    """With strict politeness no gap is too short at all, and hosts wait for what is on its way."""
    if strict:
        return found.short_s == 0.0 and found.unexplained_s == 0.0
    return found.short_s <= SLACK_S and found.unexplained_s <= SLACK_S and found.utilisation >= UTILISATION


def passed(name: str, seconds: float, tries: int) -> bool:
    """A busy machine may spoil the timing of one trial, so the best of some tries counts."""
    strict, killed = "strict" in name, "killed" in name
    for _ in range(tries):
        with TemporaryDirectory() as folder:
            found = asyncio.run(Trial(Path(folder), seconds, strict, killed).run())
        if killed and seconds < SHORT_S:  # the start of a guide is long beside so short a trial
            found = replace(found, utilisation=1.0)
        well = holds(found, strict) and found.gaps > FEWEST_GAPS
        sys.stdout.write(f"{'ok    ' if well else 'FAILED'} {name}: {found}\n")
        if well:
            return True
    return False


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trials", nargs="*", choices=NAMES, default=NAMES)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--tries", type=int, default=1, help="of each trial; the best counts")
    given = options.parse_args()
    outcomes = [passed(name, given.seconds, given.tries) for name in given.trials]
    return int(not all(outcomes))


if __name__ == "__main__":
    sys.exit(main())
