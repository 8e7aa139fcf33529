"""What all commands share: options, settings, and how they speak to people."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.core.config import Config
    from crawlguide.gateway.places import Place

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


@contextmanager
def opened(options: Config, url: str | None) -> Iterator[Place]:
    """The server at `url`, or the folder that is configured."""
    place: Place
    if url is not None:
        from crawlguide.gateway.remote import Remote  # noqa: PLC0415

        place = Remote(url, options.server.max_message_bytes)
    else:
        from crawlguide.gateway.folder import Folder  # noqa: PLC0415

        place = Folder(Path(options.store.data), options)
    with closing(place):
        yield place


def check_place(options: Config, data: str | None, url: str | None = None, *, must_exist: bool = False) -> None:
    """Say what cannot work before anything is loaded."""
    from crawlguide.gateway import places  # noqa: PLC0415

    if url is not None and data is not None:
        raise ConfigError("--data and --url: expected one of them, got both")
    if url is not None:
        places.address(url)
    else:
        (places.existing if must_exist else places.kept)(Path(options.store.data))


def settings(config: Path | None, flags: dict[str, Any]) -> Config:
    from crawlguide.core.config import load  # noqa: PLC0415

    return load(config_file(config), os.environ, flags)


def say(text: str) -> None:
    """To whoever watches, in one line of what can be printed: some of it may come out of a file of somebody else's."""
    typer.echo("".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text), err=True)


def config_file(given: Path | None) -> Path | None:
    if given is not None:
        return given
    named = os.environ.get("CRAWLGUIDE_CONFIG")
    if named:
        return Path(named)
    here = Path("crawlguide.toml")
    return here if here.exists() else None


def run(work: Any) -> None:
    import uvloop  # noqa: PLC0415

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
