"""The results in the terminal: what each policy found, then the best against the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from crawlguide.gateway.dashboard.words import visible
from crawlguide.lab.compare import against, subject
from crawlguide.lab.report.words import decimal, plural, requests, signed, span, task_name
from crawlguide.lab.study import Study

if TYPE_CHECKING:
    from rich.console import RenderableType

    from crawlguide.lab.compare import Comparison
    from crawlguide.lab.results import Results


def table(results: Results) -> RenderableType:
    study = Study(results)
    parts: list[RenderableType] = [_found(study)]
    if len(study.policies) > 1:
        parts.append(_compared(study))
    parts += [
        Text(f"{visible(name)}: {plural(count, 'task')} of {len(study.tasks)} not run", style="yellow")
        for name, count in study.missing.items()
    ]
    return Group(*parts)


def _found(study: Study) -> Table:
    webs = ", ".join(visible(web) for web in sorted({web for web, _ in study.tasks}))
    amount = f"{plural(len(study.tasks), 'task')} × {plural(len(study.repeats), 'repeat')}"
    shown = Table(
        title=Text(f"Harvest rate on {webs}: {amount}, {plural(study.budget, 'request')}"),
        caption=Text(
            "hits per request so far, mean over tasks; AUC: mean height of the curve; ÷: harvest at the end divided by"
            " that of a reference; half: requests to 50 % of all targets, median; references know what no crawler can"
        ),
        box=box.SIMPLE_HEAD,
    )
    shown.add_column("policy", no_wrap=True)
    for k in study.checkpoints:
        shown.add_column(f"@{k}", justify="right")
    for head in ("AUC", *(f"÷ {visible(name)}" for name in study.references), "recall", "half", "nDCG", "µs"):
        shown.add_column(Text(head), justify="right")
    for name in study.policies + study.references:
        best = name == study.policies[0] if study.policies else False
        style = "bold" if best else "dim" if name in study.references else ""
        shown.add_row(Text(visible(name)), *_figures(study, name), style=style)
    return shown


def _figures(study: Study, name: str) -> list[str]:
    return [
        *(decimal(study.mean(name, f"harvest@{k}")) for k in study.checkpoints),
        decimal(study.mean(name, "auc")),
        *(decimal(study.over(name, reference, study.last), 2) for reference in study.references),
        decimal(study.mean(name, "recall"), 2),
        requests(study.middle(name, "to_50"), study.budget),
        decimal(study.mean(name, "ndcg"), 2),
        decimal(study.mean(name, "cpu_us"), 0),
    ]


def _compared(study: Study) -> Table:
    chosen = subject(study)
    shown = Table(
        title=Text(f"{visible(chosen)} against the others: difference in harvest at {study.budget}"),
        caption=Text("paired over web, task and repeat; 95 % interval by hierarchical bootstrap; tasks won/even/lost"),
        box=box.SIMPLE_HEAD,
    )
    for head, justify in (("against", "left"), ("difference", "right"), ("95 %", "right"), ("tasks", "right")):
        shown.add_column(head, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    shown.add_column("worst task")
    for found in against(study, chosen):
        style = "green" if found.low > 0 else "red" if found.high < 0 else ""
        tasks = f"{found.wins}/{found.ties}/{found.losses}"
        shown.add_row(
            Text(visible(found.other)), Text(signed(found.difference), style), Text(span(found.low, found.high)), tasks,
            Text(_worst(study, found)),
        )  # fmt: skip
    return shown


def _worst(study: Study, found: Comparison) -> str:
    return f"{signed(found.worst_difference)} {task_name(study, found.worst)}" if found.worst else ""
