"""Commands that need kernels say that they compile, and do it on all cores, before they load the first of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawlguide.cli.common import compile_first
from crawlguide.core import compiling

COMMANDS = [
    "serve --data :memory: --port 0",
    "crawl example.com --topic books",
    "crawl example.com --topic books --guide http://127.0.0.1:9",
    "agents",
    "lab run --quick",
    "lab explain-run",
    "next --crawler me --data here --seed https://example.com/",
    "backup copy --data .",
    "bench --urls 10000",
]
PROGRAM = """
import sys
from crawlguide.cli import main
from crawlguide.core import compiling

def compile_kernels(modules):
    sys.exit(f"loaded before: {sorted(set(compiling.kernel_modules()) & set(sys.modules))}")

compiling.compile_kernels = compile_kernels  # it takes a minute
sys.argv = ["crawlguide", *sys.argv[1:]]
main()
"""


def started(command: str, folder: Path) -> str:
    """What a command says until it compiles, and which modules with kernels it had loaded by then."""
    (folder / "CURRENT").touch()  # it looks like a data folder
    nothing_kept = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept")}
    words = [sys.executable, "-c", PROGRAM, *command.split()]
    ended = subprocess.run(words, cwd=folder, env=nothing_kept, capture_output=True, text=True, timeout=60, check=False)
    return ended.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_the_first_start_compiles_everything_first(command: str, tmp_path: Path) -> None:
    said = started(command, tmp_path)
    assert "compiling for this machine, a minute or more; later starts find it done" in said
    assert said.endswith("loaded before: []\n")


def test_where_nothing_can_be_kept_nothing_is_promised(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, "/proc/nothing")
    monkeypatch.setattr(compiling, "PACKAGE", Path("/proc/nothing"))
    monkeypatch.setattr(compiling, "all_modules", lambda: ["no_such_module"])
    compile_first()
    assert capsys.readouterr().err == (
        "crawlguide: compiling for this machine, a minute or more, at every start:"
        " set NUMBA_CACHE_DIR to a folder that can be written to\n"
    )
