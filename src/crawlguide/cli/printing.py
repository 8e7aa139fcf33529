"""How commands show things: colours and the width of the window on a terminal, plain whole lines elsewhere."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import typer

from crawlguide.core.telemetry import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

UNBROKEN = 100_000  # so wide that nothing is folded where no window has to hold it
BAR_CELLS = 30
STYLES = {"ok": "green", "keep": "green", "running": "green", "warn": "yellow", "waiting": "yellow", "wrong": "red"}


def show(*things: RenderableType) -> None:
    """One below the other."""
    out = console()
    if out.is_terminal:
        out.print(*things, sep="\n")
        return
    with out.capture() as taken:
        out.print(*things, sep="\n")
    typer.echo("\n".join(line.rstrip() for line in taken.get().rstrip("\n").split("\n")))


def console() -> Console:
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):  # rather an escaped letter than a traceback
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stdout.isatty():
        return Console(highlight=False, markup=False, emoji=False)
    return Console(highlight=False, markup=False, emoji=False, force_terminal=False, color_system=None, width=UNBROKEN)


def text(words: str, style: str = "") -> Text:
    """Words that may be somebody else's: nothing in them is obeyed."""
    from rich.text import Text

    return Text(printable(words), style or STYLES.get(words, ""))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], widest: int | None = None) -> Table:
    """Columns of numbers are named with a blank before: they stand to the right.

    Text that is too long is folded; with `widest` it is cut there, for tables that stay one line a row.
    """
    from rich.table import Table

    named = any(name.strip() for name in columns)
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=named)
    for name in columns:
        number = name.startswith(" ")
        shown.add_column(
            name.strip(),
            justify="right" if number else "left",
            max_width=widest,
            no_wrap=number or widest is not None,
            overflow="fold" if widest is None else "ellipsis",
        )
    for row in rows:
        shown.add_row(*map(text, row))
    return shown


def section(title: str, rows: Sequence[Sequence[str]]) -> RenderableType:
    """A heading after a blank line, and below it a table without a head; nothing where there are no rows."""
    from rich.console import Group
    from rich.padding import Padding

    if not rows:
        return Group()
    used = [
        number for number in range(len(rows[0])) if any(row[number] for row in rows)
    ]  # rich folds beside empty ones
    shown = table([""] * len(used), [[row[number] for number in used] for row in rows])
    return Group("", text(title, "bold"), Padding(shown, (0, 0, 0, 2), expand=False))


def bar(value: float, longest: float) -> str:
    """Its length as a share of the longest one; every one that is not nothing has some."""
    cells = round(BAR_CELLS * abs(value) / longest) if longest else 0
    return "█" * (max(1, cells) if value else 0)


def duration(milliseconds: float) -> str:
    """0 -> "now", 1500 -> "1.5 s", 90000 -> "2 min"."""
    seconds = milliseconds / 1_000
    if seconds <= 0:
        return "now"
    for unit, size in (("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"
