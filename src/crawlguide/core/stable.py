"""Files that outlast a power cut: a file is on the disk once it is synced, its name once its folder is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def sync(path: Path) -> None:
    """What a file holds, or which names a folder holds."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_all(folder: Path) -> None:
    """A folder with all that is in it."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)


def put_in_place(half: Path, whole: Path) -> None:
    """Give a file or a folder that is complete and synced its name: it is there whole, or not at all."""
    half.replace(whole)
    sync(whole.parent)


def make_folder(folder: Path) -> None:
    """A folder with those above it, and the names of all that were not there."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)
