"""crawlguide explain."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import Mapping


@app.command()
@speaks
def explain(
    address: Annotated[str, typer.Argument(metavar="URL", help="A URL that the crawl knows.")],
    crawl: CrawlOption = "default",
    url: ServerOption = None,
    data: FolderOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Say why a URL stands where it stands.

    Its state, score and filters, and what would have to change for it to be given out.

    Example: crawlguide explain https://example.com/next
    """
    from crawlguide.cli.connection import answering
    from crawlguide.cli.printing import show
    from crawlguide.gateway.arguments import crawl_name

    name = crawl_name(crawl)
    with answering(url, data, config) as guide:
        found = guide.explain(name, address)
    if json:
        say_json(found)
    else:
        show(*_shown(found))


def _shown(found: Mapping[str, Any]) -> list[Any]:
    from crawlguide.cli.printing import section, text

    links = [(link["url"], repr(link["anchor"]) if link["anchor"] else "") for link in found["links"]]
    return [
        text(found["words"], "bold"),
        section(found["canonical"], _state(found)),
        section("terms", _terms(found["terms"])),
        section("filters", [(rule["verdict"], rule["name"], rule["why"]) for rule in found["filters"]]),
        section("history", [_event(event) for event in found["history"]]),
        section("pages that link to it", links),
        section("what would have to change", [(need,) for need in found["needs"]]),
    ]


def _state(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    lease, reason = found["lease"], found["reason"]
    rows = [("state", found["state"] + (f" ({reason})" if reason else ""))]
    rows += [("leased to", f"{lease['crawler_id']} until {lease['lease_expires']}")] if lease else []
    rows += [("rank", f"{found['rank']} of those that wait")] if found["rank"] else []
    return [*rows, ("score", f"{found['score']:.3f}"), ("p", f"{found['p']:.2f}")]


def _terms(terms: Mapping[str, float]) -> list[tuple[str, str, str]]:
    from crawlguide.cli.printing import bar

    longest = max(map(abs, terms.values()), default=0.0)
    return [(name, f"{value:+.3f}", bar(value, longest)) for name, value in terms.items()]


def _event(event: Mapping[str, Any]) -> tuple[str, str, str]:
    more = [f"{name} {value}" for name, value in event.items() if name not in {"at", "event"} and value is not None]
    return event["at"], event["event"], ", ".join(more)
