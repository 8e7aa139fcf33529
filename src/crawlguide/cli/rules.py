"""crawlguide release and crawlguide rules: a crawl that runs, steered by hand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.cli.common import (
    ConfigOption,
    CrawlOption,
    FolderOption,
    JsonOption,
    ServerOption,
    app,
    say_json,
    speaks,
)
from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

Texts = list[str] | None
URL_OF = "A URL; repeatable."
HOST_OF = "A host; repeatable."
PATTERN_OF = "An RE2 pattern found in URLs; repeatable."


@app.command()
@speaks
def release(
    crawler: Annotated[str, typer.Option("--crawler", metavar="ID", help="Who leaves.")],
    crawl: CrawlOption = "default",
    url: ServerOption = None,
    data: FolderOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Return everything that a crawler holds.

    For a crawler that has gone: others get its URLs at once, and not only when its leases end.

    Example: crawlguide release --crawler me --crawl books
    """
    from crawlguide.cli.connection import answering
    from crawlguide.gateway.arguments import crawl_name

    name = crawl_name(crawl)
    with answering(url, data, config) as guide:
        released = guide.release(name, crawler)
    if json:
        say_json({"released": released})
    else:
        typer.echo(printable(f"{released} URLs of {crawler} wait again in crawl {crawl!r}"))


@app.command()
@speaks
def rules(  # noqa: PLR0913, PLR0917 - the options of a command
    ban_url: Annotated[Texts, typer.Option(metavar="URL", help=URL_OF)] = None,
    ban_host: Annotated[Texts, typer.Option(metavar="HOST", help=HOST_OF)] = None,
    ban_pattern: Annotated[Texts, typer.Option(metavar="RE2", help=PATTERN_OF)] = None,
    unban_url: Annotated[Texts, typer.Option(metavar="URL", help=URL_OF)] = None,
    unban_host: Annotated[Texts, typer.Option(metavar="HOST", help=HOST_OF)] = None,
    unban_pattern: Annotated[Texts, typer.Option(metavar="RE2", help=PATTERN_OF)] = None,
    url_priority: Annotated[Texts, typer.Option(metavar="URL=0…1", help="Its priority; repeatable.")] = None,
    host_factor: Annotated[Texts, typer.Option(metavar="HOST=NUMBER", help="Weighs its URLs; repeatable.")] = None,
    pattern_factor: Annotated[Texts, typer.Option(metavar="RE2=NUMBER", help="Weighs such URLs; repeatable.")] = None,
    edit: Annotated[str | None, typer.Option(metavar="-", help="- reads edits as JSON.")] = None,
    crawl: CrawlOption = "default",
    url: ServerOption = None,
    data: FolderOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show what is banned and weighted in a crawl, or change it while the crawl runs.

    Without options that change something it only shows. --edit - reads what POST /v1/crawls/ID/rules takes; there
    null lifts a priority.

    Example: crawlguide rules --crawl books

    Example: crawlguide rules --crawl books --ban-host ads.example --ban-pattern /archive/

    Example: crawlguide rules --crawl books --unban-host ads.example --host-factor example.com=0.5
    """
    from crawlguide.cli.connection import answering
    from crawlguide.gateway.arguments import crawl_name

    ban = _given(urls=ban_url, hosts=ban_host, patterns=ban_pattern)
    unban = _given(urls=unban_url, hosts=unban_host, patterns=unban_pattern)
    weighed = _given(urls=url_priority, hosts=host_factor, patterns=pattern_factor)
    wanted, name = _edits(ban, unban, weighed, edit), crawl_name(crawl)
    with answering(url, data, config) as guide:
        found = guide.edit_rules(name, wanted) if wanted else guide.rules(name)
    (say_json if json else _show)(found)


def _edits(
    ban: Mapping[str, Any], unban: Mapping[str, Any], weighed: Mapping[str, Any], edit: str | None
) -> dict[str, Any]:
    """All that is to change, from the options or from the standard input."""
    priority = {kind: dict(map(_pair, pairs)) for kind, pairs in weighed.items()}
    wanted = _given(ban=ban, unban=unban, priority=priority)
    return wanted if edit is None else _read(edit, wanted)


def _given(**lists: Any) -> dict[str, Any]:
    """Those that say something."""
    return {kind: items for kind, items in lists.items() if items}


def _pair(text: str) -> tuple[str, float]:
    """What is weighed, and by how much; it may hold a = itself."""
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        raise ConfigError(f"expected a number after the last =, such as example.com=0.5, got {text[:80]!r}") from None


def _read(edit: str, others: Mapping[str, Any]) -> dict[str, Any]:
    """Edits off the standard input."""
    import msgspec

    if edit != "-":
        raise ConfigError(f"--edit: expected -, for JSON on the standard input, got {edit[:80]!r}")
    if others:
        raise ConfigError(f"--edit: expected all edits in the JSON, got options too ({', '.join(others)})")
    try:
        read = msgspec.json.decode(sys.stdin.buffer.read())
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"--edit: expected JSON on the standard input: {wrong}") from None
    if not isinstance(read, dict):
        raise ConfigError(f'--edit: expected {{"ban": {{…}}}}, got {str(read)[:80]!r}')
    return read


def _show(found: Mapping[str, Any]) -> None:
    from crawlguide.cli.printing import show, table, text

    bans = [("banned", kind.removesuffix("s"), one, "") for kind, items in found["ban"].items() for one in items]
    weights = [
        ("priority" if kind == "urls" else "factor", kind.removesuffix("s"), one, f"{number:g}")
        for kind, items in found["priority"].items()
        for one, number in items.items()
    ]
    rows = bans + weights
    show(table(("rule", "of", "what", " is"), rows) if rows else text("nothing is banned or weighted"))
