"""Copies outlast a power cut: every file and every name is synced, before a copy gets its name and after."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawlguide import Guide
from crawlguide.gateway import backup, transfers

if TYPE_CHECKING:
    from collections.abc import Iterable

RENAMED = "renamed to"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened on the disk, in its order: paths that were synced, and names that were given."""
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(opened: int) -> None:
        fsync(opened)
        events.append(str(Path(f"/proc/self/fd/{opened}").readlink()))

    def renamed(old: Path, new: Path) -> None:
        replace(old, new)
        events.append(f"{RENAMED} {new}")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    return events


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with Guide.open(tmp_path / "data") as guide:
        guide.seed("default", ["https://a.org/"])
    return tmp_path / "data"


def check(events: list[str], folder: Path, made: Iterable[Path] = ()) -> None:
    """All of a folder was synced under the name it had while it grew; then it got its name, and the name was synced."""
    at = events.index(f"{RENAMED} {folder}")
    half = folder.with_name(f".{folder.name}.crawlguide-half")
    before, after = set(events[:at]), events[at:]
    assert {str(half / path.relative_to(folder)) for path in folder.rglob("*")} | {str(half)} <= before
    assert str(folder.parent) in after
    assert {str(path) for path in made} <= before


def test_a_backup_is_on_the_disk_before_it_has_its_name(data: Path, tmp_path: Path, disk: list[str]) -> None:
    target = tmp_path / "new" / "deep" / "copy"
    with Guide.open(data) as guide:
        asyncio.run(backup.backup(guide._guide._guide, target))
    assert (target / backup.SLIP).exists()
    check(disk, target, [tmp_path, tmp_path / "new"])


def test_a_restored_folder_is_on_the_disk_before_it_has_its_name(data: Path, tmp_path: Path, disk: list[str]) -> None:
    with Guide.open(data) as guide:
        asyncio.run(backup.backup(guide._guide._guide, tmp_path / "copy"))
    disk.clear()
    asyncio.run(backup.restore(tmp_path / "copy", tmp_path / "again"))
    check(disk, tmp_path / "again")
    with Guide.open(tmp_path / "again") as guide:
        assert guide.stats()["crawls"]["default"]["queued"] == 1


def test_the_name_of_an_export_is_on_the_disk(tmp_path: Path, disk: list[str]) -> None:
    with transfers.written(tmp_path / "lines") as file:
        file.write(b"{}\n")
    assert disk == [str(tmp_path / "lines.half"), f"{RENAMED} {tmp_path / 'lines'}", str(tmp_path)]
