"""crawlguide lab freshness."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawlguide.cli.common import check_output, compile_first
from crawlguide.cli.lab import names, webs, without_outputs
from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.freshness.experiment import Job, Web
    from crawlguide.lab.freshness.results import Results, Run

USUAL_PAGES, QUICK_PAGES = 4_000, 400
USUAL_DAYS, QUICK_DAYS = 120, 20
RECORDED_DAYS, QUICK_RECORDED_DAYS = 1_095, 60
QUICK_REPEATS = 1
PERCENT = 100.0


@webs.command()
def freshness(  # noqa: PLR0913, PLR0917 - every argument is an option of the command
    webs: Annotated[
        str, typer.Option(help="all, none, or kinds of made-up webs with commas between them; with --histories none.")
    ] = "",
    histories: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Histories of real changes, as Parquet or NDJSON; once for each file."),
    ] = None,
    policies: Annotated[str, typer.Option(help="all, or names with commas between them.")] = "all",
    budgets: Annotated[str, typer.Option(help="Per cent of the pages that may be visited in a day.")] = "1,5,20",
    pages: Annotated[int | None, typer.Option(min=10, max=1_000_000, help="Of a made-up web; 4000.")] = None,
    days: Annotated[
        int | None, typer.Option(min=2, max=36_500, help="120 of a made-up web, the last 1095 of a history.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=1_000, help="Each run so often, with another seed.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="What chance is drawn from.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Small webs, few days, once.")] = False,
    json: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the figures of every day.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a page with curves and comparisons.")] = None,
) -> None:
    """Visit pages again within a budget, in several orders, and see whose copies are fresher.

    Example: crawlguide lab freshness --webs poisson,drift --budgets 5,20 --quick --html freshness.html
    """
    check_output("--json", json)
    check_output("--html", html)
    shares = _shares(budgets)
    compile_first()
    from crawlguide.lab.freshness import experiment
    from crawlguide.lab.freshness import policies as known

    chosen = known.chosen(names(policies))
    made_up = _made_up(webs or ("none" if histories else "all"), pages or (QUICK_PAGES if quick else USUAL_PAGES),
                       days or (QUICK_DAYS if quick else USUAL_DAYS))  # fmt: skip
    real = [
        web
        for file in histories or []
        for web in experiment.webs_of(file, days or (QUICK_RECORDED_DAYS if quick else RECORDED_DAYS))
    ]
    if not made_up and not real:
        raise ConfigError("--webs: expected some where there are no --histories, got none")
    todo = experiment.jobs([*made_up, *real], chosen, shares, QUICK_REPEATS if quick else repeat, seed)
    _report(_run_all(todo), json, html)


def _shares(budgets: str) -> list[float]:
    shares = []
    for word in names(budgets):
        try:
            share = float(word) / PERCENT
        except ValueError:
            share = 0.0
        if not 0.0 < share <= 10.0:
            raise ConfigError(f"--budgets: expected per cent of the pages, above 0 and at most 1000, got {word!r}")
        shares.append(share)
    return shares


def _made_up(kinds: str, pages: int, days: int) -> list[Web]:
    from crawlguide.lab.freshness.experiment import Web
    from crawlguide.lab.freshness.synthetic import KINDS

    wanted = [] if kinds == "none" else list(KINDS) if kinds == "all" else names(kinds)
    for kind in wanted:
        if kind not in KINDS:
            raise ConfigError(f"--webs: expected all, none or some of {', '.join(KINDS)}, got {kind!r}")
    return [Web(name=kind, file=None, pages=pages, days=days) for kind in dict.fromkeys(wanted)]


def _run_all(todo: Sequence[Job]) -> list[Run]:
    """All runs, with a bar for whoever watches."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from crawlguide.lab.freshness import experiment

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    made: list[Run] = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("runs", total=len(todo))
        for one in experiment.completed(todo):
            made.append(one)
            progress.update(bar, advance=1, description=escape(f"{one.policy} on {one.web}"))
    return made


def _report(made: list[Run], json: Path | None, html: Path | None) -> None:
    """What came out: as tables, and in the files that were asked for."""
    from rich.console import Console

    from crawlguide.lab import jobs
    from crawlguide.lab.freshness import results
    from crawlguide.lab.report import freshness as report

    command = ["crawlguide", *without_outputs(sys.argv[1:])]
    document: Results = results.Results(command=command, versions=jobs.versions(), runs=results.ordered(made))
    Console().print(report.tables(document))
    if html is not None:
        report.write_html(document, html)
    if json is not None:
        results.write_json(document, json)
