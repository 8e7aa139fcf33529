"""A virtual environment for each peer, made once: their requirements agree neither with ours nor with each other's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".venv-peers"
INSTALL_LIMIT_S = 900


def python(name: str) -> Path:
    """The interpreter of the environment, which is made first where it is missing or older than its requirements."""
    environment, requirements = FOLDER / name, HERE / f"requirements-{name}.txt"
    stamp = environment / "installed"
    if not stamp.exists() or stamp.stat().st_mtime < requirements.stat().st_mtime:
        make(environment, requirements)
        stamp.touch()
    return environment / "bin" / "python"


def make(environment: Path, requirements: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    done([sys.executable, "-m", "venv", "--clear", "--without-pip", str(environment)])  # ours installs there as well
    pip = [sys.executable, "-m", "pip", "--python", str(environment), "--disable-pip-version-check", "--quiet"]
    done([*pip, "install", "--requirement", str(requirements)])


def done(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
