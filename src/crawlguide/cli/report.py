"""crawlguide report."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from crawlguide.cli.common import (
    FAILED,
    ConfigOption,
    FolderOption,
    JsonOption,
    ServerOption,
    app,
    say,
    say_json,
    speaks,
)
from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

Problem = Literal["timeout", "dns", "connect", "tls", "too_large", "blocked", "other", "released"]
STANDARD_INPUT = "-"
CRAWLER = "crawlguide-report"


@app.command()
@speaks
def report(  # noqa: PLR0913, PLR0917 - the options of a command
    address: Annotated[str, typer.Argument(metavar="URL", help="What was fetched; - reads a report as JSON.")],
    status: Annotated[int | None, typer.Option(min=0, max=999, help="The HTTP status.")] = None,
    error: Annotated[Problem | None, typer.Option(help="Why there was no answer; released gives it back.")] = None,
    relevance: Annotated[float | None, typer.Option(min=0, max=1, help="How good the page is, 0 to 1.")] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    elapsed_ms: Annotated[float | None, typer.Option(min=0, help="How long it took.")] = None,
    size: Annotated[int | None, typer.Option("--bytes", min=0, help="How large it is.")] = None,
    link: Annotated[list[str] | None, typer.Option(metavar="URL", help="A link on the page; repeatable.")] = None,
    crawler: Annotated[str | None, typer.Option(metavar="ID", help="Who fetched it.")] = None,
    crawl: Annotated[str | None, typer.Option(help="The name of the crawl.", show_default="default")] = None,
    url: ServerOption = None,
    data: FolderOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Tell what came of a fetch.

    What was accepted is on the guide's disk when this ends.

    Example: crawlguide report https://example.com/ --status 200 --link /next

    Example: crawlguide report https://example.com/slow --error timeout

    Example: crawlguide report - --json < report.json
    """
    from crawlguide.cli.connection import answering, said_if_new

    fetch: dict[str, Any] = {
        "status": status, "error": error, "relevance": relevance, "title": title, "elapsed_ms": elapsed_ms,
        "bytes": size, "outlinks": [{"url": one} for one in link or []] or None,
    }  # fmt: skip
    fetch = {name: value for name, value in fetch.items() if value is not None}
    told = _read(fetch) if address == STANDARD_INPUT else {"fetches": [_checked({"url": address, **fetch})]}
    message = _whole(told, crawler, crawl)
    with answering(url, data, config) as guide, said_if_new(guide, str(message["crawl_id"])):
        ack = guide.tell(message)
    (say_json if json else _show)(ack)
    if ack["results"] and not ack["accepted"]:
        raise typer.Exit(FAILED)


def _checked(fetch: dict[str, Any]) -> dict[str, Any]:
    if "status" not in fetch and "error" not in fetch:
        raise ConfigError("--status or --error: expected one of them, got neither")
    return fetch


def _read(fetch: Mapping[str, Any]) -> dict[str, Any]:
    """A report off the standard input."""
    import msgspec

    if fetch:
        raise ConfigError(f"report -: expected all about the fetch in the report, got options too ({', '.join(fetch)})")
    if sys.stdin.isatty():
        say("type or paste a report as JSON; Ctrl-D ends it")
    body = sys.stdin.buffer.read()
    if not body.strip():
        raise ConfigError("report -: expected a report as JSON on the standard input, got nothing")
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"report -: expected JSON on the standard input: {wrong}") from None
    if not isinstance(told, dict):
        raise ConfigError(f'report -: expected {{"fetches": [...]}}, got {str(told)[:80]!r}')
    for words in _passed_over(told):
        say(f"crawlguide: {words}")
    return told


def _passed_over(told: Mapping[str, Any]) -> list[str]:
    """Fields that no report has: a guide passes them over, since a crawler may be newer; a person has mistyped."""
    from crawlguide.core.messages import Fetch, Outlink, ReportMessage

    fetches = [one for one in _listed(told.get("fetches")) if isinstance(one, dict)]
    links = [link for one in fetches for link in _listed(one.get("outlinks")) if isinstance(link, dict)]
    known = (("a report", [told], ReportMessage), ("a fetch", fetches, Fetch), ("a link", links, Outlink))
    found = []
    for what, messages, kind in known:
        fields = kind.__struct_fields__
        for name in sorted({str(name) for message in messages for name in message} - {*fields}):
            near = get_close_matches(name, fields, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            found.append(f"report -: {name[:80]!r} is no field of {what} and says nothing{hint}")
    return found


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(told: dict[str, Any], crawler: str | None, crawl: str | None) -> dict[str, Any]:
    """What an option says counts, then what the report says itself, then what goes without saying."""
    from crawlguide.core.messages import VERSION
    from crawlguide.gateway.arguments import crawl_name

    said = {"crawler_id": crawler, "crawl_id": crawl and crawl_name(crawl)}
    given = {name: value for name, value in said.items() if value is not None}
    return {"mcp_version": VERSION, "crawler_id": CRAWLER, "crawl_id": "default", **told, **given}


def _show(ack: Mapping[str, Any]) -> None:
    for item in ack["results"]:
        reason = f": {item['reason']}" if item.get("reason") else ""
        typer.echo(printable(f"{item['status']}  {item['url']}{reason}"))
    dropped = f", {ack['truncated']} links over the limit" if ack["truncated"] else ""
    typer.echo(f"{ack['accepted']} accepted, {ack['discovered']} new URLs{dropped}")
