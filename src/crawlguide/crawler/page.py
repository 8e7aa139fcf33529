"""What a page says: plain data, which every reader makes."""

from __future__ import annotations

from dataclasses import dataclass

MAX_LINKS = 10_000
MAX_TEXT = 500_000  # characters
MAX_LINE = 1_000  # of a title, an anchor, a heading
MAX_HEADINGS = 200


@dataclass(frozen=True)
class Link:
    """A link in its canonical form; `position` counts the links of the page from 0.

    `rel` is that of the page; "refresh" for a page that sends its readers on by itself.
    """

    url: str
    anchor: str = ""
    rel: str = ""
    position: int = 0


@dataclass(frozen=True)
class Page:
    """What a page says. Dates are as the page writes them, where they begin with year, month and day."""

    title: str = ""
    headings: tuple[str, ...] = ()
    text: str = ""  # without menus, footers and scripts
    links: tuple[Link, ...] = ()
    canonical: str | None = None
    robots_meta: tuple[str, ...] = ()
    language: str = ""  # such as "en"
    feeds: tuple[str, ...] = ()
    published: str | None = None
    modified: str | None = None
    problem: str = ""  # why it could not be read, one line


def one_line(text: str, length: int = MAX_LINE) -> str:
    """All white space as single blanks."""
    return " ".join(text[: 4 * length].split())[:length]
