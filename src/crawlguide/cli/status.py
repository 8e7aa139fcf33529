"""crawlguide status."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.cli.common import ConfigOption, FolderOption, JsonOption, ServerOption, app, say, say_json, speaks
from crawlguide.core.errors import ConfigError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from crawlguide.gateway.client.verbs import Verbs

EVERY_S = 1.0
NAME_CELLS = 20
COLUMNS = ("crawl", "state", " queued", " leased", " done", " dropped", " hosts", " relevant", " fetches")
NO_CRAWLS = "no crawls yet; `crawlguide next --crawler me --seed https://example.com/` begins one"


@dataclass(frozen=True)
class Look:
    """What the server said, or that it did not answer; and how fast each crawl fetches."""

    numbers: dict[str, Any] = field(default_factory=dict)
    per_s: dict[str, float] | None = None
    problem: str = ""
    served: bool = True


@app.command()
@speaks
def status(
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second until Ctrl-C.")] = False,
    crawl: Annotated[str | None, typer.Option("--crawl", help="This crawl alone.")] = None,
    url: ServerOption = None,
    data: FolderOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show what every crawl has waiting, given out and done.

    The relevant ones are a share of all fetches. Ctrl-C ends --watch.

    Example: crawlguide status

    Example: crawlguide status --watch --crawl default
    """
    from crawlguide.cli.connection import answering
    from crawlguide.cli.printing import show
    from crawlguide.gateway.arguments import crawl_name

    if watch and data is not None:
        raise ConfigError("--watch: expected a server (--url); nothing changes in a folder that this command has open")
    name = None if crawl is None else crawl_name(crawl)
    with answering(url, data, config) as guide:
        if watch:
            _watch(guide, name, json)
        elif json:
            say_json(guide.stats(name))
        else:
            show(*_shown(Look(guide.stats(name), served=data is None)))


def _watch(guide: Verbs, name: str | None, json: bool) -> None:
    """Ctrl-C is how it ends, so it ends well."""
    looks = _looks(guide, name)
    try:
        if json:
            _lines(looks)
        elif sys.stdout.isatty():
            _live(looks)
        else:
            _blocks(looks)
    except KeyboardInterrupt:
        return


def _looks(guide: Verbs, name: str | None) -> Iterator[Look]:
    """One each second. A server that goes away after the first may come back."""
    at, last = time.monotonic(), Look(guide.stats(name), {})
    yield last
    while True:
        time.sleep(EVERY_S)
        try:
            numbers = guide.stats(name)
        except UnavailableError as problem:
            yield Look(problem=problem.message)
            continue
        now = time.monotonic()
        yield (last := Look(numbers, _per_s(last.numbers, numbers, now - at)))
        at = now


def _per_s(before: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> dict[str, float]:
    """Fetches a second since the last look; a server that was started anew counts from there."""
    known = before["crawls"]
    return {
        name: max(0, crawl["fetches"] - known[name]["fetches"]) / seconds
        for name, crawl in now["crawls"].items()
        if name in known
    }


def _lines(looks: Iterator[Look]) -> None:
    for look in looks:
        if look.problem:
            say(look.problem)
        else:
            say_json(look.numbers)
        sys.stdout.flush()


def _blocks(looks: Iterator[Look]) -> None:
    from crawlguide.cli.printing import show

    for look in looks:
        show(*_shown(look))
        typer.echo()
        sys.stdout.flush()


def _live(looks: Iterator[Look]) -> None:
    from rich.console import Group
    from rich.live import Live

    from crawlguide.cli.printing import console

    with Live(console=console(), auto_refresh=False) as view:
        for look in looks:
            view.update(Group(*_shown(look)), refresh=True)


def _shown(look: Look) -> list[Any]:
    from crawlguide.cli.printing import table, text

    if look.problem:
        return [text(look.problem, "red")]
    crawls = dict(sorted(look.numbers["crawls"].items()))  # a map of gRPC has no order
    rows = [_row(name, crawl) + _speed(name, look.per_s) for name, crawl in crawls.items()]
    columns = COLUMNS if look.per_s is None else (*COLUMNS, " /s")
    shown = table(columns, rows, NAME_CELLS if sys.stdout.isatty() else None) if crawls else text(NO_CRAWLS)
    return [text(_about(look.numbers), "dim"), shown] if look.served else [shown]


def _about(numbers: Mapping[str, Any]) -> str:
    up = f"up {numbers['uptime_s']:.0f} s, {numbers['num_queries_completed']} asks"
    return f"crawlguide {numbers['version']}, {up}"


def _row(name: str, crawl: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (crawl["queued"], crawl["leased"], crawl["done"], sum(crawl["dropped"].values()), crawl["hosts"])
    share = f"{crawl['relevant'] / crawl['fetches']:.0%}" if crawl["fetches"] else "-"
    return name, crawl["state"], *(f"{count:,}" for count in counts), share, f"{crawl['fetches']:,}"


def _speed(name: str, per_s: Mapping[str, float] | None) -> tuple[str, ...]:
    return () if per_s is None else (f"{per_s[name]:.1f}" if name in per_s else "-",)
