"""docs/urlfrontier.md: its command opens the door, and its program runs."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path

from tests.docs.blocks import of_page
from tests.gateway.urlfrontier.common import open_frontier
from typer.testing import CliRunner

from crawlguide.cli import app
from crawlguide.gateway.urlfrontier.counts import COUNTERS, DISCOVERED, LATENCY

PAGE = "docs/urlfrontier.md"
PROGRAM = of_page(PAGE, "python")[0].text
COMMAND = of_page(PAGE, "sh")[0].text
WORDS = Path(__file__).resolve().parents[3].joinpath(PAGE).read_text()


def test_the_program_runs(tmp_path: Path) -> None:
    with open_frontier(tmp_path) as (server, raw):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(PROGRAM.replace("127.0.0.1:7071", f"127.0.0.1:{raw.port}"), PAGE, "exec"), {})
        lines = printed.getvalue().splitlines()
        assert lines[0] == "[<Status.OK: 0>, <Status.SKIPPED: 1>, <Status.OK: 0>]"
        assert sorted(lines[1:3]) == [
            "https://example.com/ example.com True",
            "https://example.org/a example.org True",
        ]
        assert lines[3].startswith("QueueStats(active=0, in_process=0, completed=2, queues=2, active_queues=0")
        assert lines[4] == "[<Status.OK: 0>, <Status.OK: 0>]"
        assert server.stop() == 0


def test_the_command_names_options_there_are() -> None:
    words = shlex.split(COMMAND)
    assert words[:2] == ["crawlguide", "serve"]
    offered = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    assert all(word in offered for word in words if word.startswith("--"))


def test_every_series_is_on_the_page() -> None:
    names = [*(f"{name}_total" for name in COUNTERS), f"{DISCOVERED[0]}_total", LATENCY[0]]
    assert len(names) == 9
    assert all(f"`{name}" in WORDS for name in names)
