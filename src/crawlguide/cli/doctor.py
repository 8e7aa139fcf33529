"""crawlguide doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.cli.common import FAILED, ConfigOption, JsonOption, app, config_file, say_json, settings
from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from crawlguide.core.config import Config
    from crawlguide.gateway.doctor import Finding

MEMORY = ":memory:"


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
    from crawlguide.cli import installed  # noqa: PLC0415
    from crawlguide.gateway import doctor as checks  # noqa: PLC0415
    from crawlguide.gateway.places import address  # noqa: PLC0415

    named = None if url is None else address(url)
    options, configuration = _configured(data, config)
    path = Path(options.store.data)
    return [
        installed.versions(),
        installed.optional(),
        configuration,
        *_kept(options.store.data),
        installed.clock(path),
        checks.server(options.server) if named is None else checks.answers(named),
        installed.compiled(),
    ]


def _configured(data: str | None, config: Path | None) -> tuple[Config, Finding]:
    """What is wrong with the configuration is one more finding: the rest is looked at with defaults."""
    from crawlguide.core.config import load  # noqa: PLC0415
    from crawlguide.gateway.doctor import Finding  # noqa: PLC0415

    flags = {"store.data": data}
    try:
        options = settings(config, flags)
    except ConfigError as wrong:
        mend = "correct it; `crawlguide config explain KEY` says what a key takes"
        return load(None, {}, flags), Finding("configuration", "wrong", wrong.message, mend)
    return options, Finding("configuration", "ok", f"{config_file(config) or 'no file'}, no mistakes")


def _kept(data: str) -> list[Finding]:
    from crawlguide.gateway import doctor as checks  # noqa: PLC0415

    if data == MEMORY:
        mend = "name a folder with --data or store.data"
        return [checks.Finding("data folder", "warn", ":memory: forgets all at the end", mend)]
    path = Path(data)
    first = checks.folder(path)
    return [first] if first.state == "wrong" else [first, checks.room(path), checks.disk(path)]


def _show(findings: list[Finding], wrong: int, warned: int) -> None:
    from crawlguide.cli.showing import show, table, text  # noqa: PLC0415

    rows: list[tuple[str, ...]] = []
    for one in findings:
        rows.append((one.state, one.name, one.found))
        rows += [("", "", f"-> {one.mend}")] if one.mend else []
    summary: Any = f"{wrong} wrong, {warned} to look at" if wrong or warned else "all is well"
    show(table(("", "", ""), rows), text(summary, "bold"))
