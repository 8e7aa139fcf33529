"""How much more does Scrapy find with a guide than by itself, at the same number of requests?

    .venv/bin/python -m bench.scrapy_harvest [--web DIR | synthetic:pages=300] [--tasks 4] [--budget 1000] [--guide URL]

One spider that follows every link crawls a web of the lab over loopback HTTP: as Scrapy orders requests by default
(depth-first), breadth-first as its documentation sets it, and with the guide as an add-on. The guide is told the name
of the task and what pages say, never what is relevant. Requests are counted where they arrive, all of them: dead links,
redirects and failures cost as much as pages. No delay and no robots.txt, which a recorded web does not have.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlguide import lab
from crawlguide.core.urls import canonical
from crawlguide.lab.run import seeds_of
from crawlguide.lab.serving import plain_http

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.pages import Task, Web
    from crawlguide.lab.serving import Request, Served

QUEUE = "scrapy.squeues."
BREADTH_FIRST = {
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": f"{QUEUE}PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": f"{QUEUE}FifoMemoryQueue",
}
ORDERS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "breadth-first": BREADTH_FIRST,
    "guided": {"ADDONS": {"crawlguide.integrations.scrapy.Addon": 500}},
}
COMMON = {"LOG_LEVEL": "ERROR", "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": False, "REMOTE_CONTROL_ENABLED": False}
LONGEST_S = 900


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--web", default="synthetic:pages=300", help="a folder, or a synthetic web")
    parser.add_argument("--tasks", type=int, default=4, help="how many tasks, spread over those the web has")
    parser.add_argument("--budget", type=int, default=1_000, help="requests of each crawl")
    parser.add_argument("--guide", default="", help="a served guide; without it one in each crawler's process")
    parser.add_argument("--crawl", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.crawl:
        crawl(json.loads(options.crawl))
        return
    web = lab.web.open(options.web)
    print(f"Relevant pages among {options.budget} requests to {web.name}\n")
    print(f"| task | {' | '.join(ORDERS)} | guided / as it is | guided / breadth-first |\n|{'---|' * 6}", flush=True)
    rows = [row(web, task, options) for task in spread(web.tasks(), options.tasks)]
    line("mean", [statistics.mean(column) for column in zip(*rows, strict=True)])


def spread(tasks: Sequence[Task], most: int) -> list[Task]:
    """So many, from the first to the last."""
    count = min(most, len(tasks))
    return [tasks[number * len(tasks) // count] for number in range(count)]


def row(web: Web, task: Task, options: argparse.Namespace) -> list[float]:
    """Each order in turn on one task."""
    plain, wide, guided = (harvest(web, task, name, options) for name in ORDERS)
    found = [plain, wide, guided, guided / max(plain, 1), guided / max(wide, 1)]
    line(task.name, found)
    return found


def line(name: str, found: Sequence[float]) -> None:
    """Of the table."""
    counts, ratios = found[: len(ORDERS)], found[len(ORDERS) :]
    cells = [name, *(f"{count:.0f}" for count in counts), *(f"{ratio:.1f}" for ratio in ratios)]
    print(f"| {' | '.join(cells)} |", flush=True)


def harvest(web: Web, task: Task, name: str, options: argparse.Namespace) -> int:
    """How many relevant pages a crawl in a process of its own asks for."""
    _, seeds = seeds_of(web, task, "auto")
    most = options.budget + options.budget // 5  # some links are so broken that no server would count them
    settings = COMMON | ORDERS[name] | {"CLOSESPIDER_PAGECOUNT": most}
    if name == "guided":
        settings |= {"CRAWLGUIDE_GOAL": {"topic": task.name}}
        settings |= {"CRAWLGUIDE_URL": options.guide, "CRAWLGUIDE_CRAWL": task.name} if options.guide else {}
    with lab.served(web, slowest_s=0) as served:
        message = json.dumps({"seeds": [plain_http(url) for url in seeds], "settings": settings})
        command = [sys.executable, "-m", "bench.scrapy_harvest", "--crawl", message]
        proxy = os.environ | {"http_proxy": f"http://127.0.0.1:{served.port}"}
        began = time.perf_counter()
        subprocess.run(command, env=proxy, check=True, timeout=LONGEST_S, cwd=Path(__file__).parent.parent)
        return counted(web, task, served, options.budget, time.perf_counter() - began)


def counted(web: Web, task: Task, served: Served, budget: int, took_s: float) -> int:
    asked: list[Request] = served.log[:budget]
    print(f"  {len(asked)} requests in {took_s:.0f} s", file=sys.stderr)
    return len({url for request in asked if (url := relevant(web, task, request.url))})


def relevant(web: Web, task: Task, url: str) -> str:
    """The page as the web knows it, which may be by HTTPS; "": it is none that is looked for."""
    both = (canonical(form) for form in (url, "https" + url.removeprefix("http")))
    return next((form for form in both if web.is_relevant(task, form)), "")


def crawl(message: dict[str, Any]) -> None:
    """In the process of a crawler."""
    from scrapy import Spider  # noqa: PLC0415 - one reactor a process
    from scrapy.crawler import CrawlerProcess  # noqa: PLC0415
    from scrapy.linkextractors import LinkExtractor  # noqa: PLC0415

    class Everything(Spider):
        """Follows every link, and knows nothing."""

        name = "everything"
        start_urls = message["seeds"]
        links = LinkExtractor(deny_extensions=[])

        def parse(self, response: Any) -> Any:
            if "html" in str(response.headers.get("Content-Type")):
                yield from (response.follow(link) for link in self.links.extract_links(response))

    process = CrawlerProcess(message["settings"])
    process.crawl(Everything)
    process.start()


if __name__ == "__main__":
    main()
