"""A Redis server of our own: a cluster of one node on the loopback, ended by its id when the block ends.

As a cluster it refuses every function that touches keys of two hash tags.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from redis import Redis
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = shutil.which("redis-server")  # 7.0 or newer


@contextmanager
def serving() -> Iterator[int]:
    """Yields the port. Nothing is kept on disk but the node's own file, in a folder that goes with the server."""
    if PROGRAM is None:
        raise FileNotFoundError("redis-server is missing: apt-get install redis-server")
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"]
        options += ["--cluster-enabled", "yes", "--cluster-port", str(_free_port()), "--loglevel", "warning"]
        server = subprocess.Popen([PROGRAM, *options], stdout=subprocess.DEVNULL)
        try:
            _until_ready(port)
            yield port
        finally:
            server.terminate()
            server.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_ready(port: int, patience_s: float = 20.0) -> None:
    end = time.monotonic() + patience_s
    with Redis(port=port) as redis:
        while time.monotonic() < end:
            try:
                if b"cluster_slots_assigned:0" in redis.execute_command("CLUSTER", "INFO"):
                    redis.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
                redis.set("ready", 1)
            except (NoConnection, ResponseError):
                time.sleep(0.05)
            else:
                return
    raise TimeoutError(f"redis-server did not answer on port {port} within {patience_s} s")
