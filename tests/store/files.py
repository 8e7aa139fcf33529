"""The files of a store as they are at one moment, as if its process had ended there and then."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.store.embedded import EmbeddedStore

TRIES = 100


def copy(folder: Path, target: Path, store: EmbeddedStore | None = None) -> Path:
    """Copy a folder that may be open; RocksDB tidies up behind our back, so only a copy without changes counts."""
    if store is not None:
        store._writer._snapshot.join()
    for _ in range(TRIES):
        before = _listed(folder)
        try:
            shutil.copytree(folder, target)
        except shutil.Error:
            pass
        else:
            if _listed(folder) == before:
                (target / "LOCK").unlink(missing_ok=True)
                return target
        shutil.rmtree(target)
        time.sleep(0.01)
    raise AssertionError(f"{folder} never rests")


def _listed(folder: Path) -> list[tuple[str, int, int]]:
    found = []
    for path in folder.iterdir():
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue
        found.append((path.name, stat.st_size, stat.st_mtime_ns))
    return sorted(found)
