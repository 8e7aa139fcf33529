"""`crawlguide agents` as a process that an agent starts: its protocol alone on stdout, and an end that always comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from typer.testing import CliRunner

from crawlguide import Guide
from crawlguide.agents.http import MOST_BYTES
from crawlguide.cli import app
from crawlguide.core.errors import ConfigError
from tests.agents.common import SLOW_S, WITHIN_S, answer, cancelled_in_the_middle, search, until
from tests.cli.conftest import refused
from tests.cli.test_crawling import free_port
from tests.gateway.conftest import NO_ROBOTS, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.crawler.crawling import Place

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


async def test_the_official_client_starts_it_searches_cancels_and_leaves(tmp_path: Path, place: Place) -> None:
    words = ["agents", "--data", str(tmp_path / "data"), "--proxy", place.proxy, "--delay", str(SLOW_S)]
    with (tmp_path / "stderr.txt").open("w") as said:
        process = StdioServerParameters(command=str(SCRIPT), args=words, env=dict(os.environ))
        async with Client(stdio_client(process, errlog=said)) as client:
            assert len((await client.list_tools()).tools) == 11
            await cancelled_in_the_middle(client, search(place, max_pages=500, max_seconds=600, crawl_id="cut"))

            async def is_free() -> bool:
                numbers = answer(await client.call_tool("crawl_stats", {"crawl_id": "cut"}))
                return bool(numbers["fetches"]) and numbers["leased"] == 0

            await until(is_free)
            found = answer(await client.call_tool("find_pages", search(place, max_pages=5, crawl_id="cut")))
            assert found["fetched"] == 5
    heard = (tmp_path / "stderr.txt").read_text()
    assert "answers an agent on its standard input" in heard
    assert heard.endswith("the end\n")
    assert "Traceback" not in heard


class Bare:
    """The process with its pipes, without any client."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def say(self, text: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((text if isinstance(text, str) else json.dumps(text)) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        heard: dict[str, Any] = json.loads(self.process.stdout.readline())
        return heard

    def call(self, tool: str, number: int, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": number}}
        self.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


@contextmanager
def bare(folder: Path, *options: str) -> Iterator[Bare]:
    command = [str(SCRIPT), "agents", "--data", str(folder / "data"), *options]
    stderr = (folder / "stderr.txt").open("w")
    with stderr, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=os.environ | NO_ROBOTS
    ) as process:  # fmt: skip
        try:
            found = Bare(process)
            found.say(HELLO)
            assert found.hear()["result"]["serverInfo"]["name"] == "crawlguide"
            found.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield found
        finally:
            if process.poll() is None:
                process.kill()


def numbers(folder: Path, crawl: str) -> dict[str, Any]:
    with Guide.open(folder / "data") as guide:
        found: dict[str, Any] = guide.stats(crawl)["crawls"][crawl]
    return found


@pytest.mark.parametrize("how", ["input ends", "SIGINT"])  # tests/agents/test_http.py: SIGTERM
def test_it_ends_in_the_middle_of_a_search_and_holds_nothing(tmp_path: Path, place: Place, how: str) -> None:
    """Beside nonsense and messages that are too long, which it survives; and nothing but messages is on stdout."""
    with bare(tmp_path, "--proxy", place.proxy, "--delay", str(SLOW_S)) as agents:
        agents.say("{nonsense")
        agents.say("x" * (MOST_BYTES + 1))
        agents.call("find_pages", 2, **search(place, max_pages=500, max_seconds=600, crawl_id="cut"))
        while "pages fetched" not in agents.hear()["params"]["message"]:
            pass
        if how == "input ends":
            assert agents.process.stdin is not None
            agents.process.stdin.close()
        else:
            agents.process.send_signal(getattr(signal, how))
        assert agents.process.wait(WITHIN_S) == 0
        assert agents.process.stdout is not None
        for line in agents.process.stdout:
            assert json.loads(line)["jsonrpc"] == "2.0"
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()
    found = numbers(tmp_path, "cut")
    assert found["fetches"] > 0
    assert found["leased"] == 0


@pytest.mark.parametrize("how", [[], ["--http", "--port", "0"]])
def test_a_guide_that_is_away_is_said_and_ends_it(how: list[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    command = [str(SCRIPT), "agents", "--guide", url, *how]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    refused(ended, 1, f"no server answers at {url} (Connection refused)")


def test_without_the_package_it_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['mcp'] = None; sys.argv = ['crawlguide', 'agents']"
    program = f"{hidden}; from crawlguide.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    refused(ended, 2, "agents need mcp", "pip install '.[agents]' in a clone of crawlguide")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--data", "x", "--guide", "http://127.0.0.1:1"), "--data and --guide: expected one of them, got both"),
        (("--http", "--token", "cg_x"), "--token: over HTTP every caller shows a credential of its own"),
        (("--token", "cg_x"), "--token, --ca: only with --guide"),
        (("--ca", "authority.pem"), "--token, --ca: only with --guide"),
        (("--guide", "nonsense"), "--guide: expected one such as http://127.0.0.1:8080, got 'nonsense'"),
        (("--http", "--host", "0.0.0.0", "--port", "0"), "no credential is configured"),
        (("--allow-network", "nonsense"), "nonsense"),
        (("--port", "8082"), "--port: only with --http"),
        (("--host", "::1", "--insecure"), "--host, --insecure: only with --http"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_at_once(words: tuple[str, ...], named: str) -> None:
    ended = CliRunner().invoke(app, ["agents", *words])
    assert isinstance(ended.exception, ConfigError)
    assert named in ended.exception.message
    assert ended.stdout == ""
