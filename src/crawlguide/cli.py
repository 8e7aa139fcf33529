"""The command line. Nothing heavy is imported before a command needs it, so help comes at once."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crawlguide.core.config import Config
    from crawlguide.gateway.places import Place
    from crawlguide.gateway.transfers import Source, Tally

app = typer.Typer(
    help="Which URL should a crawler fetch next? Tell crawlguide what you fetched, ask it what to fetch next.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
DataOption = Annotated[str | None, typer.Option("--data", help="The data folder; no server may have it open.")]
UrlOption = Annotated[str | None, typer.Option("--url", help="A server that runs, such as http://127.0.0.1:8080.")]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="A crawlguide.toml.")]
CrawlOption = Annotated[str, typer.Option("--crawl", help="The name of the crawl.")]
Kind = Literal["auto", "ndjson", "urls", "sitemap", "scrapy"]


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
    config: ConfigOption = None,
    seed: Annotated[int, typer.Option(help="Chance starts from here.")] = 0,
) -> None:
    """Answer crawlers over HTTP until Ctrl-C.

    Example: crawlguide serve --port 8080
    """
    from crawlguide.gateway import serve as door  # noqa: PLC0415
    from crawlguide.gateway.folder import greeting  # noqa: PLC0415
    from crawlguide.gateway.library import open_guide  # noqa: PLC0415

    settings = _settings(config, {"server.host": host, "server.port": port, "store.data": data})
    door.bound(settings.server.host, settings.server.port).close()  # say that a port is taken before loading anything
    began = time.monotonic()
    guide = open_guide(settings.store.data, settings, seed=seed)
    took_s = time.monotonic() - began

    async def answer() -> None:
        _say(await greeting(guide, took_s))
        await door.serve(guide, settings, ready_file, _say)

    _run(answer())


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the copy.")],
    data: DataOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy a data folder, in use (--url) or not (--data).

    Example: crawlguide backup copies/monday --url http://127.0.0.1:8080
    """
    settings = _settings(config, {"store.data": data})
    _check_place(settings, data, url, must_exist=True)
    folder = target.resolve()
    with _opened(settings, url) as place:
        slip = place.backed_up(folder)
    typer.echo(f"backup  {folder}\nmade    {slip.made}\nstate   {slip.state_hash}")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `crawlguide backup` has made.")],
    data: Annotated[str | None, typer.Option(help="The data folder to make; a new or an empty one.")] = None,
    config: ConfigOption = None,
) -> None:
    """Put a copy back as a data folder.

    Example: crawlguide restore copies/monday --data crawlguide-data
    """
    from crawlguide.gateway import backup as copies  # noqa: PLC0415
    from crawlguide.gateway.folder import Folder, urls  # noqa: PLC0415

    settings = _settings(config, {"store.data": data})
    _check_place(settings, data)
    folder = Path(settings.store.data).resolve()
    slip = asyncio.run(copies.restore(source, folder))
    with closing(Folder(folder, settings)) as place:
        found = place.counts()
    typer.echo(f"restored {folder}, as it was at {slip.made}, state {slip.state_hash}")
    for name, numbers in found.items():
        states = ", ".join(f"{numbers[state]} {state}" for state in ("queued", "leased", "done"))
        typer.echo(f"  {name}: {urls(numbers)} URLs: {states}, {sum(numbers['dropped'].values())} dropped")


@app.command()
def export(
    crawl: CrawlOption = "default",
    output: Annotated[Path, typer.Option(help="The file to write; - is the standard output.")] = Path("-"),
    data: DataOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
) -> None:
    """Write a crawl as lines of JSON: its definition, its URLs, its links.

    Example: crawlguide export --crawl books --output books.ndjson
    """
    from crawlguide.gateway.output import STANDARD_OUTPUT, give, written  # noqa: PLC0415
    from crawlguide.gateway.places import crawl_name  # noqa: PLC0415

    settings, name = _settings(config, {"store.data": data}), crawl_name(crawl)
    _check_place(settings, data, url, must_exist=True)
    try:
        with written(output) as file, _opened(settings, url) as place:
            count = give(place, name, file)
    except BrokenPipeError:  # whoever read it has had enough
        return
    if output != STANDARD_OUTPUT:
        _say(f"{count} lines in {output}")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file, a Scrapy JOBDIR, or - for standard input.")],
    crawl: CrawlOption = "default",
    kind: Annotated[Kind, typer.Option("--format", help="What the file holds; auto looks into it.")] = "auto",
    data: DataOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
) -> None:
    """Take over an export, a list of URLs, a sitemap or the waiting requests of a Scrapy job.

    Example: crawlguide import urls.txt --crawl books
    """
    from crawlguide.gateway.places import crawl_name, readable  # noqa: PLC0415

    settings, name = _settings(config, {"store.data": data}), crawl_name(crawl)
    _check_place(settings, data, url)
    readable(file)

    from crawlguide.gateway import batches, transfers  # noqa: PLC0415

    source, tally = transfers.Source(file, batches.kind_of(file, kind), name), transfers.Tally()
    with _opened(settings, url) as place:
        _take(place, source, tally)
    typer.echo(str(tally))
    for reason in tally.reasons:
        _say(f"  skipped {reason}")
    if tally.skipped > len(tally.reasons):
        _say(f"  and {tally.skipped - len(tally.reasons)} more")
    if tally.read and tally.read == tally.skipped:
        raise typer.Exit(FAILED)


def _take(place: Place, source: Source, tally: Tally) -> None:
    """Import, and if it is stopped say how far it got."""
    from crawlguide.gateway.transfers import take  # noqa: PLC0415

    try:
        with _progress(source) as shown:
            take(place, source, tally, shown)
    except KeyboardInterrupt:
        _say(f"stopped: {tally}; that much is kept, and the same command again does the rest")
        raise typer.Exit(INTERRUPTED) from None
    except CrawlGuideError:
        if tally.read:
            _say(f"stopped: {tally}; that much is kept")
        raise


@contextmanager
def _progress(source: Source) -> Iterator[Callable[[Tally], None]]:
    """A bar for people; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    from crawlguide.gateway.batches import line_count  # noqa: PLC0415

    columns = (progress.BarColumn(), progress.TextColumn("{task.description}"), progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=line_count(source.path, source.kind))
        yield lambda tally: bar.update(task, completed=tally.read, description=str(tally))


@contextmanager
def _opened(settings: Config, url: str | None) -> Iterator[Place]:
    """The server at `url`, or the folder that is configured."""
    place: Place
    if url is not None:
        from crawlguide.gateway.remote import Remote  # noqa: PLC0415

        place = Remote(url, settings.server.max_message_bytes)
    else:
        from crawlguide.gateway.folder import Folder  # noqa: PLC0415

        place = Folder(Path(settings.store.data), settings)
    with closing(place):
        yield place


def _check_place(settings: Config, data: str | None, url: str | None = None, *, must_exist: bool = False) -> None:
    """Say what cannot work before anything is loaded."""
    from crawlguide.gateway import places  # noqa: PLC0415

    if url is not None and data is not None:
        raise ConfigError("--data and --url: expected one of them, got both")
    if url is not None:
        places.address(url)
    else:
        (places.existing if must_exist else places.kept)(Path(settings.store.data))


def _settings(config: Path | None, flags: dict[str, Any]) -> Config:
    from crawlguide.core.config import load  # noqa: PLC0415

    return load(_config_file(config), os.environ, flags)


def _say(text: str) -> None:
    """To whoever watches, in one line of what can be printed: some of it may come out of a file of somebody else's."""
    typer.echo("".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text), err=True)


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
        _say(f"crawlguide: {problem.message}")
        sys.exit(WRONG_USAGE if isinstance(problem, ConfigError) else FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
