"""crawlguide crawl."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawlguide.cli.common import INTERRUPTED, CaOption, TokenOption, app, compile_first, run, say, show_to_servers
from crawlguide.core.errors import ConfigError, CrawlGuideError, Forbidden, MalformedRequest, StorageFull

if TYPE_CHECKING:
    from crawlguide.crawler.options import CrawlOptions
    from crawlguide.crawler.run import Outcome
    from crawlguide.crawler.view import View

USUAL_PAGES = 1_000
MOST_LINKS = 2**53  # as a definition has it
NOT_UTF8 = re.compile(r"[\ud800-\udfff]")  # what Python makes of such bytes; no text that is stored or sent may hold it
UNDEFINED = re.compile(r" has not the scope admin for crawl (.+); it has ")  # as a guide says it
OPTIONS = {"proxy": "--proxy", "allow_networks": "--allow-network", "strategy.kind": "--strategy"}
SCOPE, LIMITS, WAYS, FILES = "Where it may go", "When it ends", "How it fetches", "What it leaves"


@app.command("crawl")
def crawl(  # noqa: PLR0913, PLR0917 - the options of a command
    seeds: Annotated[
        list[str] | None, typer.Argument(metavar="SEED…", help="URLs, or hosts whose sitemaps and feeds are looked at.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="What to look for, in words.")] = None,
    keywords: Annotated[str | None, typer.Option(metavar="WORDS", help="Words of it, with commas between.")] = None,
    reference: Annotated[str | None, typer.Option(metavar="FILE|URL", help="A sample of what to look for.")] = None,
    strategy: Annotated[str | None, typer.Option(metavar="KIND", help="How to order URLs; layered by default.")] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for everything; its guide is in DIR/guide.")
    ] = Path("crawl"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the crawl in --out.")] = False,
    max_pages: Annotated[
        int | None,
        typer.Option(
            min=0, help="Requests for pages at most; 1000 if no other limit is given.", rich_help_panel=LIMITS
        ),
    ] = None,
    max_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Such as 90s, 30m or 2h.", rich_help_panel=LIMITS)
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help='Of the relevant pages, such as "95 %" or 0.95; 1: all.', rich_help_panel=LIMITS
        ),
    ] = None,
    min_harvest: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Relevant pages for each request, lately.", rich_help_panel=LIMITS),
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(min=0, max=MOST_LINKS, help="Links from a seed at most.", rich_help_panel=LIMITS)
    ] = None,
    recrawl_after: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Fetch pages again after, say, 12h or 7d.", rich_help_panel=LIMITS),
    ] = None,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Fetch pages again as often as they change.", rich_help_panel=LIMITS),
    ] = False,
    min_p: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Only URLs with this chance of being relevant.", rich_help_panel=SCOPE),
    ] = None,
    same_site: Annotated[
        bool, typer.Option("--same-site", help="Only hosts of the seeds.", rich_help_panel=SCOPE)
    ] = False,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="DOMAIN", help="Only this; repeatable.", rich_help_panel=SCOPE)
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option(metavar="DOMAIN", help="Never this; repeatable.", rich_help_panel=SCOPE)
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1_000, help="Requests at once.", rich_help_panel=WAYS)] = 16,
    delay: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="S", help="Seconds between two requests to a host. \\[default: 1]", rich_help_panel=WAYS
        ),
    ] = None,
    user_agent: Annotated[
        str | None, typer.Option(help="The name it has. \\[default: crawlguide]", rich_help_panel=WAYS)
    ] = None,
    contact: Annotated[
        str, typer.Option(metavar="URL|MAIL", help="For those whose sites are crawled.", rich_help_panel=WAYS)
    ] = "",
    proxy: Annotated[str | None, typer.Option(metavar="URL", help="An HTTP proxy.", rich_help_panel=WAYS)] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(metavar="CIDR", help="May be reached though it is not public; repeatable.", rich_help_panel=WAYS),
    ] = None,
    guide: Annotated[
        str | None,
        typer.Option(
            "--guide", metavar="URL", help="A server to ask instead: several crawlers share it.", rich_help_panel=WAYS
        ),
    ] = None,
    crawl: Annotated[
        str | None,
        typer.Option("--crawl", metavar="NAME", help="The name of the crawl; made of the topic.", rich_help_panel=WAYS),
    ] = None,
    token: TokenOption = None,
    ca: CaOption = None,
    no_warc: Annotated[bool, typer.Option("--no-warc", help="No pages.warc.gz.", rich_help_panel=FILES)] = False,
    no_parquet: Annotated[bool, typer.Option("--no-parquet", help="No Parquet files.", rich_help_panel=FILES)] = False,
) -> None:
    """Crawl what fits a topic: no other crawler is needed.

    Writes pages.jsonl, pages.parquet, links.parquet, pages.warc.gz and report.html into --out. Ctrl-C saves;
    --resume goes on.

    Example: crawlguide crawl example.com --topic "database internals" --max-pages 200 --out databases
    """
    from crawlguide.crawler import options as crawl_options

    _refuse_blanks(
        topic=topic, keywords=keywords, reference=reference, strategy=strategy, max_time=max_time, until=until,
        recrawl_after=recrawl_after, guide=guide, crawl=crawl, proxy=proxy, user_agent=user_agent,
        allow="".join(allow) if allow else None, deny="".join(deny) if deny else None,
    )  # fmt: skip
    if refresh and recrawl_after:
        raise ConfigError("--refresh: expected it without --recrawl-after, which fetches after a fixed time, got both")
    show_to_servers(token, ca)
    options = crawl_options.CrawlOptions(
        seeds=tuple(seeds or ()), topic=topic, keywords=_words(keywords), reference=reference, strategy=strategy,
        max_pages=_most(max_pages, max_time, until, min_harvest), max_depth=max_depth,
        names_limits=any(limit is not None for limit in (max_pages, max_time, until, min_harvest)),
        max_time_s=crawl_options.seconds(max_time) if max_time else 0.0,
        recrawl_after_s=crawl_options.seconds(recrawl_after, "--recrawl-after") if recrawl_after else None,
        refresh=refresh,
        concurrency=concurrency, out=out, resume=resume, guide=guide and _address(guide), crawl=crawl and _name(crawl),
        proxy=proxy, allow_networks=tuple(allow_network or ()), user_agent=user_agent, contact=contact, delay_s=delay,
        same_site=same_site, allow_domains=tuple(allow or ()), deny_domains=tuple(deny or ()),
        until=crawl_options.share(until) if until else None, min_harvest=min_harvest, min_p=min_p,
        warc=not no_warc, parquet=not no_parquet,
    )  # fmt: skip
    outcome = _crawled(options)
    _show(outcome)
    if outcome.why == "interrupted":
        say(f"saved; go on with: crawlguide crawl --resume --out {options.out}")
        raise typer.Exit(INTERRUPTED)
    _check_found(outcome)


def _refuse_blanks(**texts: str | None) -> None:
    """An empty variable of a script would crawl without what it was to say."""
    for name, text in texts.items():
        if text is None:
            continue
        wanted = "text in UTF-8" if NOT_UTF8.search(text) else "" if text.strip() else "some text"
        if wanted:
            raise ConfigError(f"--{name.replace('_', '-')}: expected {wanted}, got {text[:40]!r}")


def _crawled(options: CrawlOptions) -> Outcome:
    from crawlguide.core.config import Config

    compile_first(Config())
    from crawlguide.crawler.run import crawl as crawled

    on = f"free some space, then crawlguide crawl --resume --out {options.out} goes on"
    try:
        return run(crawled(options, _view()))
    except (ConfigError, MalformedRequest) as wrong:
        raise _as_typed(wrong) from None
    except Forbidden as refused:
        raise _as_joined(refused) if options.guide else refused from None
    except StorageFull as problem:
        raise CrawlGuideError(f"{problem.message}; {on}") from None
    except OSError as problem:
        what = on if problem.errno == errno.ENOSPC else "check the folder"
        raise CrawlGuideError(f"{options.out} cannot be written: {problem.strerror}; {what}") from None


def _as_joined(refused: Forbidden) -> Forbidden:
    """Of all that a crawl does only to define it is for admins: who was to join it is told that it is not there."""
    missing = UNDEFINED.search(refused.message)
    if not missing:
        return refused
    return Forbidden(
        f"--guide: there is no crawl {missing[1]} yet, and this key may not define one (scope admin): let the first"
        " crawler begin it, or correct --crawl"
    )


def _as_typed(wrong: CrawlGuideError) -> ConfigError:
    """With the name of the option in place of the name that a setting has within."""
    name, colon, rest = wrong.message.partition(":")
    return ConfigError(OPTIONS.get(name, name) + colon + rest)


def _view() -> View:
    """A picture for a terminal that can show one, else lines."""
    from rich.console import Console

    from crawlguide.crawler.view import Pictured, Plain

    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return Pictured(console) if console.is_terminal and not console.is_dumb_terminal else Plain(say)


def _show(outcome: Outcome) -> None:
    from crawlguide.cli.printing import section, show, table, text
    from crawlguide.crawler.summary import Summary, write_html

    summary = Summary(outcome)
    write_html(summary, outcome.folder.report)
    drawn = [text(line) for line in ("", *summary.plot(), "")] if summary.plot() else []
    advice = [(line,) for line in summary.advice()]
    files = [(str(path),) for path in outcome.folder.files if path.exists()]
    show(table(("", ""), summary.facts()), *drawn, section("what to try next", advice), section("files", files))


def _check_found(outcome: Outcome) -> None:
    """A crawl that got nowhere has failed."""
    if outcome.tally.pages or outcome.why not in {"exhausted", "finished"}:
        return
    if outcome.stats.get("dropped", {}).get("robots"):
        raise CrawlGuideError("robots.txt forbids every seed: begin elsewhere, or ask the site for permission")
    lost = [f"robots.txt of {host}: {problem}" for host, problem in outcome.tally.lost_hosts().items()]
    problems = ", ".join([*lost[:5], *(f"{count} {name}" for name, count in outcome.tally.problems.most_common(5))])
    raise CrawlGuideError(f"no page could be fetched: {problems or 'no seed is in scope'}")


def _most(said: int | None, *others: object) -> int:
    """Nobody's crawl goes on for ever by mistake."""
    return said if said is not None else 0 if any(other is not None for other in others) else USUAL_PAGES


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word for part in (text or "").split(",") if (word := part.strip()))


def _address(text: str) -> str:
    from crawlguide.gateway.arguments import address

    return address(text, "--guide")


def _name(text: str) -> str:
    from crawlguide.gateway.arguments import crawl_name

    return crawl_name(text)
