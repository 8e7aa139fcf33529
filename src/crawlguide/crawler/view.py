"""How a crawl is shown while it runs: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from crawlguide.core.telemetry import printable
from crawlguide.crawler.plot import sparkline
from crawlguide.gateway.dashboard.formatting import percent, reason, span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, RenderableType

    from crawlguide.crawler.loop import CrawlLoop
    from crawlguide.crawler.tally import Tally

LINE_EVERY_S = 5.0
SHORT_WAIT_S = 0.5
HOSTS, NEXT = 5, 5  # that are shown


class View(Protocol):
    """Whoever watches."""

    def say(self, text: str) -> None: ...
    def start(self) -> None: ...
    def show(self, loop: CrawlLoop) -> None: ...
    def stop(self) -> None: ...


class Plain:
    """A line now and then."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._last = 0.0

    def start(self) -> None:
        self._last = time.monotonic()

    def show(self, loop: CrawlLoop) -> None:
        if time.monotonic() - self._last >= LINE_EVERY_S:
            self._last = time.monotonic()
            self.say(", ".join(facts(loop)))

    def stop(self) -> None:
        """Nothing is open."""


class Pictured:
    """On a terminal: numbers, the harvest curve, the best hosts, and what comes next and why."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def say(self, text: str) -> None:
        self._console.print(Text(printable(text)))

    def start(self) -> None:
        self._live.start()

    def show(self, loop: CrawlLoop) -> None:
        self._live.update(self._picture(loop), refresh=True)

    def stop(self) -> None:
        self._live.stop()

    def _picture(self, loop: CrawlLoop) -> RenderableType:
        tally, width = loop.tally, max(20, min(self._console.width - 20, 80))
        parts: list[RenderableType] = [Text(" · ".join(facts(loop)), style="bold")]
        if loop.assignments.trouble:
            parts.append(Text(printable(_trouble(loop)), style="red"))
        if tally.judged:
            curve, lately = sparkline(tally.curve.points, width), percent(tally.recent_harvest)
            parts.append(Text(f"harvest  {curve}  {lately} lately"))
            parts.append(_table("best hosts", *_hosts(tally)))
        return Group(*parts, _table("next", *_upcoming(loop)))


def facts(loop: CrawlLoop) -> list[str]:
    """How it goes, in few words."""
    tally = loop.tally
    said = [f"{tally.requests:,} requests"]
    said += [f"{tally.relevant:,} relevant", f"harvest {percent(tally.harvest)}"] if tally.judged else []
    said += [f"{len(tally.hosts):,} host{'s' if len(tally.hosts) != 1 else ''}", f"{tally.pace():.1f} pages/s"]
    said += [loop.remaining] if loop.remaining else []
    said += [waits] if (waits := _waits(loop)) else []
    if loop.left_s is not None:
        said.append(f"{span(loop.left_s)} left")
    if loop.assignments.trouble:
        said.append(_trouble(loop))
    return said


def _waits(loop: CrawlLoop) -> str:
    """Why nothing is fetched: a crawl that waits without a word looks like one that hangs."""
    if loop.under_way or loop.assignments.trouble:
        return ""
    held = loop.assignments.upcoming(1)
    if not held and loop.tally.unread:
        return loop.tally.without_rules
    wait_s = max(0.0, held[0].not_before - time.monotonic()) if held else loop.assignments.asks_in_s
    return f"waiting {span(wait_s)} for the pace of hosts" if wait_s > SHORT_WAIT_S else ""


def _trouble(loop: CrawlLoop) -> str:
    return f"the guide does not answer and is tried again: {loop.assignments.trouble}"


def _hosts(tally: Tally) -> tuple[Sequence[str], list[Sequence[str]]]:
    rows = [(name, f"{host.relevant:,}", f"of {host.pages:,}") for name, host in tally.best_hosts(HOSTS)]
    return ("", "relevant", ""), list(rows)


def _upcoming(loop: CrawlLoop) -> tuple[Sequence[str], list[Sequence[str]]]:
    rows = [(one.url, f"{one.p:.2f}", reason(one.reason)) for one in loop.assignments.upcoming(NEXT)]
    return ("", "p", "why"), list(rows)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    shown.add_column(title, no_wrap=True, overflow="ellipsis", ratio=1)
    for head in heads[1:]:
        shown.add_column(head, no_wrap=True)
    for row in rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    return shown
