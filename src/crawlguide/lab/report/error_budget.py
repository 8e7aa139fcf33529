"""An error budget for people: tables in the terminal, and one HTML page that needs nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.text import Text

from crawlguide.gateway.dashboard.axes import Frame, Tick, ticks
from crawlguide.gateway.dashboard.formatting import NOTHING, number, visible
from crawlguide.gateway.transfers import written
from crawlguide.lab import error_budget as budgets
from crawlguide.lab.report.formatting import count, decimal, percent, plural, shortened
from crawlguide.lab.report.page import rendered
from crawlguide.lab.report.terminal import columns

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType
    from rich.table import Table

    from crawlguide.lab.error_budget import ErrorBudget

LONGEST = 38  # characters of an address in a terminal
SHOWN = 10  # rows of a list in a terminal
MOST_BLOCKS = 20  # rows of the table by hundred requests in a terminal
COLOURS = {
    "hit": "c0", "seed": "c5", "dead link": "c2", "dead host": "c2 pale", "detour": "other", "ran dry": "dry",
    "explored": "c4", "promised": "c1", "guessed": "c3",
}  # fmt: skip


# In the terminal.


def budget_tables(document: ErrorBudget) -> RenderableType:
    """Fits into 80 columns."""
    parts: list[RenderableType] = [_causes(document), _blocks(document)]
    if document.hosts:
        parts.append(_hosts(document))
    if document.regrets:
        parts.append(_regrets(document))
    if document.hubs:
        parts.append(_hubs(document))
    return Group(*parts, Text(headline(document)))


def headline(document: ErrorBudget) -> str:
    made = plural(len(document.requests), "request")
    worst = max(_wasted(document).items(), key=lambda pair: pair[1], default=None)
    said = f"{visible(document.policy)} made {made}; {number(document.hits)} found a relevant page"
    if worst is None or not worst[1]:
        return f"{said}."
    meaning = next(cause.meaning for cause in budgets.CAUSES if cause.name == worst[0])
    return f"{said}. Of the {number(document.wasted)} others most, {number(worst[1])}, were “{worst[0]}”: {meaning}."


def _wasted(document: ErrorBudget) -> dict[str, int]:
    return {name: amount for name, amount in document.causes.items() if name != budgets.HIT.name}


def _causes(document: ErrorBudget) -> Table:
    title = f"Where the requests of {shortened(visible(document.policy))} went: {visible(document.task)}"
    table = columns(f"{title} on {visible(document.web)}", "", ["cause", "requests", "share"])
    table.add_column("means")
    for cause in budgets.CAUSES:
        amount = document.causes[cause.name]
        share = percent(amount / max(len(document.requests), 1))
        style = "bold" if cause is budgets.HIT else "" if amount else "dim"
        table.add_row(cause.name, count(amount), share, cause.meaning, style=style)
    return table


def _blocks(document: ErrorBudget) -> Table:
    present = [cause.name for cause in budgets.CAUSES if document.causes[cause.name]]
    left = len(document.blocks) - MOST_BLOCKS
    caption = f"and {plural(left, 'hundred')} more, see --html" if left > 0 else ""
    table = columns("By hundred requests", caption, ["from", *present])
    for place, block in enumerate(document.blocks[:MOST_BLOCKS]):
        table.add_row(
            count(place * budgets.BLOCK + 1), *(count(block[name]) if block[name] else "" for name in present)
        )
    return table


def _hosts(document: ErrorBudget) -> Table:
    heads = ["host", "requests", "hits", "wasted", "left"]
    table = columns("Hosts with the most wasted requests", "left: relevant pages known there, never fetched", heads)
    table.add_column("mostly")
    for row in document.hosts[:SHOWN]:
        amounts = map(count, (row.requests, row.hits, row.wasted, row.left))
        table.add_row(Text(shortened(visible(row.host), 34)), *amounts, row.cause)
    return table


def _regrets(document: ErrorBudget) -> Table:
    table = columns(
        "Relevant pages that waited longest",
        "known: requests given out when a page led there first; wasted: requests made for nothing while it waited;"
        " p and rank: what the guide said of it when it was looked at first",
        ["page", "known", "fetched", "wasted", "p", "rank"],
    )
    for one in document.regrets[:SHOWN]:
        fetched = count(one.fetched) if one.fetched else "never"
        row = [count(one.known), fetched, count(one.wasted), chance(one.first_p), place(one.first_rank)]
        table.add_row(Text(address(one.url)), *row)
    return table


def _hubs(document: ErrorBudget) -> Table:
    caption = "relevant pages that each was the first to lead to; relevant: the page is a target itself"
    table = columns("Pages that opened most", caption, ["page", "opened", "known", "fetched", "relevant"])
    for one in document.hubs[:SHOWN]:
        row = [count(one.opened), count(one.known), count(one.fetched), "yes" if one.relevant else ""]
        table.add_row(Text(address(one.url)), *row)
    return table


def address(url: str) -> str:
    """The end of an address says more than its beginning."""
    plain = visible(url.partition("://")[2] or url)
    return plain if len(plain) <= LONGEST else "…" + plain[1 - LONGEST :]


def chance(value: float | None) -> str:
    return NOTHING if value is None else decimal(value, 2)


def place(rank: int | None) -> str:
    return NOTHING if rank is None else count(rank)


# As a page.


class Bar(NamedTuple):
    cause: str
    css_class: str
    amount: int
    x: float
    y: float
    width: float
    height: float


class Bars(NamedTuple):
    """Every hundred requests as one bar, hits below."""

    frame: Frame
    bars: list[Bar]
    x_ticks: list[Tick]
    y_ticks: list[Tick]


def write_budget_html(document: ErrorBudget, path: Path) -> None:
    """The file gets its name when it is whole."""
    with written(path) as file:
        file.write(budget_html(document).encode())


def budget_html(document: ErrorBudget) -> str:
    present = [cause for cause in budgets.CAUSES if document.causes[cause.name]]
    return rendered(
        "error_budget.html",
        document=document,
        headline=headline(document),
        causes=budgets.CAUSES,
        present=present,
        colours=COLOURS,
        bars=stacked(document),
        block=budgets.BLOCK,
        chance=chance,
        place=place,
    )


def stacked(document: ErrorBudget) -> Bars:
    end = max(budgets.BLOCK * len(document.blocks), 1)
    frame = Frame(40, 14, 900, 260, (0, end), (0, budgets.BLOCK))
    bars = []
    for number_of_block, block in enumerate(document.blocks):
        height = 0
        for name, amount in block.items():
            if amount:
                bars.append(_bar(frame, name, amount, number_of_block, height))
                height += amount
    x_ticks = [Tick(frame.x(value), number(value)) for value in ticks(0, end, 8) if value <= end]
    return Bars(frame, bars, x_ticks, [Tick(frame.y(value), f"{value:g}") for value in ticks(0, budgets.BLOCK, 4)])


def _bar(frame: Frame, name: str, amount: int, number_of_block: int, below: int) -> Bar:
    left, right = (frame.x(budgets.BLOCK * (number_of_block + side)) for side in (0, 1))
    top, bottom = frame.y(below + amount), frame.y(below)
    gap = min(2.0, (right - left) / 5)
    return Bar(name, COLOURS[name], amount, left, top, round(right - left - gap, 1), round(bottom - top, 1))
