"""The results in the terminal: what each policy found, then the best against the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from crawlguide.gateway.dashboard.formatting import visible
from crawlguide.lab.compare import against, subject
from crawlguide.lab.report.charts import shortened
from crawlguide.lab.report.formatting import count, decimal, percent, plural, requests, signed, span, task_name
from crawlguide.lab.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from crawlguide.lab.compare import Comparison
    from crawlguide.lab.results import Results


def table(results: Results) -> RenderableType:
    """Fits into 80 columns."""
    study = Study(results)
    parts: list[RenderableType] = [_harvest(study), _ends(study)]
    if len(study.policies) > 1:
        parts.append(_compared(study))
    parts += [
        Text(f"{visible(name)}: {plural(missing, 'task')} of {len(study.tasks)} not run", style="yellow")
        for name, missing in study.missing.items()
    ]
    return Group(*parts)


def _empty(title: str, caption: str, heads: list[str]) -> Table:
    shown = Table(title=Text(title), caption=Text(caption), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column(Text(heads[0]), no_wrap=True)
    for head in heads[1:]:
        shown.add_column(Text(head), justify="right", no_wrap=True)
    return shown


def _filled(shown: Table, study: Study, figures: Callable[[str], list[str]]) -> Table:
    """A row for every policy; the best is bold, references stand back."""
    for name in study.policies + study.references:
        style = "dim" if name in study.references else "bold" if name == study.policies[0] else ""
        shown.add_row(Text(shortened(visible(name))), *figures(name), style=style)
    return shown


def _harvest(study: Study) -> Table:
    webs = ", ".join(visible(web) for web in sorted({web for web, _ in study.tasks}))
    amount = f"{plural(len(study.tasks), 'task')} × {plural(len(study.repeats), 'repeat')}"
    shown = _empty(
        f"Harvest rate on {webs}: {amount}, {plural(study.budget, 'request')}",
        "relevant pages found per request so far, mean over tasks; AUC: mean height of the curve;"
        " wasted: requests for traps, duplicates, dead links and errors; µs: processor time for each decision",
        ["policy", *(f"@{k}" for k in study.checkpoints), "AUC", "wasted", "µs"],
    )

    def figures(name: str) -> list[str]:
        harvests = [decimal(study.mean(name, f"harvest@{k}")) for k in study.checkpoints]
        wasted = sum(study.mean(name, figure) for figure in ("traps", "duplicates", "dead", "errors"))
        return [*harvests, decimal(study.mean(name, "auc")), percent(wasted), count(study.mean(name, "cpu_us"))]

    return _filled(shown, study, figures)


def _ends(study: Study) -> Table:
    shown = _empty(
        "At the end of the budget",
        "÷: harvest divided by that of a reference, which is shown what no crawler can know; 50 %: requests to half of"
        " all targets, median over runs",
        ["policy", *(f"÷ {shortened(visible(name), 14)}" for name in study.references), "recall", "50 %"],
    )

    def figures(name: str) -> list[str]:
        half = requests(study.middle(name, "to_50"), study.budget)
        shares = [decimal(study.over(name, reference, study.last), 2) for reference in study.references]
        return [*shares, decimal(study.mean(name, "recall")), half]

    return _filled(shown, study, figures)


def _compared(study: Study) -> Table:
    chosen = subject(study)
    shown = _empty(
        f"{shortened(visible(chosen))} against the others: difference in harvest at {study.budget}",
        "paired over web, task and repeat; 95 % interval by hierarchical bootstrap; tasks won/even/lost",
        ["against", "difference", "95 %", "tasks"],
    )
    shown.add_column("worst task", no_wrap=True)
    for found in against(study, chosen):
        style = "green" if found.low > 0 else "red" if found.high < 0 else ""
        difference, interval = Text(signed(found.difference), style), Text(span(found.low, found.high))
        tasks, worst = f"{found.wins}/{found.ties}/{found.losses}", Text(shortened(_worst(study, found), 20))
        shown.add_row(Text(shortened(visible(found.other))), difference, interval, tasks, worst)
    return shown


def _worst(study: Study, found: Comparison) -> str:
    return f"{signed(found.worst_difference)} {task_name(study, found.worst)}" if found.worst else ""
