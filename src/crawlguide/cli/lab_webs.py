"""crawlguide lab serve, crawlguide lab build: webs to crawl. `crawlguide.cli.lab` takes these commands in."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawlguide.cli.common import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.pages import Task

webs = typer.Typer()
WebOption = Annotated[
    str,
    typer.Option(
        "--web", help="A folder with a recorded web, a file of a crawl, or synthetic[:option=value,…].", metavar="WEB"
    ),
]


@webs.command()
def serve(
    web: WebOption = "synthetic",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 picks a free one.")] = 8090,
    slowest_s: Annotated[float, typer.Option(min=0, max=60, help="So long takes the slowest answer.")] = 1.0,
) -> None:
    """Serve a web on loopback, under all its host names, to whoever takes the port as an HTTP proxy.

    Example: crawlguide lab serve --web synthetic:pages=500 --port 8090
    """
    from crawlguide import lab  # noqa: PLC0415
    from crawlguide.lab.web import open as open_web  # noqa: PLC0415

    its = open_web(web)
    with lab.served(its, port, slowest_s=slowest_s) as server:
        with suppress(KeyboardInterrupt):  # the usual end
            say(f"{its.name} is served on http://127.0.0.1:{server.port}, until Ctrl-C; such as")
            say(f"  curl --proxy http://127.0.0.1:{server.port} {_seed(its.tasks())}")
            threading.Event().wait()
        say(f"{len(server.log)} requests were answered")


@webs.command()
def build(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder for the web.")],
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE", help="DIR=URL, a WARC file, or a file of `crawlguide export`.")
    ],
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="NAME=REGEX: what to look for, in title, URL and text.")
    ] = None,
) -> None:
    """Make a web out of folders of HTML, WARC files or crawls, to run strategies on it.

    Example: crawlguide lab build web books.ndjson
    """
    from crawlguide.lab.build import build as built  # noqa: PLC0415

    made = built(out, sources, topic or [])
    say(f"{out}: {made.pages} pages on {made.hosts} hosts, {made.links} links between them, {made.outside} to outside")
    for name, count in made.tasks.items():
        say(f"  {name}: {count} relevant pages")
    if not made.tasks:
        say("  nothing to look for: no page fits a --topic, and no relevance was told")


def _seed(tasks: Sequence[Task]) -> str:
    """A page to begin with, if the web knows one."""
    from crawlguide.lab.html import plain  # noqa: PLC0415

    return next((plain(urls[0]) for task in tasks for urls in task.seeds.values()), "URL")
