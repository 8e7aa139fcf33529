"""Send random requests for so long, count what is answered, and fail where the server is at fault.

    .venv/bin/python -m tests.fuzz.run [--seconds 60] [--seed 1]

At fault means: a status of 5xx other than 503, or its like in gRPC, no answer at all, a traceback in
its log, an end of its process, or more memory than a bound. The last request is shown, and what the server said.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.request import urlopen

from crawlguide.gateway.grpc import guide_pb2
from crawlguide.gateway.urlfrontier import urlfrontier_pb2
from tests.fuzz.doors import HttpDoor, PackedSocketDoor, SocketDoor
from tests.fuzz.grpc_door import GrpcDoor
from tests.fuzz.values import Values
from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.gateway.conftest import Served

MOST_BYTES = 1_500 * 1024 * 1024
SHARES = (20, 2, 2, 2, 4)  # of HTTP, sockets, packed sockets, URLFrontier, gRPC
OPTIONS = ("--frontier-port", "0", "--grpc-port", "0")
LOOKED_EVERY = 500
SHOWN, MUCH = 2_000, 12_000
SAID_WITHIN_S = 2.0  # the traceback of a fault comes into the log after its answer


class AtFaultError(Exception):
    """The server did what it never should."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz.run", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, opened(Path(folder)) as served:
        try:
            fuzz(served, options.seconds, Random(options.seed), counts)
        except AtFaultError as fault:
            say(f"at fault: {fault}")
            return 1
        finally:
            answers = ", ".join(f"{count} × {what}" for what, count in sorted(counts.items()))
            say(f"{sum(counts.values())} requests with seed {options.seed}: {answers}")
            say(f"{memory_bytes(served) >> 20} MiB of memory")
    return 0


@contextmanager
def opened(folder: Path) -> Iterator[Served]:
    """A server with every door that can be opened without another server."""
    with serving(folder, folder / "data", options=OPTIONS) as served:
        yield served


def fuzz(served: Served, seconds: float, chance: Random, counts: Counter[str]) -> None:
    doors = doors_of(served, chance)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        (door,) = chance.choices(doors, SHARES)
        what, sent = door.send()
        counts[what] += 1
        if "no answer" in what or (what.startswith("5") and what != "503") or "fault" in what:
            time.sleep(SAID_WITHIN_S)
            raise AtFaultError(f"{what} to {sent[:SHOWN]!r}\n{served.said()[-MUCH:]}")
        if sum(counts.values()) % LOOKED_EVERY == 0:
            check(served, sent)
    check(served, b"")


def doors_of(served: Served, chance: Random) -> list[HttpDoor | SocketDoor | GrpcDoor]:
    """As many as there are shares."""
    with urlopen(f"{served.url}/openapi.json") as answer:
        document = json.load(answer)
    values, port = Values(document, chance), served.port
    ready = json.loads((served.stderr.parent / "ready.json").read_text())
    frontier = urlfrontier_pb2.DESCRIPTOR.services_by_name["URLFrontier"]
    return [
        HttpDoor(port, document, values, chance),
        SocketDoor(port, document, values, chance),
        PackedSocketDoor(port, document, values, chance),
        GrpcDoor(ready["frontier_port"], frontier, chance),
        GrpcDoor(ready["grpc_port"], guide_pb2.DESCRIPTOR.services_by_name["Guide"], chance),
    ]


def check(served: Served, sent: bytes) -> None:
    if served.process.poll() is not None:
        raise AtFaultError(
            f"it ended with {served.process.returncode} after {sent[:SHOWN]!r}: {served.said()[-SHOWN:]}"
        )
    if "Traceback" in (said := served.said()):
        raise AtFaultError(said[max(0, said.index("Traceback") - SHOWN) :][:MUCH])
    if memory_bytes(served) > MOST_BYTES:
        raise AtFaultError(f"it takes {memory_bytes(served) >> 20} MiB of memory")


def memory_bytes(served: Served) -> int:
    try:
        lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) * 1_024 for line in lines if line.startswith("RssAnon:")), 0)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
