"""Kernels are compiled ahead on all cores; machine code that cannot be kept is not made twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core import compiling

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
    assert not compiling.anything_compiled()
    compiling.compile_kernels(2)
    assert {file.parent.name.partition("_")[0] for file in tmp_path.rglob("*.nbi")} >= {"core", "store"}


def test_where_nothing_can_be_kept_no_process_compiles_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    assert not compiling.can_be_kept()
