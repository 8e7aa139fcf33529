"""What the settings of a Scrapy project say about its guide. What is wrong is said before anything starts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from scrapy.utils.job import job_dir

from crawlguide.core.definition import Definition
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.messages import crawl_id
from crawlguide.gateway.client import AsyncClient
from crawlguide.gateway.opening import MEMORY

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings

    from crawlguide.gateway.client.verbs import AsyncVerbs

PREFIX = "CRAWLGUIDE_"
NAMES = tuple(PREFIX + name for name in ("URL", "TOKEN", "DATA", "CRAWL", "CRAWLER", "GOAL", "DEFINITION", "AHEAD"))
FOLDER = "crawlguide"  # in JOBDIR
MOST_AT_ONCE = 1_000  # requests, where Scrapy has no bound
DELAY_S = 1.0  # of a guide, where the project says nothing


@dataclass(frozen=True)
class Plan:
    """Which guide, which crawl of it, and what that crawl is."""

    url: str  # of a served guide; "": one in this process
    token: str | None
    data: str  # of the one in this process
    crawl: str
    crawler: str
    definition: dict[str, Any] | None  # None: as it is there
    concurrency: int
    ahead: int
    delay_s: float  # between two requests to a host of which the guide does not know
    checks_robots: bool  # the guide does
    job: Path | None  # where to keep what a next run needs

    def open(self) -> AsyncVerbs:
        if self.url:
            return AsyncClient(self.url, token=self.token)
        from crawlguide.gateway.library import AsyncGuide  # noqa: PLC0415 - whoever has a server does not load a guide

        return AsyncGuide.open(self.data)


def plan(settings: BaseSettings, spider: Spider) -> Plan:
    """Everything that `CRAWLGUIDE_…` and Scrapy's own settings say, checked."""
    check(settings)
    url, job = _text(settings, "URL"), job_dir(settings)
    folder = Path(job) / FOLDER if job else None
    defined = _definition(settings, bool(url))
    concurrency = settings.getint("CONCURRENT_REQUESTS") or MOST_AT_ONCE
    return Plan(
        url=url,
        token=_text(settings, "TOKEN") or None,
        data=_text(settings, "DATA") or (str(folder / "guide") if folder else MEMORY),
        crawl=_crawl(_text(settings, "CRAWL") or spider.name),
        crawler=_text(settings, "CRAWLER") or _crawler(bool(url), folder),
        definition=defined,
        concurrency=concurrency,
        ahead=_ahead(settings, concurrency if url else 0),
        delay_s=_delay_s(settings, defined),
        checks_robots=(defined or {}).get("policy", {}).get("robots") != "ignore",
        job=folder,
    )


def check(settings: BaseSettings) -> None:
    """What can be known without a spider. Raises `ConfigError`."""
    _check_names(settings)
    url, data = _text(settings, "URL"), _text(settings, "DATA")
    if url and data:
        raise ConfigError("CRAWLGUIDE_URL and CRAWLGUIDE_DATA: expected one of them: a served guide, or one in here")
    if url and not url.startswith(("http://", "https://")):
        raise ConfigError(f"CRAWLGUIDE_URL: expected an address such as http://127.0.0.1:8080, got {url!r}")
    if crawl := _text(settings, "CRAWL"):
        _crawl(crawl)
    _definition(settings, bool(url))
    _ahead(settings, 0)


def _check_names(settings: BaseSettings) -> None:
    for name in settings:
        if str(name).startswith(PREFIX) and name not in NAMES:
            near = difflib.get_close_matches(str(name), NAMES, 1, 0.5)
            hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(NAMES)}"
            raise ConfigError(f"unknown setting {name}{hint}")


def _text(settings: BaseSettings, name: str) -> str:
    value = settings.get(PREFIX + name)
    if value is None:
        return ""
    if not isinstance(value, str | Path):
        raise ConfigError(f"{PREFIX}{name}: expected text, got {value!r}")
    return str(value)


def _crawl(name: str) -> str:
    try:
        return crawl_id(name)
    except MalformedRequest as wrong:
        raise ConfigError(f"CRAWLGUIDE_CRAWL: {wrong.message}") from None


def _crawler(served: bool, folder: Path | None) -> str:
    """One name for all runs of a job, so that a run gets back what a killed one held.

    A guide in this process has no other crawler.
    """
    if not served:
        return "scrapy"
    if folder is None:
        return f"scrapy-{uuid4().hex[:12]}"
    file = folder / "crawler"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(f"scrapy-{uuid4().hex[:12]}")
    return file.read_text().strip()


def _ahead(settings: BaseSettings, usual: int) -> int:
    """More of them hide the way to a server, fewer of them are in a better order."""
    value = settings.get(PREFIX + "AHEAD", usual)
    if not str(value).isdecimal():
        raise ConfigError(f"CRAWLGUIDE_AHEAD: expected an integer from 0, got {value!r}")
    return int(value)


def _delay_s(settings: BaseSettings, defined: dict[str, Any] | None) -> float:
    said = settings.getfloat("DOWNLOAD_DELAY") if _is_set(settings, "DOWNLOAD_DELAY") else DELAY_S
    return float((defined or {}).get("policy", {}).get("default_delay_s", said))


def _definition(settings: BaseSettings, served: bool) -> dict[str, Any] | None:
    """The crawl as it is to be: what Scrapy's settings say of it, and over that what is said of it here."""
    goal, own = _goal(settings), _dict(settings, "DEFINITION")
    if served and goal is None and own is None:
        return None
    said = {"policy": _policy(settings, served)} | ({} if goal is None else {"goal": goal})
    found = _merged(said, own or {})
    try:
        msgspec.convert(found, Definition)
    except msgspec.ValidationError as wrong:
        raise ConfigError(f"CRAWLGUIDE_DEFINITION or CRAWLGUIDE_GOAL: {wrong}") from None
    return found


def _policy(settings: BaseSettings, served: bool) -> dict[str, Any]:
    """Scrapy's words for politeness in those of a guide. A served guide goes for robots.txt itself."""
    agent = settings.get("ROBOTSTXT_USER_AGENT") or settings.get("USER_AGENT")
    words = str(agent or "").partition("/")[0].split() or ["Scrapy"]
    policy: dict[str, Any] = {"user_agent": words[0]}
    if not served:
        policy["robots"] = "crawler" if settings.getbool("ROBOTSTXT_OBEY") else "ignore"
    if _is_set(settings, "DOWNLOAD_DELAY"):
        policy["default_delay_s"] = settings.getfloat("DOWNLOAD_DELAY")
    if _is_set(settings, "CONCURRENT_REQUESTS_PER_DOMAIN"):
        policy["max_leases_per_host"] = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
    return policy


def _is_set(settings: BaseSettings, name: str) -> bool:
    """By the project, a spider or the command line, and not only by Scrapy."""
    return bool(settings.getpriority(name))


def _goal(settings: BaseSettings) -> dict[str, Any] | None:
    """Words alone are the topic."""
    said = settings.get(PREFIX + "GOAL")
    if isinstance(said, str) and said and not said.lstrip().startswith("{"):
        return {"topic": said}
    return _dict(settings, "GOAL")


def _dict(settings: BaseSettings, name: str) -> dict[str, Any] | None:
    """On the command line it is written as JSON."""
    said = settings.get(PREFIX + name)
    try:
        found = msgspec.json.decode(said) if isinstance(said, str) and said else said
    except msgspec.DecodeError:
        found = said
    if found is None or found == "":
        return None
    if not isinstance(found, dict):
        also = " or text" if name == "GOAL" else ""
        raise ConfigError(f"{PREFIX}{name}: expected a dictionary{also}, got {said!r}")
    return found


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {
        name: _merged(below[name], value) if isinstance(below.get(name), dict) and isinstance(value, dict) else value
        for name, value in above.items()
    }
    return below | both
