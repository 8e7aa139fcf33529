"""docs/lab.md is true: its commands and its program run, and it names every option and every policy."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from crawlguide.cli.lab import webs
from crawlguide.core.definition import Goal
from crawlguide.core.protocols import Learner
from crawlguide.lab import policies

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lab.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", blocks("sh"))
def test_its_commands_run(block: str, tmp_path: Path) -> None:
    words = shlex.split(block.removeprefix("crawlguide"))
    command = [sys.executable, "-m", "crawlguide", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert ("Where the requests" if "explain-run" in words else "Harvest rate") in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {word for word in words if word.startswith("lab.")}


def test_its_policy_can_be_built() -> None:
    (block,) = blocks("python")
    made: dict[str, Any] = {}
    exec(compile(block, "lab.md", "exec"), made)
    assert isinstance(made["build"](made["Options"](), 0, Goal()).predictor, Learner)


def test_it_names_every_policy() -> None:
    assert set(re.findall(r"`([a-z-]+)`", PAGE)) >= set(policies.kinds())


def test_it_names_every_option() -> None:
    command: Any = typer.main.get_command(webs)
    both = [command.commands[name] for name in ("run", "explain-run")]
    options = {option for one in both for parameter in one.params for option in parameter.opts}
    assert set(re.findall(r"`(--[a-z-]+)`", PAGE)) == options - {"--help"}
