"""Copies of a data folder: made while it is in use, checked, and put back."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core import stable
from crawlguide.core.aside import aside
from crawlguide.core.clock import iso
from crawlguide.core.config import Config
from crawlguide.core.errors import ConfigError, DataError
from crawlguide.gateway.opening import open_guide
from crawlguide.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide

SLIP = "backup.json"  # what a copy says of itself


class Slip(msgspec.Struct, frozen=True):
    """What was copied, when and by whom; the hash is checked when it is put back."""

    version: str
    made: str
    state_hash: str


async def backup(guide: LocalGuide, target: Path) -> Slip:
    """Copy everything the guide knows into a new folder, while it answers."""
    half = half_of(target, "backup")
    slip = Slip(__version__, iso(guide.clock.now()), await guide.store.backup(half))
    await aside(_finish, half, target, slip)
    return slip


def _finish(half: Path, target: Path, slip: Slip) -> None:
    (half / SLIP).write_bytes(msgspec.json.encode(slip))
    stable.sync_all(half)
    stable.put_in_place(half, target)


async def restore(source: Path, data: Path) -> Slip:
    """Put a copy back as a data folder, and make sure that it knows what it knew. The hash is that of the copy."""
    slip = read_slip(source)
    half = half_of(data, "data")
    shutil.copytree(source, half, ignore=shutil.ignore_patterns(SLIP))
    try:
        found = await _check(half, slip)
        stable.sync_all(half)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    stable.put_in_place(half, data)
    return msgspec.structs.replace(slip, state_hash=found)


def half_of(target: Path, field: str) -> Path:
    """Where a folder grows before it gets its name, so that half of one is never taken for a whole."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ConfigError(f"{field}: {target} is there already; name a new folder")
    half = target.with_name(f".{target.name}.crawlguide-half")
    stable.make_folder(half.parent)
    shutil.rmtree(half, ignore_errors=True)
    return half


def read_slip(source: Path) -> Slip:
    try:
        return msgspec.json.decode((source / SLIP).read_bytes(), type=Slip)
    except FileNotFoundError:
        raise ConfigError(f"restore: {source} is no backup: there is no {SLIP} in it") from None
    except (OSError, msgspec.DecodeError) as wrong:
        raise DataError(f"restore: {source / SLIP} cannot be read: {wrong}") from None


async def _check(folder: Path, slip: Slip) -> str:
    """The state hash of the copy. What was learned may differ: it is as its strategy has said it was."""
    guide = open_guide(folder, Config())
    try:
        found, old = guide.store.state_hash(), guide.store.migrated_from  # type: ignore[attr-defined]
    finally:
        await guide.close()
    known = found.partition("-")[0]
    if old is None and known != slip.state_hash.partition("-")[0]:  # the hash of an older format is over other fields
        raise DataError(f"restore: the copy is not what it was: expected state {slip.state_hash}, got {found}")
    return str(found)
