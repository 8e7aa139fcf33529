"""For `crawlguide doctor`: what is installed, the clock, and where compiled loops are kept."""

from __future__ import annotations

import os
import platform
import re
import time
from importlib import metadata
from pathlib import Path

import crawlguide
from crawlguide.gateway.doctor import Finding, nearest, unwritable
from crawlguide.version import __version__

SHOWN = ("numba", "numpy", "rocksdict", "msgspec", "httpx", "starlette", "uvicorn", "uvloop")
BEHIND_S = 60.0
COMPILING = "a minute or two"
_REQUIRED = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")


def versions() -> Finding:
    missing = [name for name in {*SHOWN, *_required().get("", ())} if _version(name) is None]
    if missing:
        names = ", ".join(sorted(missing))
        return Finding(
            "versions", "wrong", f"not installed: {names}", "install crawlguide anew: pip install crawlguide"
        )
    found = ", ".join(f"{name} {_version(name)}" for name in SHOWN)
    return Finding("versions", "ok", f"crawlguide {__version__}, python {platform.python_version()}, {found}")


def optional() -> Finding:
    """Extras are wishes: none of them is missed."""
    extras = {name: parts for name, parts in sorted(_required().items()) if name not in {"", "all"}}
    here = [name for name, parts in extras.items() if all(map(_version, parts))]
    absent = ", ".join(name for name in extras if name not in here)
    how = f"; not installed: {absent} (pip install 'crawlguide[NAME]')" if absent else ""
    return Finding("optional parts", "ok", f"installed: {', '.join(here) or 'none'}{how}")


def clock(folder: Path) -> Finding:
    """The folder's files say what time it was when they were written."""
    now, before = time.time(), time.monotonic()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    written = _last_write(folder)
    mend = "set the clock, such as with `timedatectl set-ntp true`"
    if not 2025 <= time.gmtime(now).tm_year < 2100:
        return Finding("clock", "wrong", f"it is {shown}?", mend)
    if time.monotonic() < before or not time.get_clock_info("monotonic").monotonic:
        return Finding("clock", "wrong", "the monotonic clock runs backwards", "restart this machine")
    if now < written - BEHIND_S:
        return Finding("clock", "warn", f"{shown} is {written - now:.0f} s before the last write to the folder", mend)
    return Finding("clock", "ok", shown)


def compiled() -> Finding:
    places = _places()
    place = next((one for one in places if unwritable(nearest(one)) is None), None)
    if place is None:
        mend = "name a folder that can be written in the environment variable NUMBA_CACHE_DIR"
        found = f"none of {', '.join(map(str, places))} can be written, so every start compiles for {COMPILING}"
        return Finding("compiled loops", "warn", found, mend)
    count = sum(1 for _ in place.rglob("*.nbi"))
    later = "" if count else f"; the first start compiles for {COMPILING}"
    return Finding("compiled loops", "ok", f"{count} kept in {place}{later}")


def anything_compiled() -> bool:
    return any(True for place in _places() for _ in place.rglob("*.nbi"))


def _places() -> list[Path]:
    """Where numba keeps machine code between starts: where it is told, beside the source, or in the user's cache."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(named)]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [Path(crawlguide.__file__).parent, home / "numba"]


def _last_write(folder: Path) -> float:
    try:
        return max((file.stat().st_mtime for file in folder.glob("*.log")), default=0.0)
    except OSError:  # what is wrong with the folder is another finding
        return 0.0


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _required() -> dict[str, list[str]]:
    """What crawlguide says it needs, by extra; the base install has the name ""."""
    try:
        lines = metadata.requires("crawlguide") or []
    except metadata.PackageNotFoundError:  # run from its source
        return {}
    found: dict[str, list[str]] = {}
    for line in lines:
        if read := _REQUIRED.fullmatch(line):
            found.setdefault(read["extra"] or "", []).append(read["name"])
    return found
