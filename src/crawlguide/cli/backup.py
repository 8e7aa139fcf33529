"""crawlguide backup, restore, export."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from crawlguide.cli.common import (
    ConfigOption,
    CrawlOption,
    DataOption,
    UrlOption,
    app,
    check_place,
    opened,
    say,
    settings,
    speaks,
)


@app.command()
@speaks
def backup(
    target: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the copy.")],
    data: DataOption = None,
    url: UrlOption = None,
    config: ConfigOption = None,
) -> None:
    """Copy a data folder, in use (--url) or not (--data).

    Example: crawlguide backup copies/monday --url http://127.0.0.1:8080
    """
    options = settings(config, {"store.data": data})
    check_place(options, data, url, must_exist=True)
    folder = target.resolve()
    with opened(options, url) as place:
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
    from crawlguide.gateway import backup as copies
    from crawlguide.gateway.opening import title, url_count
    from crawlguide.gateway.places import Folder

    options = settings(config, {"store.data": data})
    check_place(options, data)
    folder = Path(options.store.data).resolve()
    slip = asyncio.run(copies.restore(source, folder))
    with closing(Folder(folder, options)) as place:
        found = place.counts()
    typer.echo(f"restored {folder}, as it was at {slip.made}, state {slip.state_hash}")
    learned = copies.read_slip(source).state_hash.partition("-")[2]
    if learned and not slip.state_hash.endswith(learned):
        say("  what strategies have learned is not as it was in memory: one of them does not say all that it changes")
    for crawl, numbers in found.items():
        states = ", ".join(f"{numbers[state]} {state}" for state in ("queued", "leased", "done"))
        typer.echo(f"  {title(crawl)}: {url_count(numbers)} URLs: {states}, {sum(numbers['dropped'].values())} dropped")


@app.command()
@speaks
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
    from crawlguide.gateway.arguments import crawl_name
    from crawlguide.gateway.transfers import STANDARD_OUTPUT, give, written

    options, name = settings(config, {"store.data": data}), crawl_name(crawl)
    check_place(options, data, url, must_exist=True)
    try:
        with written(output) as file, opened(options, url) as place:
            count = give(place, name, file)
    except BrokenPipeError:  # whoever read it has had enough
        return
    if output != STANDARD_OUTPUT:
        say(f"{count} lines in {output}")
