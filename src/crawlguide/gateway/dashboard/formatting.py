"""Numbers, times and foreign texts as people read them: the filters that the templates use."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = "–"
THIN = "\u202f"  # a narrow space that does not break
LINKED = ("http://", "https://")
UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
# control characters have pictures, so that nothing in a name goes unseen; those without one get the same stand-in,
# and so do marks that turn the direction of what follows
TURNS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
STANDS_IN = dict.fromkeys((*range(0x80, 0xA0), *TURNS), 0xFFFD)
PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421} | STANDS_IN
REASONS = {
    "high_relevance": "relevance", "recency": "freshness", "authority": "authority", "low_cost": "low cost",
    "polite_now": "host is free", "exploration": "exploration", "in_focus": "in focus",
}  # fmt: skip

STATES = {
    "running": "URLs can be given out now", "waiting": "what is left is leased, or its hosts rest",
    "exhausted": "nothing is left", "paused": "nothing is given out until it is resumed",
    "finished": "one of its limits was reached",
}  # fmt: skip


def number(value: float) -> str:
    """12345 -> "12 345"."""
    return f"{round(value):,}".replace(",", THIN)


def percent(value: float | None) -> str:
    """0.371 -> "37 %"; small shares keep a digit, so that some is never shown as none."""
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return NOTHING
    digits = 1 if 0 < value < 0.0995 else 0
    return f"{100 * value:.{digits}f}{THIN}%"


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def decimal(value: float) -> str:
    return NOTHING if value != value else f"{value:.2f}"  # noqa: PLR0124 - NaN


def milliseconds(value: float) -> str:
    return NOTHING if value != value else span(value / 1_000)  # noqa: PLR0124 - NaN


def span(seconds: float) -> str:
    """How long, in the one unit that fits: "320 ms", "4.2 s", "3 min", "5 h"."""
    if seconds < 0.9995:
        return f"{max(0.0, 1_000 * seconds):.0f}{THIN}ms"
    for size, unit in UNITS:
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f}{THIN}{unit}"
    return f"{seconds:.1f}{THIN}s" if seconds < 9.95 else f"{seconds:.0f}{THIN}s"


def ago(seconds: float) -> str:
    return "now" if seconds < 1 else f"{seconds:.0f}{THIN}s ago" if seconds < 90 else f"{span(seconds)} ago"


def visible(text: str) -> str:
    """A text from anywhere, with pictures for its control characters."""
    return text.translate(PICTURES)


def outside(url: str) -> str | None:
    """Where a link to the page itself may lead: nowhere, unless the web lies there."""
    return url if url.lower().startswith(LINKED) else None


def pieces(url: str) -> tuple[str, str, str]:
    """Scheme, host and the rest; together they are the URL."""
    if not outside(url):
        return "", "", url
    scheme, _, rest = url.partition("//")
    try:
        host = rest[: len(rest) - len(rest.lstrip("/"))] + urlsplit(url).netloc
    except ValueError:  # brackets around what is no address
        host = ""
    return f"{scheme}//", host, rest.removeprefix(host)


def crawl_page(name: str) -> str | None:
    """The page of a crawl. A browser takes the names "." and ".." for folders, so these have none."""
    return None if name in {".", ".."} else f"/crawls/{quote(name, safe='')}"


def explanation(url: str, crawl: str) -> str:
    return "/v1/explain?" + urlencode({"crawl_id": crawl, "url": url}, quote_via=quote)


def host_urls(host: str, crawl: str) -> str:
    return "/v1/urls?" + urlencode({"crawl_id": crawl, "host": host, "limit": 100}, quote_via=quote)


def meaning(state: str) -> str:
    return STATES.get(state, "")


def reason(text: str) -> str:
    """high_relevance+recency -> "relevance, freshness"."""
    return ", ".join(REASONS.get(part, part) for part in text.split("+"))


ALL: dict[str, Callable[..., object]] = {
    filter_.__name__: filter_
    for filter_ in (
        number, percent, decimal, milliseconds, span, ago, visible, outside, pieces, crawl_page, explanation,
        host_urls, meaning, reason,
    )
}  # fmt: skip
