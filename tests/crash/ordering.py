"""`python -m tests.crash.ordering`: no acknowledgement leaves the server before its log is synced, seen by strace.

A killed process loses nothing that the kernel has; only the order of system calls shows what a power loss would take.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.crash import durability, fleet, trace, wire
from tests.crash.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import httpx

CLIENTS = 8
LINKS = 3
CRAWL = "order"
ASKED = "asked"  # a crawl of its own: an answer that names what a tell found would look like its ack
ASKS_ONCE_IN = 5
LONGEST_TEXT = 1_000_000
PRETEND = "inject=fsync,fdatasync:retval=0"


class Refused(Exception):
    """A tell got no acknowledgement."""


def main(words: Sequence[str] | None = None) -> int:
    options = _options(words)
    folder = Path(tempfile.mkdtemp(prefix="ordering-"))
    verdict = asyncio.run(run(folder, options.one_by_one, options.together, pretend=options.pretend))
    sys.stdout.write(f"{verdict}\n")
    if verdict.good:
        shutil.rmtree(folder)
        return 0
    early = [*verdict.early[:10], *verdict.early_grants[:10]]
    sys.stdout.write(f"  early {early}, untraced {verdict.untraced[:10]}; the trace is in {folder}\n")
    return 1


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.crash.ordering", description=__doc__)
    parser.add_argument("--one-by-one", type=int, default=100, help="tells of one client, one after another")
    parser.add_argument("--together", type=int, default=300, help="tells of eight clients at once")
    parser.add_argument("--pretend", action="store_true", help="let syncs do nothing: then every ack must be early")
    return parser.parse_args(words)


async def run(folder: Path, one_by_one: int, together: int, pretend: bool = False) -> durability.Verdict:
    """Speak to a traced server; the verdict on its trace."""
    file = folder / "trace.txt"
    server = Server(folder, str(folder / "data"), around=tracer(file, pretend))
    try:
        await server.start()
        async with fleet.connection(server.port) as http:
            numbers = count()
            for crawl in (CRAWL, ASKED):
                defined = await http.put(
                    f"/v1/crawls/{crawl}", json={"policy": {"robots": "ignore"}}
                )  # nobody is there
                defined.raise_for_status()
            seeds = {"urls": [f"https://h{number}.example/" for number in range(one_by_one + together)]}
            (await http.post(f"/v1/crawls/{ASKED}/seeds", json=seeds)).raise_for_status()
            await _speak(http, numbers, one_by_one)
            await asyncio.gather(*(_speak(http, numbers, together // CLIENTS) for _ in range(CLIENTS)))
        await server.end()
    finally:
        await server.kill()
    with file.open(errors="replace") as lines:
        return durability.judge(trace.read(line.rstrip("\n") for line in lines))


def tracer(file: Path, pretend: bool) -> tuple[str, ...]:
    calls = f"trace={','.join(trace.TRACED)}"
    command = ("strace", "-f", "--seccomp-bpf", "-ttt", "-yy", "-s", str(LONGEST_TEXT), "-e", calls, "-o", str(file))
    return (*command, "-e", PRETEND) if pretend else command


async def _speak(http: httpx.AsyncClient, numbers: Iterator[int], times: int) -> None:
    """Tell, and now and then ask."""
    for _ in range(times):
        number = next(numbers)
        told = await _send(http, _tell(durability.token(durability.TOLD, number)))
        if told["accepted"] != 1:
            raise Refused(f"tell {number} was not accepted: {told}")
        if number % ASKS_ONCE_IN == 0:
            asked = await _send(http, _ask(durability.token(durability.ASKED, number)))
            if not asked["assigned_urls"]:
                raise Refused(f"ask {number} was given nothing: {asked}")


async def _send(http: httpx.AsyncClient, call: wire.Call) -> dict[str, Any]:
    response = await http.post(call.path, json=call.body)
    if response.status_code != 200:
        raise Refused(f"{call.operation}: {response.status_code} {response.text}")
    answer: dict[str, Any] = response.json()
    return answer


def _tell(token: str) -> wire.Call:
    """A tell that has its token everywhere: wherever the log cuts a record in two, one of them stays whole."""
    page = f"https://{token}.example/{token}"
    outlinks = [{"url": f"{page}/{number}", "anchor": token} for number in range(LINKS)]
    return wire.tell(token, CRAWL, "c-1", [{"url": page, "status": 200, "outlinks": outlinks}])


def _ask(token: str) -> wire.Call:
    return wire.ask(token, ASKED, f"c-{token}", {"max_urls": 1, "timeout_ms": 60_000}, {})


if __name__ == "__main__":
    sys.exit(main())
