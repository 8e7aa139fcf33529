"""Figures and foreign texts as people read them, in the terminal and on the page."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from crawlguide.gateway.dashboard.formatting import NOTHING, THIN, number, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.lab.summary import Summary, Task

MINUS = "\N{MINUS SIGN}"
LONGEST = 22  # characters of a name that fit beside a curve


def decimal(value: float, digits: int = 3) -> str:
    """0.3894 -> "0.389"."""
    return NOTHING if math.isnan(value) else f"{value:.{digits}f}".replace("-", MINUS)


def signed(value: float, digits: int = 3) -> str:
    """0.12 -> "+0.120"; what rounds to nothing has no sign."""
    if math.isnan(value):
        return NOTHING
    return f"{value:+.{digits}f}".replace("-", MINUS) if round(value, digits) else f"{0:.{digits}f}"


def percent(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{100 * value:.1f}{THIN}%"


def count(value: float) -> str:
    return NOTHING if math.isnan(value) else number(value)


def requests(value: float, budget: int) -> str:
    """How many it took; the budget was not enough for an infinite number."""
    return f">{THIN}{number(budget)}" if math.isinf(value) else count(value)


def half_words(value: float, budget: int) -> str:
    """The same in a sentence; "after" an infinite number of requests nothing is found."""
    if math.isinf(value):
        return f"less than half of all targets after {plural(budget, 'request')}"
    return f"half of all targets after {count(value)} requests"


def figure_words(summary: Summary, figure: str) -> str:
    """A figure by which policies are compared, for people."""
    return "mean harvest over the whole crawl (AUC)" if figure == "auc" else f"harvest at {count(summary.budget)}"


def saturation(summary: Summary) -> str:
    """A warning in words, or nothing."""
    if not summary.saturated:
        return ""
    return (
        f"This run is saturated: within {plural(summary.budget, 'request')} the best policies find nearly all there is"
        " to find, so the end says little. Policies are compared over the whole crawl instead;"
        " a smaller --budget or a larger web tells them apart better."
    )


def span(low: float, high: float) -> str:
    """An interval: "[+0.012, +0.071]"."""
    return NOTHING if math.isnan(low) else f"[{signed(low)}, {signed(high)}]"


def plural(amount: int, noun: str) -> str:
    return f"{number(amount)} {noun}" if amount == 1 else f"{number(amount)} {noun}s"


def shortened(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def task_name(summary: Summary, task: Task) -> str:
    """The web is named only where there are several."""
    web, name = task
    return visible(name if len({web for web, _ in summary.tasks}) == 1 else f"{web} / {name}")


def command(words: Sequence[str]) -> str:
    """As it is typed into a shell."""
    return visible(shlex.join(words))


ALL: dict[str, Callable[..., str]] = {
    filter_.__name__: filter_
    for filter_ in (decimal, signed, percent, count, requests, half_words, span, plural, command, visible, number)
}
