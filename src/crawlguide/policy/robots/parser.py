"""Parser of robots.txt: from its bytes to the rules for one agent (RFC 9309, as leniently as the large crawlers).

Lines are parsed by hand, since in practice the trouble is there: byte order marks, odd line ends, misspelt fields,
unknown fields between two agents. No line is an error; what cannot be used is ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.types import READ_ROBOTS

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = READ_ROBOTS  # of a file
MAX_LINE_BYTES = 8 * 2_083 - 1  # as Google cuts them: eight times the longest URL that was common once
MAX_DELAY_S = 86_400.0
ANY_AGENT = "*"

_FIELDS = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), "agent"),
    **dict.fromkeys(("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"), "disallow"),
    "allow": "allow",
    **dict.fromkeys(("crawl-delay", "crawldelay", "crawl delay"), "delay"),
    "request-rate": "rate",
    **dict.fromkeys(("sitemap", "site-map"), "sitemap"),
    "noindex": "noindex",
    "nofollow": "nofollow",
}
_BYTE_ORDER_MARK, _UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_LINE_ENDS = re.compile(rb"\r\n|\n|\r")
_RATE = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*([smhd]?)")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PRODUCT, _WIDE_PRODUCT = re.compile(r"[A-Za-z_-]+"), re.compile(r"[\w-]+")
_COMPATIBLE = re.compile(r"^Mozilla/[^(]*\(compatible;\s*([\w-]+)", re.IGNORECASE)
_BLANK = " \t\v\f\x00"


@dataclass
class Group:
    """The rules of a file for one agent, or for any, in their order. Patterns are as they were written."""

    rules: list[tuple[bool, str]] = field(default_factory=list)  # (allowed, pattern)
    noindex: list[str] = field(default_factory=list)
    nofollow: list[str] = field(default_factory=list)
    delay_s: float | None = None  # Crawl-delay
    rate_s: float | None = None  # Request-rate, as a delay

    @property
    def pause_s(self) -> float | None:
        """The longest pause between two fetches that is asked for; None: none is."""
        return _longer(self.delay_s, self.rate_s)


def parse(body: bytes, agent: str) -> tuple[Group, list[str]]:
    """The rules for this agent, else those for any agent; and the sitemaps, which are for all."""
    own, general, sitemaps = Group(), Group(), list[str]()
    name, found = agent_name(agent), False
    mine = of_all = listing = False  # is the group for this agent, for any; are its agents still being listed
    for word, value in _lines(body):
        if word == "agent":
            if not listing:
                mine = of_all = False
            listing = True
            of_all |= is_any_agent(value)
            mine |= name in names(value)
            found |= mine
        elif word == "sitemap":
            sitemaps.append(value)
        else:
            listing &= word not in ("allow", "disallow")
            for group, applies in ((own, mine), (general, of_all)):
                if applies:
                    _add(group, word, value)
    return (own if found else general), sitemaps


def agent_name(agent: str) -> str:
    """How a crawler with this user agent is named in robots.txt: without a version and what follows it.

    "Mozilla/5.0 (compatible; examplebot/1.0)" is an examplebot.
    """
    compatible = _COMPATIBLE.search(agent)
    return (compatible[1] if compatible else agent.partition("/")[0].strip()).lower()


def is_any_agent(value: str) -> bool:
    """Whether a `user-agent` line means any agent: a star, whatever may follow after a blank."""
    return value[:1] == ANY_AGENT and (len(value) == 1 or value[1] in _BLANK)


def names(value: str) -> set[str]:
    """The product that a `user-agent` line names: letters, by the RFC; also with the digits and umlauts some have."""
    by_the_rfc, as_written = _PRODUCT.match(value), _WIDE_PRODUCT.match(value)
    return {found.group().lower() for found in (by_the_rfc, as_written) if found}


def _add(group: Group, word: str, value: str) -> None:
    if word in ("allow", "disallow"):
        if value:  # "Disallow:" alone forbids nothing
            group.rules.append((word == "allow", value))
    elif word == "delay":
        group.delay_s = _longer(group.delay_s, _delay(value))
    elif word == "rate":
        group.rate_s = _longer(group.rate_s, _rate(value))
    elif value:
        (group.noindex if word == "noindex" else group.nofollow).append(value)


def _longer(*pauses: float | None) -> float | None:
    return max((pause for pause in pauses if pause is not None), default=None)


def _delay(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return min(seconds, MAX_DELAY_S) if seconds >= 0 else None  # NaN is not


def _rate(value: str) -> float | None:
    """ "1/5m": one page in five minutes, whatever the hours that may follow."""
    found = _RATE.match(value)
    if not found or not int(found[1]):
        return None
    return min(int(found[2]) * _SECONDS[found[3]] / int(found[1]), MAX_DELAY_S)


def _lines(body: bytes) -> Iterator[tuple[str, str]]:
    """The lines with a known field, as its name in `_FIELDS` and its value."""
    for line in _LINE_ENDS.split(_content(body)):
        text = line[:MAX_LINE_BYTES].partition(b"#")[0].decode("utf-8", "replace").strip(_BLANK)
        word, colon, value = text.partition(":")
        known = _FIELDS.get(word.strip(_BLANK).lower())
        if colon and known:
            yield known, value.strip(_BLANK)
        elif not colon and text:
            yield from _without_colon(text)


def _without_colon(text: str) -> Iterator[tuple[str, str]]:
    """ "Disallow /private": the colon was forgotten, and there is exactly one word more."""
    words = text.split()
    if len(words) == 2 and (known := _FIELDS.get(words[0].lower())):
        yield known, words[1]


def _content(body: bytes) -> bytes:
    """Without the byte order mark, even half of one, and without a last line that was cut off."""
    if body.startswith(_UTF16_MARKS):
        body = body[:MAX_BYTES].decode("utf-16", "replace").encode()
    start = next((size for size in (3, 2, 1) if body.startswith(_BYTE_ORDER_MARK[:size])), 0)
    if len(body) <= MAX_BYTES:
        return body[start:]
    cut = body[start:MAX_BYTES]
    end = max(cut.rfind(b"\n"), cut.rfind(b"\r"))
    return cut[: end + 1]
