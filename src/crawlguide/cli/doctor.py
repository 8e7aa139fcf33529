"""crawlguide doctor: the configuration, what is installed, the clock, the data folder, ports, buses, compiled loops."""

from __future__ import annotations

import platform
import re
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.cli.common import FAILED, ConfigOption, JsonOption, app, config_file, say_json, settings
from crawlguide.core import compiling
from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import ANEW, installing
from crawlguide.gateway import doctor as checks
from crawlguide.gateway.doctor import Finding
from crawlguide.version import __version__

if TYPE_CHECKING:
    from crawlguide.core.config import Config

MEMORY = ":memory:"
SHOWN = ("numba", "numpy", "rocksdict", "msgspec", "httpx", "starlette", "uvicorn", "uvloop")
BEHIND_S = 60.0
_REQUIRED = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")


@app.command()
def doctor(
    data: Annotated[str | None, typer.Option(help="The data folder to look at; a server may have it open.")] = None,
    url: Annotated[str | None, typer.Option(help="A server that should answer, instead of the configured one.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Look whether a guide can work here, and how to mend what is wrong.

    Nothing is changed. Ends with 1 if anything is wrong.

    Example: crawlguide doctor

    Example: crawlguide doctor --data crawlguide-data --json
    """
    findings = _findings(data, url, config)
    wrong = sum(one.state == "wrong" for one in findings)
    warned = sum(one.state == "warn" for one in findings)
    if json:
        say_json({"wrong": wrong, "warn": warned, "findings": findings})
    else:
        _show(findings, wrong, warned)
    if wrong:
        raise typer.Exit(FAILED)


def _findings(data: str | None, url: str | None, config: Path | None) -> list[Finding]:
    from crawlguide.gateway.arguments import address

    named = None if url is None else address(url)
    options, configuration = _configured(data, config)
    path = Path(options.store.data)
    return [
        versions(),
        optional(),
        configuration,
        *_kept(options.store.data),
        clock(path),
        *(checks.ports(options.server) if named is None else [checks.answers(named)]),
        *needed(options),
        *checks.buses(options.bus),
        compiled(options),
    ]


def _configured(data: str | None, config: Path | None) -> tuple[Config, Finding]:
    """What is wrong with the configuration is one more finding: the rest is looked at with defaults."""
    from crawlguide.core.config import load

    flags = {"store.data": data}
    try:
        options = settings(config, flags)
    except ConfigError as wrong:
        mend = "correct it; `crawlguide config explain KEY` says what a key takes"
        return load(None, {}, flags), Finding("configuration", "wrong", wrong.message, mend)
    return options, Finding("configuration", "ok", f"{config_file(config) or 'no file'}, no mistakes")


def _kept(data: str) -> list[Finding]:
    if data == MEMORY:
        mend = "name a folder with --data or store.data"
        return [Finding("data folder", "warn", ":memory: forgets all at the end", mend)]
    path = Path(data)
    first = checks.folder(path)
    return [first] if first.state == "wrong" else [first, checks.room(path), checks.disk(path)]


def _show(findings: list[Finding], wrong: int, warned: int) -> None:
    from crawlguide.cli.printing import show, table, text

    rows: list[tuple[str, ...]] = []
    for one in findings:
        rows.append((one.state, one.name, one.found))
        rows += [("", "", f"-> {one.mend}")] if one.mend else []
    summary: Any = f"{wrong} wrong, {warned} to look at" if wrong or warned else "all is well"
    show(table(("", "", ""), rows), text(summary, "bold"))


def versions() -> Finding:
    missing = [name for name in {*SHOWN, *_required().get("", ())} if _version(name) is None]
    if missing:
        names = ", ".join(sorted(missing))
        return Finding("versions", "wrong", f"not installed: {names}", ANEW)
    found = ", ".join(f"{name} {_version(name)}" for name in SHOWN)
    return Finding("versions", "ok", f"crawlguide {__version__}, python {platform.python_version()}, {found}")


def optional() -> Finding:
    """Extras are wishes: none of them is missed."""
    extras = {name: parts for name, parts in sorted(_required().items()) if name not in {"", "all"}}
    here = [name for name, parts in extras.items() if all(map(_version, parts))]
    absent = ", ".join(name for name in extras if name not in here)
    how = f"; not installed: {absent} ({installing('NAME')})" if absent else ""
    return Finding("optional parts", "ok", f"installed: {', '.join(here) or 'none'}{how}")


def needed(options: Config) -> list[Finding]:
    """What is not installed, and a door that is configured wants."""
    from crawlguide.gateway.doors import DOORS

    found = []
    for kind in DOORS:
        missing = [name for name in _required().get(kind.extra, ()) if _version(name) is None]
        if missing and kind.is_wanted(options):
            words = f"this door needs packages that are not installed: {', '.join(missing)}"
            found.append(Finding(kind.setting, "wrong", words, installing(kind.extra)))
    return found


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


def _last_write(folder: Path) -> float:
    try:
        return max((file.stat().st_mtime for file in folder.glob("*.log")), default=0.0)
    except OSError:  # what is wrong with the folder is another finding
        return 0.0


def compiled(options: Config) -> Finding:
    places = compiling.cache_folders()
    place = next((one for one in places if checks.unwritable(checks.nearest(one)) is None), None)
    is_ready = compiling.compiled_in(place) >= set(compiling.needed_by(options))
    if place is None and is_ready:
        return Finding("compiled loops", "ok", "came with the package")
    if place is None:
        mend = "name a folder that can be written in the environment variable NUMBA_CACHE_DIR"
        found = f"none of {', '.join(map(str, places))} can be written, so every start compiles for {compiling.TAKES}"
        return Finding("compiled loops", "warn", found, mend)
    count = sum(1 for _ in place.rglob("*.nbi"))
    later = "" if is_ready else f"; the first start compiles for {compiling.TAKES}"
    return Finding("compiled loops", "ok", f"{count} kept in {place}{later}")
