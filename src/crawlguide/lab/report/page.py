"""One HTML page with everything in it: no network, no scripts, and whatever a web or a task is called stays text."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from crawlguide.gateway.dashboard.formatting import visible
from crawlguide.gateway.transfers import written
from crawlguide.lab.compare import RESAMPLES, TIE, Comparison, against, subject
from crawlguide.lab.report import charts, formatting, tables
from crawlguide.lab.summary import Summary

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.lab.results import Results


@dataclass(frozen=True)
class StrongestOther:
    """The strongest other policy, by its place in the mean, and how the compared one stands to it."""

    comparison: Comparison
    harvest: float
    auc: float
    half: float  # requests until half of all targets were found


@dataclass(frozen=True)
class Headline:
    """What the page says first."""

    policy: str
    harvest: float
    auc: float
    half: float  # requests until half of all targets were found
    shares: list[tuple[str, float]]  # of each reference
    other: StrongestOther | None


def write_html(results: Results, path: Path) -> None:
    """The file gets its name when it is whole."""
    with written(path) as file:
        file.write(html(results).encode())


def html(results: Results) -> str:
    return rendered("report.html", **_contents(Summary(results)))


def rendered(template: str, **contents: object) -> str:
    """A page of ours, with its style in it."""
    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(formatting.ALL)
    css = templates.get_template("style.css").render()
    css_hash = b64encode(sha256(css.encode()).digest()).decode()
    return templates.get_template(template).render(css=css, css_hash=css_hash, **contents)


def _contents(summary: Summary) -> dict[str, object]:
    every = charts.all_series(summary)
    compared = against(summary, subject(summary)) if summary.policies else []
    large, small = charts.harvest_curves(summary, every)
    return {
        "summary": summary,
        "settings": {name: _values(summary, name) for name in ("seeds_from", "feedback", "batch", "crawlers", "seed")},
        "webs": [visible(web) for web in sorted({web for web, _ in summary.tasks})],
        "every": every,
        "headline": _headline(summary, compared) if summary.policies else None,
        "large": large,
        "small": small,
        "forest": charts.forest_plot(summary, every, compared) if compared else None,
        "heat_map": charts.heat_map(summary, every),
        "calibration_plots": charts.calibration_plots(summary, every),
        "found": tables.what_was_found(summary, every),
        "shares": tables.shares_of_references(summary, every) if summary.references else None,
        "cost": tables.what_it_cost(summary, every),
        "warning": formatting.saturation(summary),
        "compared_by": formatting.figure_words(summary, summary.deciding),
        "resamples": RESAMPLES,
        "tie": TIE,
    }


def _values(summary: Summary, name: str) -> str:
    """All values that a setting has in these runs: mostly one."""
    return ", ".join(visible(str(value)) for value in sorted({getattr(run, name) for run in summary.runs}))


def _headline(summary: Summary, compared: list[Comparison]) -> Headline:
    policy = subject(summary)
    other = _strongest_other(summary, compared[0]) if compared else None
    shares = [(visible(name), summary.over(policy, name, summary.last)) for name in summary.references]
    way = summary.mean(policy, "auc"), summary.middle(policy, "to_50")
    return Headline(visible(policy), summary.mean(policy, summary.last), *way, shares, other)


def _strongest_other(summary: Summary, comparison: Comparison) -> StrongestOther:
    name = comparison.other
    way = summary.mean(name, "auc"), summary.middle(name, "to_50")
    return StrongestOther(comparison, summary.mean(name, summary.last), *way)
