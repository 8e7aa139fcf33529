"""Commands on plain ground, and a real server."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.cli import app
from tests.gateway.conftest import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

Ended = subprocess.CompletedProcess[str]
NAMES = count()
COLOURS = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "CLICOLOR_FORCE")


@pytest.fixture(autouse=True)
def plain_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to work in, and an environment that sets nothing."""
    for name in os.environ:
        if name.startswith("CRAWLGUIDE_") or name in COLOURS:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server that all tests share; each uses crawls of its own."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.said()


@pytest.fixture
def crawl() -> str:
    """The name of a crawl that no other test uses."""
    return f"crawl-{next(NAMES)}"


def done(ended: Ended, code: int = 0) -> str:
    """What it printed, if it ended as it should."""
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr
    return ended.stdout


def refused(ended: Ended, code: int, *named: str) -> None:
    """One line that names what is wrong, and nothing printed."""
    assert done(ended, code) == ""
    assert ended.stderr.startswith("crawlguide: ")
    assert ended.stderr.count("\n") == 1
    assert [name for name in named if name not in ended.stderr] == []


@cache
def commands() -> dict[str, Any]:
    """Every command by the words that call it."""
    from typer.main import get_command

    found: dict[str, Any] = {}

    def walk(command: Any, name: str) -> None:
        inner = getattr(command, "commands", {})
        if not inner:
            found[name] = command
        for word, part in inner.items():
            walk(part, f"{name} {word}".strip())

    walk(get_command(app), "")
    return found
