"""What a crawl came to: a summary with a plot for the terminal, and `report.html`, one page that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from crawlguide.crawler.plot import chart, plot
from crawlguide.gateway.dashboard.formatting import number, outside, percent, reason, span, visible
from crawlguide.gateway.transfers import written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crawlguide.crawler.run import Outcome

HOSTS = 10
LOST = 5  # hosts without rules that are named
REASONS = 3  # why documents could not be read
CELLS = 60  # width of the plot
SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
ENDS = {
    "exhausted": "nothing is left to fetch",
    "finished": "the crawl has reached a limit of its definition",
    "max-pages": "as many pages were requested as --max-pages says",
    "max-time": "the time of --max-time is over",
    "until": "so much of what is relevant was found as --until says",
    "min-harvest": "the harvest fell below --min-harvest",
    "interrupted": "Ctrl-C",
}
BELOW_MIN_P = "nothing is left that has the chance --min-p asks for"
SHOWN = {
    "number": number, "percent": percent, "outside": outside, "visible": visible, "reason": reason, "span": span,
}  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """Facts and advice, each a line."""

    outcome: Outcome

    @property
    def ended(self) -> str:
        return BELOW_MIN_P if self._is_below_min_p() else ENDS.get(self.outcome.why, self.outcome.why)

    def _is_below_min_p(self) -> bool:
        """Whether URLs wait that nobody wants to pay for; those of hosts without rules are said apart."""
        wants = self.outcome.identity.definition.get("policy", {}).get("min_p")
        waits = self.outcome.stats.get("queued") and not self.outcome.tally.has_lost
        return bool(wants and waits and self.outcome.why == "exhausted")

    @property
    def is_judged(self) -> bool:
        """Whether anybody said what is relevant; without that there is no harvest to speak of."""
        return self.outcome.tally.judged > 0

    def facts(self) -> list[tuple[str, str]]:
        tally, stats = self.outcome.tally, self.outcome.stats
        parts = [(tally.pages, "page"), (tally.redirects, "redirect"), (sum(tally.problems.values()), "failure")]
        came = ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in parts)
        came += f", {tally.revisits:,} pages again" if tally.revisits else ""
        found = [
            ("ended", self.ended),
            ("requests", f"{tally.requests:,} ({came}), {tally.robots:,} of robots.txt"),
            ("relevant", f"{tally.relevant:,}, {percent(tally.harvest)} of the requests" if self.is_judged else ""),
            ("hosts", f"{len(tally.hosts):,}"),
            ("received", size(tally.bytes)),
            ("time", self._time()),
            ("failures", _counted(tally.problems.most_common(HOSTS))),
            ("not read", _counted(tally.unreadable.most_common(REASONS))),
            ("dropped", _counted(sorted(stats.get("dropped", {}).items(), key=lambda pair: -pair[1]))),
            ("waiting", f"{stats['queued']:,} URLs" if stats.get("queued") else ""),
            ("robots.txt", self._without_rules()),
            ("estimate", self.outcome.remaining),
        ]
        return [(name, text) for name, text in found if text]

    def _without_rules(self) -> str:
        """Which hosts nothing was fetched of, since nobody can read what may be fetched there."""
        tally = self.outcome.tally
        if self.outcome.why != "exhausted":
            return "" if tally.requests else tally.without_rules
        lost = [f"that of {host} could not be read: {problem}" for host, problem in tally.lost_hosts().items()]
        return "; ".join(lost[:LOST]) + (f"; and {len(lost) - LOST:,} more" if len(lost) > LOST else "")

    def _time(self) -> str:
        """Of this run, and what was requested in it."""
        tally, seconds = self.outcome.tally, self.outcome.seconds
        new = tally.requests - tally.earlier
        run = f"; {new:,} of the requests in this run" if tally.earlier else ""
        return f"{span(seconds)}, {new / max(seconds, 1e-9):.1f} requests/s{run}"

    def advice(self) -> list[str]:
        """What to try next."""
        tally, stats, why = self.outcome.tally, self.outcome.stats, self.outcome.why
        said = []
        if stats.get("queued") and (why != "exhausted" or tally.has_lost) and tally.requests:
            said.append(f"crawlguide crawl --resume --out {self.outcome.folder.path}{self._further()}")
        if self.outcome.identity.definition.get("goal") and tally.pages >= 50 and tally.harvest < 0.1:
            said.append("few pages fit: say more with --keywords or --reference, or begin nearer to the topic")
        if stats.get("dropped", {}).get("robots", 0) > tally.pages:
            said.append("robots.txt forbids most of what was found: begin with other sites")
        if stats.get("dropped", {}).get("traps", 0) > tally.pages:
            said.append(f"most of what was found looks like a crawler trap; why, says {self._explain()}")
        if tally.relevant:
            said.append(f"crawlguide lab run --web {self.outcome.folder.path} --policies layered,breadth-first")
        return said

    def _explain(self) -> str:
        """What a filter holds against a URL, from the guide that was asked."""
        identity, folder = self.outcome.identity, self.outcome.folder
        where = f"--url {identity.guide}" if identity.guide else f"--data {folder.guide}"
        return f"crawlguide explain URL --crawl {identity.crawl_id} {where}"

    def _further(self) -> str:
        """As far as it was to go; twice as far where it has got there."""
        most, requests = self.outcome.max_pages, self.outcome.tally.requests
        most = most if not most or requests < most else 2 * requests
        return f" --max-pages {most}" if most else ""

    def plot(self) -> list[str]:
        return plot(self.outcome.tally.curve.points, CELLS) if self.outcome.tally.relevant else []


def size(count: float) -> str:
    return next((f"{count / unit:.1f} {name}" for unit, name in SIZES if count >= unit), f"{count:.0f} bytes")


def write_html(summary: Summary, path: Path) -> None:
    """The file gets its name when it is whole."""
    templates = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(SHOWN)
    css = templates.get_template("style.css").render()
    outcome = summary.outcome
    text = templates.get_template("report.html").render(
        css=css,
        css_hash=b64encode(sha256(css.encode()).digest()).decode(),
        summary=summary,
        title=outcome.identity.definition.get("goal", {}).get("topic") or outcome.identity.crawl_id,
        identity=outcome.identity,
        tally=outcome.tally,
        chart=chart(outcome.tally.curve.points),
        hosts=outcome.tally.best_hosts(HOSTS),
        best=outcome.best,
    )
    with written(path) as file:
        file.write(text.encode())


def _counted(pairs: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in pairs)
