"""The results in the terminal: what each policy found, then the best against the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from crawlguide.gateway.dashboard.formatting import visible
from crawlguide.lab.compare import against, subject
from crawlguide.lab.report.formatting import (
    count,
    decimal,
    figure_words,
    half_words,
    percent,
    plural,
    requests,
    saturation,
    shortened,
    signed,
    span,
    task_name,
)
from crawlguide.lab.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from crawlguide.lab.compare import Comparison
    from crawlguide.lab.results import Results


def table(results: Results) -> RenderableType:
    """Fits into 80 columns."""
    summary = Summary(results)
    parts: list[RenderableType] = [_harvest(summary), _at_the_end(summary)]
    if len(summary.policies) > 1:
        parts.append(_comparison(summary))
        parts.append(Text(_headline(summary)))
    if warning := saturation(summary):
        parts.append(Text(warning, style="yellow"))
    parts += [
        Text(f"{visible(name)}: {plural(missing, 'task')} of {len(summary.tasks)} not run", style="yellow")
        for name, missing in summary.missing.items()
    ]
    return Group(*parts)


def columns(title: str, caption: str, heads: list[str]) -> Table:
    """A table without rows; all columns but the first hold numbers."""
    table = Table(title=Text(title), caption=Text(caption), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(Text(heads[0]), no_wrap=True)
    for head in heads[1:]:
        table.add_column(Text(head), justify="right", no_wrap=True)
    return table


def _with_rows(table: Table, summary: Summary, figures: Callable[[str], list[str]]) -> Table:
    """A row for every policy; the best is bold, references stand back."""
    for name in summary.policies + summary.references:
        style = "dim" if name in summary.references else "bold" if name == summary.policies[0] else ""
        table.add_row(Text(shortened(visible(name))), *figures(name), style=style)
    return table


def _harvest(summary: Summary) -> Table:
    webs = ", ".join(visible(web) for web in sorted({web for web, _ in summary.tasks}))
    amount = f"{plural(len(summary.tasks), 'task')} × {plural(len(summary.repeats), 'repeat')}"
    table = columns(
        f"Harvest rate on {webs}: {amount}, {plural(summary.budget, 'request')}",
        "relevant pages found per request so far, mean over tasks; AUC: mean height of the curve;"
        " wasted: requests for traps, duplicates, dead links and errors; µs: processor time for each decision",
        ["policy", *(f"@{k}" for k in summary.checkpoints), "AUC", "wasted", "µs"],
    )

    def figures(name: str) -> list[str]:
        harvests = [decimal(summary.mean(name, f"harvest@{k}")) for k in summary.checkpoints]
        wasted = sum(summary.mean(name, figure) for figure in ("traps", "duplicates", "dead", "errors"))
        return [*harvests, decimal(summary.mean(name, "auc")), percent(wasted), count(summary.mean(name, "cpu_us"))]

    return _with_rows(table, summary, figures)


def _at_the_end(summary: Summary) -> Table:
    shares = "÷: harvest divided by that of a reference, which is shown what no crawler can know; "
    table = columns(
        "At the end of the budget",
        (shares if summary.references else "") + "50 %: requests to half of all targets, median over runs",
        ["policy", *(f"÷ {shortened(visible(name), 14)}" for name in summary.references), "recall", "50 %"],
    )

    def figures(name: str) -> list[str]:
        half = requests(summary.middle(name, "to_50"), summary.budget)
        shares = [decimal(summary.over(name, reference, summary.last), 2) for reference in summary.references]
        return [*shares, decimal(summary.mean(name, "recall")), half]

    return _with_rows(table, summary, figures)


def _comparison(summary: Summary) -> Table:
    chosen = subject(summary)
    table = columns(
        f"{shortened(visible(chosen))} against the others: difference in {figure_words(summary, summary.deciding)}",
        "paired over web, task and repeat; 95 % interval by hierarchical bootstrap; tasks won/even/lost",
        ["against", "difference", "95 %", "tasks"],
    )
    table.add_column("worst task", no_wrap=True)
    for one in against(summary, chosen):
        style = "green" if one.low > 0 else "red" if one.high < 0 else ""
        difference, interval = Text(signed(one.difference), style), Text(span(one.low, one.high))
        tasks, worst = f"{one.wins}/{one.ties}/{one.losses}", Text(shortened(_worst(summary, one), 20))
        table.add_row(Text(shortened(visible(one.other))), difference, interval, tasks, worst)
    return table


def _headline(summary: Summary) -> str:
    """How the chosen policy stands to the strongest other, over the whole crawl and at its end."""
    chosen = subject(summary)
    other = next(name for name in summary.policies if name != chosen)
    return f"{_way(summary, chosen)}\n{_way(summary, other)}, the strongest other"


def _way(summary: Summary, name: str) -> str:
    half = half_words(summary.middle(name, "to_50"), summary.budget)
    whole, end = decimal(summary.mean(name, "auc")), decimal(summary.mean(name, summary.last))
    return f"{visible(name)}: {whole} over the whole crawl, {half}, {end} at the end"


def _worst(summary: Summary, one: Comparison) -> str:
    return f"{signed(one.worst_difference)} {task_name(summary, one.worst)}" if one.worst else ""
