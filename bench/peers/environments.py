"""A virtual environment for each peer, made once: their requirements agree neither with ours nor with each other's."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".venv-peers"
INSTALL_LIMIT_S = 900


def python(name: str, beside_ours: bool = False) -> Path:
    """The interpreter of the environment, which is made first where it is missing or older than its requirements.

    `beside_ours`: our packages are found there as well, and its requirements name all else that is needed.
    """
    environment, requirements = FOLDER / name, HERE / f"requirements-{name}.txt"
    stamp = environment / "installed"
    with _alone(name):
        if not stamp.exists() or stamp.stat().st_mtime < requirements.stat().st_mtime:
            make(environment, requirements, beside_ours)
            stamp.touch()
    return environment / "bin" / "python"


def make(environment: Path, requirements: Path, beside_ours: bool = False) -> None:
    done([sys.executable, "-m", "venv", "--clear", "--without-pip", str(environment)])  # ours installs there as well
    pip = [sys.executable, "-m", "pip", "--python", str(environment), "--disable-pip-version-check", "--quiet"]
    done([*pip, "install", "--requirement", str(requirements), *(["--no-deps"] if beside_ours else [])])
    if beside_ours:
        (packages,) = environment.glob("lib/python*/site-packages")
        ours = sysconfig.get_path("purelib")
        (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        (environment / "bin" / "crawlguide").symlink_to(Path(sys.executable).with_name("crawlguide"))


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Tests in several processes may want an environment at once."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def done(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
