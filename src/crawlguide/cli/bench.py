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


@app.command()
def bench(
    urls: Annotated[list[int], typer.Option("--urls", min=10_000, help="A size of frontier; may be repeated.")] = SIZES,
    hosts: Annotated[int, typer.Option(min=100, help="Over so many hosts.")] = 10_000,
    rounds: Annotated[int, typer.Option(min=150, help="Asks and tells that are timed.")] = 500,
    scratch: Annotated[Path | None, typer.Option(help="Where the folders grow; on the disk to be measured.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Beside other frontiers; from a checkout only.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write all figures to this file.")] = None,
) -> None:
    """What asks, tells and starts cost on this machine, on one core.

    Example: crawlguide bench --urls 100000 --json speed.json
    """
    check_output("--json", json)
    compile_first()
    import msgspec

    from crawlguide.lab.speed import run, table

    others = _peers(max(urls)) if peers else None
    with tempfile.TemporaryDirectory(prefix="crawlguide-bench-", dir=scratch) as folder:
        found = run.document(run.Plan(sorted(set(urls)), hosts, rounds, Path(folder), say), others)
    typer.echo(table.sizes(found["sizes"]) + "\n\n" + table.queues(found["queues"]))
    if json is not None:
        json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))


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
