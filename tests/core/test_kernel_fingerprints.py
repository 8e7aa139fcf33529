"""Cached machine code is used again unless anything it was compiled from has changed, in whatever file."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide.core.kernel_cache import fingerprint
from crawlguide.core.kernels import i64s, part

if TYPE_CHECKING:
    from pathlib import Path

PARTS = "from crawlguide.core.kernels import part\nSTEP = {step}\n\n\n@part\ndef more(x):\n    return x {sign} STEP\n"
KERNEL = """
from crawlguide.core.kernels import kernel, one_i64
from pieces import more


@kernel(one_i64(one_i64))
def twice(x):
    return more(more(x))


print(twice(10), "cached" if sum(twice.stats.cache_hits.values()) else "compiled")
"""


def ran(folder: Path, step: int, sign: str, before: str = "") -> str:
    (folder / "pieces.py").write_text(before + PARTS.format(step=step, sign=sign))
    (folder / "whole.py").write_text(KERNEL)
    done = subprocess.run(
        [sys.executable, "-B", "-m", "whole"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_kernel_is_compiled_anew_when_a_part_or_a_number_in_another_file_has_changed(tmp_path: Path) -> None:
    assert ran(tmp_path, 1, "+") == "12 compiled"
    assert ran(tmp_path, 1, "+") == "12 cached"
    assert ran(tmp_path, 1, "-") == "8 compiled"
    assert ran(tmp_path, 3, "-") == "4 compiled"
    assert ran(tmp_path, 3, "-", before="# it only moved\n\n") == "4 cached"


def test_a_kernel_is_compiled_anew_when_a_part_has_moved_to_another_module(tmp_path: Path) -> None:
    assert ran(tmp_path, 1, "+") == "12 compiled"
    (tmp_path / "pieces.py").rename(tmp_path / "moved.py")
    (tmp_path / "whole.py").write_text(KERNEL.replace("pieces", "moved"))
    done = subprocess.run(
        [sys.executable, "-B", "-m", "whole"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "12 compiled"


def test_only_kernels_are_kept_since_parts_are_in_them(tmp_path: Path) -> None:
    assert ran(tmp_path, 1, "+") == "12 compiled"
    assert [file.name.partition("-")[0] for file in tmp_path.rglob("*.nbi")] == ["whole.twice"]


def test_how_it_is_compiled_counts() -> None:
    assert fingerprint(ran, {}) == fingerprint(ran, {}) != fingerprint(ran, {"nogil": True})
    assert fingerprint(ran, {"fastmath": {"reassoc"}}) != fingerprint(ran, {})


def test_a_part_that_python_calls_runs_as_python() -> None:
    def doubled(x):  # type: ignore[no-untyped-def]
        return x + x

    called: Any = part(doubled)
    assert called(4) == 8
    assert called(0.5) == 1.0


def test_a_part_that_returns_arrays_is_refused() -> None:
    def halves(column):  # type: ignore[no-untyped-def]
        return column[: len(column) // 2], column[len(column) // 2 :]

    compiled: Any = part(halves)
    with pytest.raises(TypeError, match="halves: expected a part to return numbers"):
        compiled.compile((i64s,))
