"""Several processes write to and read from one kernel cache at once without mixing up their code."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from numba.core.caching import IndexDataCacheFile

from crawlguide.core.kernel_cache import share_between_processes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITERS, KEYS = 4, 25


def cache_file(folder: Path, stamp: str = "one", kind: Any = IndexDataCacheFile) -> Any:
    """Each has its own, as a process has: what they share is the folder."""
    file = kind(str(folder), "kernel", stamp)
    share_between_processes(file)
    return file


def at_once(work: Callable[[Any], Any], *tasks: Any) -> list[Any]:
    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(work, tasks))


def test_what_many_write_at_once_is_all_there_under_its_own_key(tmp_path: Path) -> None:
    def writes(writer: int) -> None:
        file = cache_file(tmp_path)
        for number in range(KEYS):
            file.save((writer, number), f"code {writer} {number}")

    at_once(writes, *range(WRITERS))
    expected = {(writer, number): f"code {writer} {number}" for writer in range(WRITERS) for number in range(KEYS)}
    assert {key: cache_file(tmp_path).load(key) for key in expected} == expected


def test_old_code_is_never_taken_for_new(tmp_path: Path) -> None:
    cache_file(tmp_path, "old").save("key", "old code")
    named = Event()

    class Slow(IndexDataCacheFile):
        def _save_data(self, name: str, data: object) -> None:
            named.set()
            time.sleep(0.1)  # the code is named by now, and not yet written
            super()._save_data(name, data)  # type: ignore[no-untyped-call]

    def work(what: str) -> Any:
        if what == "write":
            return cache_file(tmp_path, "new", Slow).save("key", "new code")
        named.wait()
        return cache_file(tmp_path, "new").load("key")

    assert at_once(work, "write", "read") == [None, "new code"]


class SavesWhenUnpickled:
    """As code does that names a module: it is imported when the code is loaded, and may compile its own kernels."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> Any:
        return _saved, (self._folder,)


def _saved(folder: Path) -> str:
    cache_file(folder).save("other", "other code")
    return "code"


@pytest.mark.timeout(30)
def test_code_that_is_loaded_may_bring_modules_that_save_theirs(tmp_path: Path) -> None:
    cache_file(tmp_path).save("key", SavesWhenUnpickled(tmp_path))
    assert cache_file(tmp_path).load("key") == "code"
    assert cache_file(tmp_path).load("other") == "other code"


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert cache_file(tmp_path / "none").load("key") is None


def test_files_that_were_cut_short_are_taken_for_an_empty_cache(tmp_path: Path) -> None:
    cache_file(tmp_path).save("key", "code")
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert cache_file(tmp_path).load("key") is None
    cache_file(tmp_path).save("key", "code")
    assert cache_file(tmp_path).load("key") == "code"
