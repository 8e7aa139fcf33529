"""Machine code that came with the package is used on processors of its kind, and elsewhere kernels are compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from numba import config
from numba.core import codegen
from numba.core.caching import IndexDataCacheFile

from crawlguide.core import compiling, processor
from crawlguide.core.kernel_cache import ReadOnly, read_beside_source

if TYPE_CHECKING:
    from pathlib import Path

KIND = "x86-64-v3"
ALL = ",".join(f"+{feature}" for feature in processor.KINDS[KIND])


def chosen(monkeypatch: pytest.MonkeyPatch, features: str) -> tuple[str | None, str | None]:
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    monkeypatch.setattr(config, "CPU_NAME", None)
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    monkeypatch.setattr(codegen, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(config, "CACHE_LOCATOR_CLASSES", "")
    processor.choose()
    options: Any = config
    return options.CPU_NAME, options.CPU_FEATURES


@pytest.fixture
def came(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Machine code came with the package."""
    (tmp_path / "kind").write_text(f"{KIND}\n")
    monkeypatch.setattr(processor, "MADE_FOR", tmp_path / "kind")


@pytest.mark.usefixtures("came")
def test_code_that_came_is_for_every_processor_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, f"{ALL},+avx512f") == (KIND, "")


@pytest.mark.usefixtures("came")
def test_another_processor_compiles_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, ALL.replace("+fma", "-fma")) == (None, None)


def test_where_no_code_came_the_processor_is_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processor.made_for() == ""
    assert chosen(monkeypatch, ALL) == (None, None)


@pytest.mark.usefixtures("came")
def test_code_that_came_is_read_where_nothing_can_be_written() -> None:
    ours, theirs = compiling.groups, pytest.fixture
    assert ReadOnly.from_function(ours, compiling.__file__).get_cache_path().endswith("core/__pycache__")
    assert ReadOnly.from_function(theirs, pytest.__file__) is None


def code_beside(tmp_path: Path) -> Any:
    """The file that a kernel of a module in this folder is kept in, elsewhere; beside the module lies its code."""
    for folder in ("__pycache__", "elsewhere"):
        (tmp_path / folder).mkdir()
    IndexDataCacheFile(str(tmp_path / "__pycache__"), "kernel", "stamp").save("key", "code")  # type: ignore[no-untyped-call]
    kept: Any = IndexDataCacheFile(str(tmp_path / "elsewhere"), "kernel", "stamp")  # type: ignore[no-untyped-call]
    read_beside_source(kept, SimpleNamespace(__code__=SimpleNamespace(co_filename=str(tmp_path / "module.py"))))
    return kept


@pytest.mark.usefixtures("came")
def test_code_that_came_is_read_where_new_code_is_kept_elsewhere(tmp_path: Path) -> None:
    kept = code_beside(tmp_path)
    assert kept.load("key") == "code"
    assert kept.load("another key") is None


def test_code_beside_the_source_that_did_not_come_with_it_is_left_alone(tmp_path: Path) -> None:
    assert code_beside(tmp_path).load("key") is None


def test_what_came_needs_not_be_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path / "package")
    compiling.mark(tmp_path / "package").parent.mkdir(parents=True)
    compiling.mark(tmp_path / "package").write_text("one\ntwo\n")
    assert not compiling.all_compiled(["one"])
    monkeypatch.setattr(processor, "made_for", lambda: KIND)
    monkeypatch.setattr(processor, "choose", lambda: None)
    assert compiling.all_compiled(["one", "two"])
