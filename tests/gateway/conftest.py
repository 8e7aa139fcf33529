"""A real server in a process of its own: every test here speaks to it over a socket, as a crawler would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from crawlguide.core.config import GuideOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SCRIPT = Path(sys.executable).parent / "crawlguide"
READY_WITHIN_S = 180.0  # the first start compiles the kernels, and the machine may be busy
ENDS_WITHIN_S = 20.0
NAMES = count()
NO_ROBOTS = {"CRAWLGUIDE_GUIDE_FILTERS": ",".join(name for name in GuideOptions().filters if name != "robots")}


@dataclass(frozen=True)
class Served:
    """A server that is ready: its process, its port, and what it has said so far on stderr."""

    process: subprocess.Popen[str]
    port: int
    stderr: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def grpc_url(self) -> str:
        """Of its door for gRPC, if that is open."""
        return f"grpc://127.0.0.1:{json.loads(self.stderr.with_name('ready.json').read_text())['grpc_port']}"

    def said(self) -> str:
        return self.stderr.read_text()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait; the exit code."""
        self.process.send_signal(how)
        return self.process.wait(ENDS_WITHIN_S)


@contextmanager
def serving(
    folder: Path, data: str | Path = ":memory:", robots: bool = False, files: int = 0, options: Sequence[str] = ()
) -> Iterator[Served]:
    """Start `crawlguide serve`, wait until it is ready, and leave no process behind.

    Without `robots` it reads no robots.txt: the hosts of most tests do not exist. With `files` it may open so many.
    """
    ready, stderr = folder / "ready.json", folder / "stderr.txt"
    command = [str(SCRIPT), "serve", "--data", str(data), "--port", "0", "--ready-file", str(ready), *options]
    if files:
        command = ["prlimit", f"--nofile={files}:{files}", *command]
    env = os.environ | ({} if robots else NO_ROBOTS)
    with stderr.open("w") as said, subprocess.Popen(command, stderr=said, text=True, cwd=folder, env=env) as process:
        try:
            yield Served(process, _port(process, ready, stderr), stderr)
        finally:
            if process.poll() is None:
                process.kill()


def _port(process: subprocess.Popen[str], ready: Path, stderr: Path) -> int:
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until:
        assert process.poll() is None, f"the server ended at once: {stderr.read_text()}"
        if ready.exists() and (text := ready.read_text()):
            return int(json.loads(text)["port"])
        time.sleep(0.02)
    raise AssertionError(f"the server was not ready after {READY_WITHIN_S} s: {stderr.read_text()}")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server that all tests share, with a door for gRPC, too; each uses crawls of its own."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # for this server and none that is started while it runs
            patch.setenv("CRAWLGUIDE_SERVER_GRPC", "true")
            patch.setenv("CRAWLGUIDE_SERVER_GRPC_PORT", "0")
            server = stack.enter_context(serving(tmp_path_factory.mktemp("server")))
        yield server
        code = server.stop()
        assert code == 0, server.said()
        assert "Traceback" not in server.said()


@pytest.fixture(scope="session")
def client(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url, timeout=30.0, trust_env=False) as door:
        yield door


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Served]:
    """A server that the test may end."""
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def crawl() -> str:
    """The name of a crawl that no other test uses."""
    return f"crawl-{next(NAMES)}"


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line to its end."""
    folder = tmp_path_factory.mktemp("command")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(SCRIPT), *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )

    return run
