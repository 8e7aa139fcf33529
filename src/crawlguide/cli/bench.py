"""crawlguide bench."""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crawlguide.cli.common import app, check_output, compile_first, say
from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = [100_000, 1_000_000, 5_000_000]
LEAST_LIVED = 10_000
LIVED_AT_MOST = 1_000_000  # unless asked for: a lived crawl grows by a few thousand URLs a second


@app.command()
def bench(  # noqa: PLR0913, PLR0917 - the options of a command
    urls: Annotated[list[int], typer.Option("--urls", min=10_000, help="A size of frontier; may be repeated.")] = SIZES,
    lived: Annotated[
        list[int] | None, typer.Option(min=0, help="A size of the lived crawl; may be repeated; 0: none.")
    ] = None,
    hosts: Annotated[int, typer.Option(min=100, help="Over so many hosts.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=150, help="Asks and tells that are timed.")] = 500,
    scratch: Annotated[Path | None, typer.Option(help="Where the folders grow; on the disk to be measured.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Beside other frontiers; from a checkout only.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """What asks, tells and starts cost on this machine, on one core: of crawls filled at once, and of one that lived.

    The lived crawl grows by asks and tells to each of its sizes, without --lived to those of --urls up to a million.

    Example: crawlguide bench --urls 100000 --json speed.json
    """
    check_output("--json", json)
    from crawlguide.core.config import Config

    compile_first(Config())
    import msgspec

    from crawlguide.lab.speed import run, table

    others = _peers(max(urls)) if peers else None
    with tempfile.TemporaryDirectory(prefix="crawlguide-bench-", dir=scratch) as folder:
        plan = run.Plan(sorted(set(urls)), hosts, rounds, Path(folder), say, _lived_sizes(lived, urls))
        found = run.document(plan, others)
    typer.echo(table.whole(found))
    if json is not None:
        json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))


def _lived_sizes(lived: list[int] | None, urls: list[int]) -> list[int]:
    """Ascending: it is one crawl that grows."""
    given = [size for size in urls if size <= LIVED_AT_MOST] if lived is None else lived
    sizes = sorted({size for size in given if size})
    if sizes and sizes[0] < LEAST_LIVED:
        raise ConfigError(f"--lived: expected 0 or at least {LEAST_LIVED}, got {sizes[0]}")
    return sizes


def _peers(most: int) -> Callable[[], list[dict[str, Any]]]:
    """Other people's frontiers, with fewer URLs for small sizes; installed beside a checkout, not with the package."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        peers: Any = import_module("bench.peers.run")
    except ImportError:
        raise ConfigError("--peers: expected a checkout of crawlguide as the working folder") from None
    share = min(1.0, most / max(peers.COUNTS.values()))
    counts = {name: round(count * share) for name, count in peers.COUNTS.items()}
    return lambda: cast("list[dict[str, Any]]", peers.measured(counts))
