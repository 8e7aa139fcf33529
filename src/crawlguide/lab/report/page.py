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
from crawlguide.lab.report import curves, forest, formatting, heat, reliability, tables
from crawlguide.lab.report.charts import looks
from crawlguide.lab.study import Study

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.lab.results import Results


@dataclass(frozen=True)
class Rival:
    """The strongest other policy, by its place in the mean, and how the compared one stands to it."""

    found: Comparison
    harvest: float


@dataclass(frozen=True)
class Lead:
    """What the page says first."""

    policy: str
    harvest: float
    shares: list[tuple[str, float]]  # of each reference
    rival: Rival | None


def write_html(results: Results, path: Path) -> None:
    """The file gets its name when it is whole."""
    with written(path) as file:
        file.write(html(results).encode())


def html(results: Results) -> str:
    study = Study(results)
    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(formatting.ALL)
    style = templates.get_template("style.css").render()
    return templates.get_template("report.html").render(
        style=style,
        style_hash=b64encode(sha256(style.encode()).digest()).decode(),
        **_shown(study),
    )


def _shown(study: Study) -> dict[str, object]:
    everyone = looks(study)
    compared = against(study, subject(study)) if study.policies else []
    large, small = curves.drawn(study, everyone)
    return {
        "study": study,
        "settings": {name: _values(study, name) for name in ("seeds_from", "feedback", "batch", "crawlers", "seed")},
        "webs": [visible(web) for web in sorted({web for web, _ in study.tasks})],
        "looks": everyone,
        "lead": _lead(study, compared) if study.policies else None,
        "large": large,
        "small": small,
        "forest": forest.drawn(study, everyone, compared) if compared else None,
        "heat": heat.drawn(study, everyone),
        "reliability": reliability.drawn(study, everyone),
        "finding": tables.finding(study, everyone),
        "shares": tables.shares(study, everyone) if study.references else None,
        "cost": tables.cost(study, everyone),
        "resamples": RESAMPLES,
        "tie": TIE,
    }


def _values(study: Study, name: str) -> str:
    """All values that a setting has in these runs: mostly one."""
    return ", ".join(visible(str(value)) for value in sorted({getattr(run, name) for run in study.runs}))


def _lead(study: Study, compared: list[Comparison]) -> Lead:
    policy = subject(study)
    rival = Rival(compared[0], study.mean(compared[0].other, study.last)) if compared else None
    shares = [(visible(name), study.over(policy, name, study.last)) for name in study.references]
    return Lead(visible(policy), study.mean(policy, study.last), shares, rival)
