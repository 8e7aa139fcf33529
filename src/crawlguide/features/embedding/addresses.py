"""What a URL says in words."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from crawlguide.core import urls

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# How a page is made or served says nothing about what it is about.
SILENT = frozenset(
    ("www", "http", "https", "html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "cgi", "index", "default")
)
MOST_DIGITS = 4  # longer numbers are codes


def words_of(url: str) -> str:
    """The words of a canonical URL, in small letters: the name its domain was registered by, its path and its query.

    >>> words_of("https://docs.example.org/en/HowTo/regular-expressions2.html?q=caf%C3%A9")
    'example en how to regular expressions 2 q café'
    """
    start = url.index("/", 8)
    tail = url[start:]
    words = WORD.findall(unquote(tail, errors="ignore") if "%" in tail else tail)
    said = [small for word in words if (small := word.lower()) not in SILENT and not _is_code(small)]
    return " ".join((name_of(urls.queue(url)), *said)).strip()


@lru_cache(maxsize=65_536)
def name_of(queue: str) -> str:
    """What a politeness queue is called: `example` of `docs.example.co.uk`; nothing of an address."""
    domain = urls.domain_of(queue)
    name = domain.partition(".")[0]
    return "" if domain.startswith("[") or name.isdigit() else " ".join(WORD.findall(name))


def _is_code(word: str) -> bool:
    return len(word) > MOST_DIGITS and word.isdigit()
