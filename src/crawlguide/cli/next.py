"""crawlguide next."""

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
from crawlguide.core.errors import ConfigError, NotFound, UrlError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.gateway.client.verbs import Verbs

BEGINS = "A crawl that is not there yet gets this one's strategy, and begins with what it has learned."
NOTHING = {
    "running": "nothing may be fetched right now",
    "waiting": "nothing right now: what is left is with crawlers or has to wait for its host",
    "exhausted": "nothing is left; --seed URL adds a place to start from",
    "paused": "the crawl is paused",
    "finished": "the crawl has reached its limit",
}


@app.command("next")
@speaks
def next_(  # noqa: PLR0913, PLR0917 - the options of a command
    crawler: Annotated[str, typer.Option("--crawler", metavar="ID", help="Who asks; what it gets is leased to it.")],
    urls: Annotated[int, typer.Option("--urls", min=1, max=10_000, help="At most so many URLs.")] = 10,
    crawl: CrawlOption = "default",
    seed: Annotated[list[str] | None, typer.Option("--seed", metavar="URL", help="Add this first; repeatable.")] = None,
    warm_start: Annotated[str | None, typer.Option(metavar="CRAWL", help=BEGINS)] = None,
    url: ServerOption = None,
    data: FolderOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Ask what to fetch next.

    The URLs are leased to the crawler: report them within two minutes, or others may get them.

    Example: crawlguide next --crawler me --seed https://example.com/

    Example: crawlguide next --crawler me --urls 3 --crawl books --json
    """
    from crawlguide.cli.connection import answering, said_if_new
    from crawlguide.cli.printing import show
    from crawlguide.core.messages import VERSION
    from crawlguide.gateway.arguments import crawl_name

    seeds = [_seed(one) for one in seed or []]
    message = {"mcp_version": VERSION, "crawler_id": crawler, "crawl_id": crawl_name(crawl)}
    wanted = {"budget": {"max_urls": urls}, "context": {"seed_urls": seeds}}
    with answering(url, data, config, new=bool(seeds)) as guide:
        if warm_start is not None:
            _begin(guide, crawl, warm_start)
        with said_if_new(guide, crawl):
            advice = guide.ask(message | wanted)
    if json:
        say_json(advice)
    else:
        show(*_shown(advice, crawl))


def _begin(guide: Verbs, crawl: str, other: str) -> None:
    """A crawl that is not there yet gets the strategy of another, which begins with what was learned there."""
    try:
        guide.stats(crawl)
    except NotFound:
        try:
            kind = guide.stats(other)["crawls"][other]["strategy"]
        except NotFound as wrong:
            raise ConfigError(f"--warm-start: {wrong.message.removeprefix('crawl_id: ')}") from None
        guide.define(crawl, {"strategy": {"kind": kind, "warm_start": other}})


def _seed(url: str) -> str:
    """A bad seed in an ask is passed over in silence; a person has mistyped it."""
    from crawlguide.core.urls import canonical

    try:
        canonical(url)
    except UrlError as wrong:
        raise ConfigError(f"--seed: {wrong.message}") from None
    return url


def _shown(advice: Mapping[str, Any], crawl: str) -> list[Any]:
    from crawlguide.cli.printing import table, text

    given, about = advice["assigned_urls"], advice["metadata"]
    if not given:
        return [text(_nothing(advice, crawl))]
    ends = min(one["lease_expires"] for one in given)
    said = [f"crawl {crawl!r} is {about['crawl_state']}", f"leased until {ends}"]
    said += [f"{len(advice['deferred'])} deferred"] if advice["deferred"] else []
    said += [f"{count} dropped by {reason}" for reason, count in about["dropped"].items()]
    said += [f"degraded: {about['degraded']}"] if about["degraded"] else []
    columns = ("url", " score", " p", "reason", " wait")
    return [table(columns, map(_row, given)), "", text("; ".join(said), "dim")]


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    from crawlguide.cli.printing import duration

    return one["url"], f"{one['score']:.3f}", f"{one['p']:.2f}", one["reason"], duration(one["not_before_ms"])


def _nothing(advice: Mapping[str, Any], crawl: str) -> str:
    from crawlguide.cli.printing import duration

    state = advice["metadata"]["crawl_state"]
    why = f"crawl {crawl!r}: {NOTHING.get(state, state)}"
    if any(held["reason"] == "robots" for held in advice["deferred"]):
        why += "; the robots.txt of some hosts could not be read yet, and the server's log says why"
    return f"{why}; ask again in {duration(advice['retry_after_ms'])}" if state in {"running", "waiting"} else why
