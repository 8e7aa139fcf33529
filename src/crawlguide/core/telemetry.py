"""What the guide reports about itself: metrics, through hooks, and log events.

A log event has a name, a sentence for people and fields for programs. It goes to the logger `crawlguide` of the
standard library, so a program with a guide inside decides what becomes of it; `crawlguide serve` writes one line for
each (`gateway/logs.py`). Where nobody listens, a metric costs an empty call and an event a comparison.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from typing import Literal, Protocol


class Telemetry(Protocol):
    """Receives counts and measurements while the guide works; a door turns them into metrics."""

    def count(self, event: str, amount: int = 1, /, **labels: str) -> None:
        """`event` happened `amount` times. Labels come from small fixed sets: never a URL, a host or a crawler."""
        ...

    def observe(self, quantity: str, value: float, /, **labels: str) -> None:
        """One measurement, in the unit that `quantity` ends with."""
        ...


class Silent:
    """Telemetry that nobody listens to."""

    def count(self, event: str, amount: int = 1, /, **labels: str) -> None:
        pass

    def observe(self, quantity: str, value: float, /, **labels: str) -> None:
        pass


SILENT = Silent()

Event = Literal[
    "compiling", "opened", "start", "stopping", "stop",
    "crawl_created", "crawl_changed", "crawl_paused", "crawl_resumed", "crawl_finished", "crawl_deleted",
    "warm_start",
    "audit", "credentials_unread", "insecure", "unencrypted",
    "request_refused", "request_failed", "request_slow",
    "bus_joined", "bus_away", "bus_trouble", "bus_dead_letter", "bus_events_lost",
    "guide_away", "links_left_out", "overloaded", "tls_reloaded", "tls_failed",
    "high_risk", "rules_loaded", "rules_failed",
    "predictor_failed", "predictor_recovered",
    "robots_unread", "robots_ignored", "sitemap_unread", "promise_impossible", "promise_possible",
    "errand_failed", "task_failed", "task_recovered",
    "storage_full", "storage_failed", "storage_recovered", "snapshot", "sweep",
]  # fmt: skip
LOGGER = logging.getLogger("crawlguide")
UNASKED = logging.NullHandler()  # a library says nothing unless it is asked to
LOGGER.addHandler(UNASKED)
SECRETS = (  # what may stand in a URL or a message that somebody sends, and is to stand nowhere else
    (re.compile(r"(?<=://)[^/?#\s@]*@"), ""),  # https://me:password@host/
    (re.compile(r"(cg_[0-9a-f]{12})_[0-9A-Za-z]{8,}"), r"\1_..."),  # an API key, of which the name is none
    (re.compile(r"eyJ[\w-]{8,}\.[\w-]*\.?[\w-]*"), "eyJ..."),  # a JSON Web Token
)
DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR


def happened(event: Event, sentence: str, level: int = INFO, /, **fields: str | float | None) -> None:
    """Log an event. `sentence` names fields in braces; values may come from outside, and the log escapes them."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, sentence.format(**fields), extra={"event": event, "fields": fields})


def printable(text: str) -> str:
    """A text without characters that would move the cursor, change colours or end the line."""
    return "".join(letter if letter.isprintable() else _named(letter) for letter in text)


def _named(letter: str) -> str:
    """A space of whatever width is one; anything else is named by its number."""
    return " " if unicodedata.category(letter) == "Zs" else repr(letter)[1:-1]


def without_secrets(text: str) -> str:
    """A text without passwords, API keys and tokens."""
    for pattern, instead in SECRETS:
        text = pattern.sub(instead, text)
    return text
