"""Kernels are compiled ahead on all cores; machine code that cannot be kept is not made twice."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawlguide.core import compiling

if TYPE_CHECKING:
    from collections.abc import Callable


def test_modules_of_one_folder_are_compiled_by_one_process() -> None:
    names = [
        "crawlguide.scoring",
        "crawlguide.policy.traps.scan",
        "crawlguide.policy.traps.dates",
        "crawlguide.policy.risk",
    ]
    assert compiling.groups(names) == [names[1:3], names[:1], names[3:]]


def test_processes_share_what_they_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "kernel_modules", lambda: ["crawlguide.core.columns", "crawlguide.store.views"])
    compiling.compile_kernels(2)
    assert {file.parent.name.partition("_")[0] for file in tmp_path.rglob("*.nbi")} >= {"core", "store"}


def test_code_of_others_or_half_of_ours_is_not_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "theirs.nbi").touch()
    monkeypatch.setattr(compiling, "kernel_modules", lambda: ["no_such_module"])
    with pytest.raises(ModuleNotFoundError):
        compiling.compile_kernels(1)
    assert not compiling.all_compiled()
    monkeypatch.setattr(compiling, "kernel_modules", list)
    compiling.compile_kernels(1)
    assert compiling.all_compiled()


def test_another_version_or_processor_compiles_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = compiling.mark(tmp_path)
    assert compiling.mark(tmp_path) == here
    monkeypatch.setattr(compiling, "__version__", "0.0.0")
    assert compiling.mark(tmp_path) != here


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], set[int]]:
    """The processes in which a module with kernels was loaded."""
    folder = tmp_path / "seen"
    folder.mkdir()
    (tmp_path / "loaded_somewhere.py").write_text(
        f"import os, pathlib\npathlib.Path({str(folder)!r}, str(os.getpid())).touch()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(compiling, "kernel_modules", lambda: ["loaded_somewhere"])
    sys.modules.pop("loaded_somewhere", None)
    return lambda: {int(file.name) for file in folder.iterdir()}


def test_others_compile_for_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compilers: Callable[[], set[int]]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiling.compile_kernels(2)
    assert len(compilers()) == 2


def test_where_nothing_can_be_kept_no_process_compiles_for_others(
    monkeypatch: pytest.MonkeyPatch, compilers: Callable[[], set[int]]
) -> None:
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, "/proc/nothing")
    monkeypatch.setattr(compiling, "PACKAGE", Path("/proc/nothing"))
    assert not compiling.can_be_kept()
    compiling.compile_kernels(2)
    assert compilers() == {os.getpid()}
    assert not compiling.all_compiled()


def test_where_the_named_folder_cannot_be_written_numba_takes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    assert compiling.can_be_kept()
