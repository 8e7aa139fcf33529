"""What all commands share: options, settings, and how they speak to people."""

from __future__ import annotations

import asyncio
import inspect
import os
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from crawlguide.core.config import Config
    from crawlguide.gateway.places import Place

Result = TypeVar("Result")
ORDER = (
    "init", "crawl", "serve", "agents", "keys", "next", "report", "explain", "release", "rules", "status", "config",
    "doctor", "backup", "restore", "export", "import", "lab", "train", "bench",
)  # fmt: skip


class InOrder(TyperGroup):
    """Commands as one meets them, and not as their files are called. What is not in the order comes last."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`help crawl` is `crawl --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)


app = typer.Typer(
    cls=InOrder,
    help="Which URL should a crawler fetch next? Tell crawlguide what you fetched, ask it what to fetch next.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
COMPILING = "compiling for this machine, {takes}; later starts find it done"
NOT_KEPT = "compiling for this machine, {takes}, at every start: set NUMBA_CACHE_DIR to a folder that can be written to"
DataOption = Annotated[str | None, typer.Option("--data", help="The data folder; no server may have it open.")]
UrlOption = Annotated[str | None, typer.Option("--url", help="A server that runs, such as http://127.0.0.1:8080.")]
ServerOption = Annotated[
    str | None, typer.Option("--url", help="The server to speak to; http://127.0.0.1:8080 if nothing is configured.")
]
FolderOption = Annotated[
    str | None, typer.Option("--data", help="Open this folder instead; no server may have it open.")
]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="A crawlguide.toml.")]
CrawlOption = Annotated[str, typer.Option("--crawl", help="The name of the crawl.")]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", help="An API key or a token; better in CRAWLGUIDE_TOKEN or ~/.config/crawlguide/token."),
]
CaOption = Annotated[
    str | None,
    typer.Option("--ca", help="The authority behind the server's certificate: a PEM file, or CRAWLGUIDE_CA."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead, for programs.")]


def speaks(command: Callable[..., None]) -> Callable[..., None]:
    """For commands that speak to a server: `--token` and `--ca`, which clients find in the environment."""

    @wraps(command)
    def with_credentials(*, token: str | None = None, ca: str | None = None, **options: Any) -> None:
        show_to_servers(token, ca)
        command(**options)

    own = inspect.signature(command, eval_str=True)
    added = {"token": TokenOption, "ca": CaOption}
    more = [own.parameters["url"].replace(name=name, annotation=kind) for name, kind in added.items()]
    parameters = [*own.parameters.values(), *more]
    with_credentials.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_credentials.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_credentials


def show_to_servers(token: str | None, ca: str | None) -> None:
    """What was typed goes where clients look for it, and wins over what is there."""
    os.environ.update({name: text for name, text in (("CRAWLGUIDE_TOKEN", token), ("CRAWLGUIDE_CA", ca)) if text})


@contextmanager
def opened(options: Config, url: str | None) -> Iterator[Place]:
    """The server at `url`, or the folder that is configured."""
    place: Place
    if url is not None:
        from crawlguide.gateway.places import Remote

        place = Remote(url, options.server.max_message_bytes)
    else:
        compile_first(options)
        from crawlguide.gateway.places import Folder

        place = Folder(Path(options.store.data), options)
    with closing(place):
        yield place


def check_place(options: Config, data: str | None, url: str | None = None, *, must_exist: bool = False) -> None:
    """Say what cannot work before anything is loaded."""
    from crawlguide.gateway import arguments

    if url is not None and data is not None:
        raise ConfigError("--data and --url: expected one of them, got both")
    if url is not None:
        arguments.address(url)
        return
    folder = Path(options.store.data)
    try:
        (arguments.existing if must_exist else arguments.kept)(folder)
    except OSError as problem:
        raise ConfigError(f"data: {folder} cannot be used: {problem.strerror}") from None


def check_output(option: str, place: Path | None) -> None:
    """Hours of work are not to end with a word about a folder."""
    if place is not None and (place.is_dir() or not os.access(place.parent, os.W_OK | os.X_OK)):
        raise ConfigError(f"{option}: expected a file in a folder that can be written to, got {place}")


def settings(config: Path | None, flags: dict[str, Any]) -> Config:
    from crawlguide.core.config import load

    return load(config_file(config), os.environ, flags)


def say(text: str) -> None:
    """To whoever watches, in one line of what can be printed: some of it may come out of a file of somebody else's."""
    typer.echo(printable(text), err=True)


def _say_compiling(sentence: str, takes: str) -> None:
    say(f"crawlguide: {sentence.format(takes=takes)}")


def compile_first(options: Config | None = None, announce: Callable[..., None] = _say_compiling) -> None:
    """Unless it was done before, compile on all cores what a guide with these options needs; whoever waits is told why.

    To be called before modules with kernels are imported: each compiles its own, one after the other, without a word.
    Without options it is everything, for commands that may load any strategy.
    """
    from crawlguide.core import compiling

    modules = compiling.needed_by(options) if options else compiling.all_modules()
    if compiling.all_compiled(modules):
        return
    if not compiling.can_be_kept():  # other processes could hand nothing over to this one
        announce(NOT_KEPT, takes=compiling.TAKES)
        return
    announce(COMPILING, takes=compiling.TAKES)
    compiling.compile_kernels(modules)


def say_json(message: Any) -> None:
    """The message in one line, as it goes over the wire."""
    import msgspec

    typer.echo(msgspec.json.encode(message))


def config_file(given: Path | None) -> Path | None:
    if given is not None:
        return given
    named = os.environ.get("CRAWLGUIDE_CONFIG")
    if named:
        return Path(named)
    here = Path("crawlguide.toml")
    return here if here.exists() else None


def run(work: Coroutine[Any, Any, Result]) -> Result:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
