"""`make` as a person types it in this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WITHIN_S = 380


def make(*words: str) -> str:
    """Run targets to their end and return what they printed; nothing is installed on the way."""
    ended = subprocess.run(
        make_command(*words), cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert ended.returncode == 0, f"make {' '.join(words)}\n{ended.stdout[-4_000:]}\n{ended.stderr[-4_000:]}"
    assert "Traceback" not in ended.stderr
    return ended.stdout


def make_command(*words: str) -> list[str]:
    """With the virtual environment that runs the tests, as it is."""
    return ["make", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/.ready", *words]


def environment() -> dict[str, str]:
    """Without what a `make test` around us says to the `make` within."""
    return {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}}
