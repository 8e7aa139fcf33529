"""crawlguide lab run, crawlguide lab explain-run, crawlguide lab serve, crawlguide lab build."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crawlguide.cli.common import app, check_output, compile_first, say
from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.jobs import Job
    from crawlguide.lab.pages import Task
    from crawlguide.lab.results import Run
    from crawlguide.lab.run import Settings

webs = typer.Typer()
app.add_typer(webs, name="lab", help="Prove which order of fetching finds more, on recorded and made-up webs.")
QUICK_TASKS, QUICK_REPEATS = 4, 1
USUAL_BUDGET, QUICK_BUDGET = 2_000, 400  # on the synthetic web 2,000 requests find everything
EXPLAINED_BUDGET = 500
OUTPUT_OPTIONS = ("--json", "--html", "--resume")
WebOption = Annotated[
    str,
    typer.Option(
        "--web",
        help="A folder with a recorded web, a crawl (folder or file), or synthetic[:option=value,…].",
        metavar="WEB",
    ),
]
TasksOption = Annotated[str, typer.Option(help="all, or names with commas between them.")]
PoliciesOption = Annotated[
    str,
    typer.Option(
        help=r"all, or names with commas between them: strategies of the product, such as layered\[without=bonus],"
        " policies of the lab, such as keyword, oracle, or a module of your own."
    ),
]
SeedsOption = Annotated[
    Literal["auto", "portal", "near", "far"], typer.Option(help="Where a crawl begins; auto: portal, else far.")
]
FeedbackOption = Annotated[
    Literal["label", "text", "sample"],
    typer.Option(
        help="label: crawlers tell the truth; text: the guide judges texts; sample: and is told the truth of one in 20."
    ),
]
ViaOption = Annotated[str | None, typer.Option(metavar="URL", help="Ask the guide that is served there.")]
JsonFile = Annotated[Path | None, typer.Option(metavar="OUT", help="Write every fetch of every run.")]
HtmlFile = Annotated[Path | None, typer.Option(metavar="OUT", help="Write a page with curves and comparisons.")]
ResumeFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Keep finished runs there; by default beside --json.")
]


@webs.command()
def run(  # noqa: PLR0913, PLR0917 - every argument is an option of the command
    web: WebOption = "synthetic",
    tasks: TasksOption = "all",
    policies: PoliciesOption = "all",
    seeds_from: SeedsOption = "auto",
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"Fetches of a run; every request counts. {USUAL_BUDGET}, with --quick {QUICK_BUDGET}."
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="URLs in an answer.")] = 10,
    crawlers: Annotated[int, typer.Option(min=1, max=1_000, help="Crawlers that fetch side by side.")] = 1,
    feedback: FeedbackOption = "label",
    repeat: Annotated[int, typer.Option(min=1, max=1_000, help="Each run so often, with another seed.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="What chance is drawn from.")] = 0,
    cap_per_host: Annotated[int, typer.Option(min=0, help="Pages of one site at most; 0: no limit.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Four tasks, once, of a short crawl.")] = False,
    via: ViaOption = None,
    json: JsonFile = None,
    html: HtmlFile = None,
    resume: ResumeFolder = None,
) -> None:
    """Crawl a web again and again, each time in another order, and see which finds more.

    Example: crawlguide lab run --web synthetic --policies random,keyword,layered,oracle --quick --html lab.html
    """
    from crawlguide.gateway.arguments import address

    via = via and address(via, "--via")
    kept = resume or (json and json.with_name(json.name + ".runs"))
    _check_outputs(json, html, kept)
    compile_first()
    from crawlguide.lab.run import Settings

    settings = Settings(
        seeds_from=seeds_from, budget=budget or (QUICK_BUDGET if quick else USUAL_BUDGET), batch=batch,
        crawlers=crawlers, feedback=feedback, cap_per_host=cap_per_host, seed=seed, via=via,
    )  # fmt: skip
    todo = _jobs(_absolute(web), names(policies), names(tasks), QUICK_REPEATS if quick else repeat, quick, settings)
    _report(_run_all(todo, kept), json, html)
    if json is not None and resume is None and kept is not None:
        shutil.rmtree(kept, ignore_errors=True)  # the document holds it all


@webs.command("explain-run")
def explain_run(  # noqa: PLR0913, PLR0917 - every argument is an option of the command
    web: WebOption = "synthetic",
    task: Annotated[str | None, typer.Option(help="What to look for; by default the first task of the web.")] = None,
    policy: Annotated[str, typer.Option(help="Whose requests are explained, as in --policies of lab run.")] = "layered",
    seeds_from: SeedsOption = "auto",
    budget: Annotated[int, typer.Option(min=1, help="Fetches of the run; every request counts.")] = EXPLAINED_BUDGET,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="URLs in an answer.")] = 10,
    feedback: FeedbackOption = "label",
    seed: Annotated[int, typer.Option(min=0, help="What chance is drawn from.")] = 0,
    json: Annotated[Path | None, typer.Option(metavar="OUT", help="Write every request with its cause.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a page with all of it.")] = None,
) -> None:
    """Crawl a web once, and see why each request was made that found nothing, and what better was known then.

    Example: crawlguide lab explain-run --web synthetic --policy layered --budget 300 --html errors.html
    """
    _check_outputs(json, html, None)
    compile_first()
    from rich.console import Console

    from crawlguide.lab import error_budget, jobs, report
    from crawlguide.lab.run import Settings

    opened = jobs.opened(_absolute(web))
    wanted = jobs.task_named(opened, task)
    settings = Settings(seeds_from=seeds_from, budget=budget, batch=batch, feedback=feedback, seed=seed)
    chosen = next(one for one in opened.tasks() if one.name == wanted)
    command = ["crawlguide", *without_outputs(sys.argv[1:])]
    document = error_budget.explain_run(opened, chosen, _explained(policy), settings, command)
    Console().print(report.budget_tables(document))
    if html is not None:
        report.write_budget_html(document, html)
    if json is not None:
        error_budget.write_json(document, json)


@webs.command()
def serve(
    web: WebOption = "synthetic",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 picks a free one.")] = 8090,
    slowest_s: Annotated[float, typer.Option(min=0, max=60, help="So long takes the slowest answer.")] = 1.0,
) -> None:
    """Serve a web on loopback, under all its host names, to whoever takes the port as an HTTP proxy.

    Example: crawlguide lab serve --web synthetic:pages=500 --port 8090
    """
    from crawlguide import lab
    from crawlguide.lab.web import open as open_web

    its = open_web(web)
    with lab.served(its, port, slowest_s=slowest_s) as server:
        with suppress(KeyboardInterrupt):  # the usual end
            say(f"{its.name} is served on http://127.0.0.1:{server.port}, until Ctrl-C; such as")
            say(f"  curl --proxy http://127.0.0.1:{server.port} {_seed(its.tasks())}")
            threading.Event().wait()
        say(f"{len(server.log)} requests were answered")


@webs.command()
def build(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder for the web.")],
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="DIR=URL, a WARC file, a file of `crawlguide export`, or a folder of `crawlguide crawl`.",
        ),
    ],
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="NAME=REGEX: what to look for, in title, URL and text.")
    ] = None,
) -> None:
    """Make a web out of folders of HTML, WARC files or crawls, to run strategies on it.

    Example: crawlguide lab build web books.ndjson
    """
    from crawlguide.lab.build import build as built

    made = built(out, sources, topic or [])
    say(f"{out}: {made.pages} pages on {made.hosts} hosts, {made.links} links between them, {made.outside} to outside")
    for name, count in made.tasks.items():
        say(f"  {name}: {count} relevant pages")
    if not made.tasks:
        say("  nothing to look for: no page fits a --topic, and no relevance was told")


def _explained(policy: str) -> str:
    """One policy that asks a guide; the ceiling only counts."""
    from crawlguide.lab import policy_names

    chosen = policy_names.chosen([policy])
    if len(chosen) != 1 or policy_names.CEILING in chosen:
        raise ConfigError(f"--policy: expected one policy that fetches, got {policy!r}")
    return chosen[0]


def _jobs(
    web: str, policies: Sequence[str], tasks: Sequence[str], repeats: int, quick: bool, settings: Settings
) -> list[Job]:
    from crawlguide.lab import jobs, policy_names

    chosen = policy_names.chosen(policies)
    named = jobs.tasks_named(jobs.opened(web), tasks)
    return jobs.jobs(web, named[:QUICK_TASKS] if quick else named, chosen, repeats, settings)


def _report(made: list[Run], json: Path | None, html: Path | None) -> None:
    """What came out: as a table, and in the files that were asked for."""
    from rich.console import Console

    from crawlguide.lab import jobs, report, results

    command = ["crawlguide", *without_outputs(sys.argv[1:])]
    document = results.Results(command=command, versions=jobs.versions(), runs=made)
    Console().print(report.table(document))
    if html is not None:
        report.write_html(document, html)
    if json is not None:
        results.write_json(document, json)


def _run_all(todo: Sequence[Job], kept: Path | None) -> list[Run]:
    """All runs, with a bar for whoever watches; on Ctrl-C with a word on how to go on."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from crawlguide.lab import jobs

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    made: list[Run] = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("runs", total=len(todo))
        try:
            for one in jobs.completed(todo, kept):
                made.append(one)
                progress.update(bar, advance=1, description=escape(f"{one.policy} on {one.task}"))
        except KeyboardInterrupt:
            progress.stop()
            if kept is not None and (done := jobs.count_kept(todo, kept)):
                say(f"stopped after {done} of {len(todo)} runs; the same command goes on from there ({kept})")
            raise
    return made


def _check_outputs(json: Path | None, html: Path | None, kept: Path | None) -> None:
    """Hours of runs are not to end with a word about a folder."""
    check_output("--json", json)
    check_output("--html", html)
    if kept is not None and kept.exists() and not (kept.is_dir() and os.access(kept, os.W_OK | os.X_OK)):
        raise ConfigError(f"--resume: expected a folder that can be written to, got {kept}")


def without_outputs(words: Sequence[str]) -> list[str]:
    """What was asked for, without where it was written to: equal runs leave equal documents."""
    left, kept = iter(words), []
    for word in left:
        if word in OUTPUT_OPTIONS:
            next(left, None)
        elif not word.startswith(tuple(f"{place}=" for place in OUTPUT_OPTIONS)):
            kept.append(word)
    return kept


def names(words: str) -> list[str]:
    from crawlguide.lab.policy_names import split_names

    found = split_names(words)
    if not found:
        raise ConfigError(f"expected names with commas between them, got {words!r}")
    return found


def _absolute(web: str) -> str:
    """A folder is the same from wherever a process looks."""
    return web if web.partition(":")[0] == "synthetic" else str(Path(web).resolve())


def _seed(tasks: Sequence[Task]) -> str:
    """A page to begin with, if the web knows one."""
    from crawlguide.lab.serving import plain_http

    return next((plain_http(urls[0]) for task in tasks for urls in task.seeds.values()), "URL")
