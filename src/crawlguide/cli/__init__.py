"""The command line. Nothing heavy is imported before a command needs it, so help comes at once."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from crawlguide.cli import (
    agents,
    backup,
    bench,
    config,
    crawl,
    doctor,
    explain,
    import_,
    init,
    keys,
    lab,
    lab_freshness,
    next,
    report,
    rules,
    serve,
    status,
    train,
)
from crawlguide.cli.common import FAILED, INTERRUPTED, WRONG_USAGE, app, say
from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.version import __version__

__all__ = [
    "agents",
    "app",
    "backup",
    "bench",
    "config",
    "crawl",
    "doctor",
    "explain",
    "import_",
    "init",
    "keys",
    "lab",
    "lab_freshness",
    "main",
    "next",
    "report",
    "rules",
    "serve",
    "status",
    "train",
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crawlguide {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Which URL should a crawler fetch next?"""


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong usage."""
    try:
        app()
    except CrawlGuideError as problem:
        say(f"crawlguide: {problem.message}")
        sys.exit(WRONG_USAGE if isinstance(problem, ConfigError) else FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
