"""Real crawls of Scrapy, each in a process of its own, over webs that are dictionaries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from crawlguide.lab.pages import Link, Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.lab.pages import Task, Web
    from crawlguide.lab.serving import Request, Served

SCRAPY = str(Path(sys.executable).with_name("scrapy"))
WITHIN_S = 110
TIMER_S = 0.02  # by so much the first and the last of several may differ in how late they arrive
ADDON = {"ADDONS": {"crawlguide.integrations.scrapy.Addon": 500}}
QUIET = {"REMOTE_CONTROL_ENABLED": False, "TELNETCONSOLE_ENABLED": False}
FOLLOW = """
    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
"""


@dataclass
class TinyWeb:
    """Pages with their links; a number is a status, a text beginning with > leads elsewhere."""

    pages: Mapping[str, Sequence[str] | int | str]
    name: str = "tiny"
    robots: Mapping[str, str] = field(default_factory=dict)

    def tasks(self) -> list[Task]:
        return []

    def fetch(self, url: str) -> Page:
        host, _, path = url.removeprefix("http://").partition("/")
        found = self.pages.get(url)
        if path == "robots.txt" and host in self.robots:
            return Page(url, 200, text=self.robots[host])
        if found is None or isinstance(found, int):
            return Page(url, found or 404)
        if isinstance(found, str):
            return Page(url, 301, redirected_to=found.removeprefix(">"))
        links = [Link(to, f"about {to}", position) for position, to in enumerate(found)]
        return Page(url, 200, f"page {path}", "words of a page", 100, "en", tuple(links))

    def is_relevant(self, task: Task, url: str) -> bool:
        return False

    def waste(self, url: str) -> str | None:
        return None

    def reachable(self, seeds: object) -> frozenset[str]:
        return frozenset(self.pages)


def site(host: str, count: int) -> dict[str, list[str]]:
    """A home page that leads to so many others."""
    home = f"http://{host}/"
    others = [f"{home}{number}" for number in range(count)]
    return {home: others, **{url: [] for url in others}}


@dataclass(frozen=True)
class Crawled:
    """What is left of a crawl."""

    items: list[dict[str, Any]]
    said: str
    code: int

    @property
    def stats(self) -> str:
        return self.said.partition("Dumping Scrapy stats:")[2]


def spider(folder: Path, start: Sequence[str], body: str = FOLLOW, **attributes: Any) -> Path:
    """A file with one spider."""
    lines = [f"    {name} = {value!r}" for name, value in attributes.items()]
    head = [
        "import scrapy",
        "",
        "class Tried(scrapy.Spider):",
        '    name = "tried"',
        f"    start_urls = {list(start)!r}",
    ]
    (file := folder / "tried.py").write_text("\n".join([*head, *lines, body]))
    return file


def command(file: Path, settings: Mapping[str, Any]) -> list[str]:
    """Items go to a file beside the spider; settings are handed over as a module."""
    words = [SCRAPY, "runspider", str(file), "-o", str(file.with_name("items.jsonl"))]
    module = "\n".join(f"{name} = {value!r}" for name, value in (QUIET | ADDON | dict(settings)).items())
    file.with_name("tried_settings.py").write_text(module)
    return words


def environment(served: Served | None, folder: Path) -> dict[str, str]:
    proxy = {} if served is None else {"http_proxy": f"http://127.0.0.1:{served.port}"}
    module = {"SCRAPY_SETTINGS_MODULE": "tried_settings"} if (folder / "tried_settings.py").exists() else {}
    return os.environ | {"PYTHONPATH": str(folder), "NO_COLOR": "1"} | proxy | module


def run(file: Path, served: Served, **settings: Any) -> Crawled:
    """One crawl to its end."""
    words, folder = command(file, settings), file.parent
    ended = subprocess.run(
        words,
        cwd=folder,
        env=environment(served, folder),
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    return Crawled(items(folder), ended.stderr, ended.returncode)


def items(folder: Path) -> list[dict[str, Any]]:
    file = folder / "items.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def asked(served: Served | Sequence[Request], method: str = "GET") -> list[str]:
    """Every request for a page, in order."""
    log = served if isinstance(served, list) else served.log  # type: ignore[union-attr]
    return [one.url for one in log if one.method == method and not one.url.endswith("/robots.txt")]


def keeps_delay(log: Sequence[Request], delay_s: float) -> bool:
    """By when requests arrived at each host: on average, and each with room for a machine that is busy elsewhere."""
    by_host: dict[str, list[float]] = {}
    for one in log:
        by_host.setdefault(one.url.split("/")[2], []).append(one.at)
    several = [times for times in by_host.values() if len(times) > 2]
    assert several
    gaps = [[later - before for before, later in pairwise(times)] for times in several]
    return min(map(min, gaps)) > delay_s / 2 and min(map(mean, gaps)) > delay_s - TIMER_S


def violations(web: Web, log: Sequence[Request]) -> list[str]:
    return [url for url in asked(list(log)) if web.forbidden(url)]  # type: ignore[attr-defined]
