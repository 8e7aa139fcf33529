"""The command line. Nothing heavy is imported before a command needs it, so help comes at once."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.version import __version__

app = typer.Typer(
    help="Which URL should a crawler fetch next? Tell crawlguide what you fetched, ask it what to fetch next.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
FAILED, WRONG_USAGE = 1, 2


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


@app.command()
def serve(
    data: Annotated[str | None, typer.Option(help="Folder to remember in; :memory: forgets at the end.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")] = None,
    ready_file: Annotated[Path | None, typer.Option(help="Written, with the ports as JSON, when ready.")] = None,
    config: Annotated[Path | None, typer.Option(help="A crawlguide.toml.")] = None,
    seed: Annotated[int, typer.Option(help="Chance starts from here.")] = 0,
) -> None:
    """Answer crawlers over HTTP until Ctrl-C.

    Example: crawlguide serve --port 8080
    """
    from crawlguide.core.config import load  # noqa: PLC0415
    from crawlguide.gateway import serve as door  # noqa: PLC0415
    from crawlguide.gateway.library import open_guide  # noqa: PLC0415

    flags = {"server.host": host, "server.port": port, "store.data": data}
    settings = load(_config_file(config), os.environ, flags)
    door.bound(settings.server.host, settings.server.port).close()  # say that a port is taken before loading anything
    guide = open_guide(settings.store.data, settings, seed=seed)
    _run(door.serve(guide, settings, ready_file, lambda text: typer.echo(text, err=True)))


def _config_file(given: Path | None) -> Path | None:
    if given is not None:
        return given
    named = os.environ.get("CRAWLGUIDE_CONFIG")
    if named:
        return Path(named)
    here = Path("crawlguide.toml")
    return here if here.exists() else None


def _run(work: Any) -> None:
    import uvloop  # noqa: PLC0415

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def main() -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong usage."""
    try:
        app()
    except CrawlGuideError as problem:
        typer.echo(f"crawlguide: {problem.message}", err=True)
        sys.exit(WRONG_USAGE if isinstance(problem, ConfigError) else FAILED)
    except KeyboardInterrupt:
        sys.exit(130)
