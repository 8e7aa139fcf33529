"""crawlguide import."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crawlguide.cli.common import (
    FAILED,
    INTERRUPTED,
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
from crawlguide.core.errors import CrawlGuideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crawlguide.gateway.places import Place
    from crawlguide.gateway.transfers import Source, Tally

Kind = Literal["auto", "ndjson", "urls", "sitemap", "scrapy"]


@app.command("import")
@speaks
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
    from crawlguide.gateway.arguments import crawl_name, readable

    options, name = settings(config, {"store.data": data}), crawl_name(crawl)
    check_place(options, data, url)
    readable(file)

    from crawlguide.gateway import transfers

    source, tally = transfers.Source(file, transfers.kind_of(file, kind), name), transfers.Tally()
    with opened(options, url) as place:
        _take(place, source, tally)
    typer.echo(str(tally))
    for reason in tally.reasons:
        say(f"  skipped {reason}")
    if tally.skipped > len(tally.reasons):
        say(f"  and {tally.skipped - len(tally.reasons)} more")
    if tally.read and tally.read == tally.skipped:
        raise typer.Exit(FAILED)


def _take(place: Place, source: Source, tally: Tally) -> None:
    """Import, and if it is stopped say how far it got."""
    from crawlguide.gateway.transfers import take

    try:
        with _progress(source) as shown:
            take(place, source, tally, shown)
    except KeyboardInterrupt:
        say(f"stopped: {tally}; that much is kept, and the same command again does the rest")
        raise typer.Exit(INTERRUPTED) from None
    except CrawlGuideError:
        if tally.read:
            say(f"stopped: {tally}; that much is kept")
        raise


@contextmanager
def _progress(source: Source) -> Iterator[Callable[[Tally], None]]:
    """A bar for people; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress
    from rich.console import Console

    from crawlguide.gateway.transfers import line_count

    columns = (progress.BarColumn(), progress.TextColumn("{task.description}"), progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=line_count(source.path, source.kind))
        yield lambda tally: bar.update(task, completed=tally.read, description=str(tally))
