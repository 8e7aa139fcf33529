"""Kernels are compiled ahead on all cores; machine code that cannot be kept is not made twice."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from crawlguide.core import compiling
from crawlguide.core.config import Config

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
    compiling.compile_kernels(["crawlguide.core.columns", "crawlguide.store.views"], 2)
    assert {file.parent.name.partition("_")[0] for file in tmp_path.rglob("*.nbi")} >= {"core", "store"}


def test_code_of_others_or_half_of_ours_is_not_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "theirs.nbi").touch()
    with pytest.raises(ModuleNotFoundError):
        compiling.compile_kernels(["crawlguide.core.columns", "no_such_module"], 1)
    assert not compiling.all_compiled(["crawlguide.core.columns"])
    compiling.compile_kernels(["crawlguide.core.columns"], 1)
    assert compiling.all_compiled(["crawlguide.core.columns"])


def test_what_is_compiled_later_comes_on_top(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiling.remember(["first"])
    assert not compiling.all_compiled(["first", "later"])
    compiling.remember(["later"])
    assert compiling.all_compiled(["first", "later"])


def test_another_version_or_processor_compiles_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = compiling.mark(tmp_path)
    assert compiling.mark(tmp_path) == here
    monkeypatch.setattr(compiling, "__version__", "0.0.0")
    assert compiling.mark(tmp_path) != here


def test_a_guide_needs_the_strategies_that_its_operator_names() -> None:
    stages = ({"kind": "layered"}, {"kind": "fallback", "predict": [{"kind": "tres"}, {"kind": "best-first"}]})
    assert compiling.strategies_needed_by(Config()) == set()
    assert compiling.strategies_needed_by(Config(predict=stages)) == {"crawlguide.strategies.tres"}


def test_modules_of_an_operator_may_need_every_strategy() -> None:
    plugins = Config(crawls=msgspec.structs.replace(Config().crawls, plugins=("ours.strategy",)))
    filters = Config(guide=msgspec.structs.replace(Config().guide, filters=("ours.filter",)))
    assert compiling.strategies_needed_by(plugins) == compiling.strategies_needed_by(filters) == set(compiling.LATER)


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], set[int]]:
    """The processes in which a module with kernels was loaded."""
    folder = tmp_path / "seen"
    folder.mkdir()
    (tmp_path / "loaded_somewhere.py").write_text(
        f"import os, pathlib\npathlib.Path({str(folder)!r}, str(os.getpid())).touch()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("loaded_somewhere", None)
    return lambda: {int(file.name) for file in folder.iterdir()}


def test_others_compile_for_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compilers: Callable[[], set[int]]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiling.compile_kernels(["loaded_somewhere"], 2)
    assert len(compilers()) == 2


def test_where_nothing_can_be_kept_no_process_compiles_for_others(
    monkeypatch: pytest.MonkeyPatch, compilers: Callable[[], set[int]]
) -> None:
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, "/proc/nothing")
    monkeypatch.setattr(compiling, "PACKAGE", Path("/proc/nothing"))
    assert not compiling.can_be_kept()
    compiling.compile_kernels(["loaded_somewhere"], 2)
    assert compilers() == {os.getpid()}
    assert not compiling.all_compiled(["loaded_somewhere"])
    assert compiling.strategies_at_start(Config()) == set(compiling.LATER)


def test_where_the_named_folder_cannot_be_written_numba_takes_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    assert compiling.can_be_kept()


def test_a_process_that_compiles_ends_when_nobody_waits_any_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "takes_long.py").write_text("import threading\nthreading.Event().wait()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    compiler = compiling.compiler_of("takes_long")
    assert compiler is not None
    assert compiler.stdin is not None
    compiler.stdin.close()
    assert compiler.wait(60) == 1
