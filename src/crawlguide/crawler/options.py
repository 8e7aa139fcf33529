"""What a person says about a crawl, and the definition that comes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.definition import Definition

DEFAULT_NAME = "crawl"
NAMES = {  # of options that are not called like what they set
    "default_delay_s": "delay", "kind": "strategy", "seed_hosts_only": "same-site", "allow_domains": "allow",
    "deny_domains": "deny", "recrawl": "recrawl-after", "recrawl_after_s": "recrawl-after",
}  # fmt: skip
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True, kw_only=True)
class CrawlOptions:
    """All that `crawlguide crawl` is told. None or empty: not said."""

    seeds: tuple[str, ...] = ()
    topic: str | None = None
    keywords: tuple[str, ...] = ()
    reference: str | None = None  # a file or a URL
    strategy: str | None = None
    max_pages: int = 0
    max_depth: int | None = None
    recrawl_after_s: float | None = None
    refresh: bool = False  # pages are fetched again as often as they change
    max_time_s: float = 0.0
    concurrency: int = 16
    out: Path
    resume: bool = False
    guide: str | None = None
    crawl: str | None = None
    proxy: str | None = None
    allow_networks: tuple[str, ...] = ()
    user_agent: str | None = None
    contact: str = ""
    delay_s: float | None = None
    same_site: bool = False
    allow_domains: tuple[str, ...] = ()
    deny_domains: tuple[str, ...] = ()
    until: float | None = None  # a share of the relevant pages
    min_harvest: float | None = None
    names_limits: bool = True  # False: a crawl that goes on keeps those of its last run
    min_p: float | None = None
    warc: bool = True
    parquet: bool = True

    @property
    def agent(self) -> str:
        return self.user_agent or "crawlguide"

    @property
    def name(self) -> str:
        """Of the crawl: as it is called, or else after its topic."""
        words = "-".join(re.findall(r"\w+", (self.topic or "").lower()))[:60].strip("-")
        return self.crawl or words or DEFAULT_NAME


def definition(options: CrawlOptions, reference: str) -> dict[str, Any]:
    """What was said, without what is left to the guide."""
    goal = {"topic": options.topic, "keywords": list(options.keywords), "reference": reference}
    policy = {
        "user_agent": token(options.user_agent) if options.user_agent else None,
        "default_delay_s": options.delay_s,
        "seed_hosts_only": options.same_site,
        "allow_domains": list(options.allow_domains),
        "deny_domains": list(options.deny_domains),
        "min_p": options.min_p,
        "recrawl": "refresh" if options.refresh else options.recrawl_after_s is not None,
        "recrawl_after_s": options.recrawl_after_s,
    }
    said = {
        "goal": _said(goal),
        "strategy": _said({"kind": options.strategy}),
        "policy": _said(policy),
        "limits": _said({"max_depth": options.max_depth}),
    }
    return _said(said)


def completed(said: dict[str, Any]) -> dict[str, Any]:
    """With what this crawler wants of every guide.

    robots.txt files are fetched by this crawler: it may be the only one with a way out, as behind a proxy. An answer
    may hold any number of URLs of a host, as relevant pages often are on few: pauses keep hosts from being overrun.
    """
    return said | {"policy": {"robots": "crawler", "max_per_host": 0} | said.get("policy", {})}


def differing(wanted: Definition, there: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """Fields of which something was said that is not so there; how many URLs of a host an answer holds is theirs."""
    here = msgspec.json.decode(msgspec.json.encode(wanted))
    return [
        f"{part}.{name}"
        for part, fields in said.items()
        for name in fields
        if (part, name) != ("policy", "max_per_host") and here[part].get(name) != there.get(part, {}).get(name)
    ]


def token(agent: str) -> str:
    """The name that robots.txt files know: "MyBot/1.0 (+https://…)" is MyBot."""
    found = re.match(r"[A-Za-z_-]+", agent.strip())
    if found is None:
        raise ConfigError(f"--user-agent: expected a name that begins with a letter, got {agent[:100]!r}")
    return found[0]


def option(name: str) -> str:
    """As a person types what sets a field of the definition."""
    return "--" + NAMES.get(name, name).replace("_", "-")


def shown(value: object) -> str:
    """What was said, on one short line."""
    if value is None:
        return "nothing"
    return repr(value[:80]) if isinstance(value, str) else str(value)[:80]


def without_password(url: str) -> str:
    """An address that may be kept: who logs in there may not."""
    before, at, after = url.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else url


def seconds(text: str, option: str = "--max-time") -> float:
    """90, 90s, 30m, 2h, 1d."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    length = float(found[1]) * UNITS.get(found[2], 0.0) if found else 0.0
    if not length:
        raise ConfigError(f"{option}: expected a time above 0 such as 90s, 30m, 2h or 1d, got {text[:40]!r}")
    return length


def share(text: str) -> float:
    """95 %, 95 or 0.95; 1 and 100 % are all of it."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    number = float(found[1]) if found else 0.0
    value = number / 100 if found and (found[2] or number > 1) else number
    if not 0 < value <= 1:
        raise ConfigError(f'--until: expected a share such as "95 %" or 0.95, got {text[:40]!r}')
    return value


def _said(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value or (value == 0 and value is not False)}
