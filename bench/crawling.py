"""Pages fetched and parsed in a CPU second: `crawlguide crawl` beside Scrapy, on one served web in one run.

    .venv/bin/python -m bench.crawling [--pages 1500] [--concurrency 16] [--rounds 3] [--without-scrapy]

Both crawl all of the same web on loopback, without delays, with robots.txt obeyed and as many requests at once; both
read title, text and links with their anchors, and write a line of JSON a page. Ours also judges every page against a
topic, and orders URLs by it. CPU time is that of the crawler's process, from its first request to its last; the web is
served by another process. Rounds alternate, and the best of each counts: others only ever add to CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop
from bench.peers import environments

from crawlguide.crawler import run as running
from crawlguide.crawler.loop import CrawlLoop
from crawlguide.crawler.options import CrawlOptions
from crawlguide.crawler.view import Plain
from crawlguide.guide.local import LocalGuide

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ROOT = Path(__file__).resolve().parents[1]
WEB = "synthetic:pages={pages},hosts=20,links=40,topics=4,slow=0,failing=0,traps=0,mirrors=0,robots=0.3"
SEED = "http://www.harbour-review.example/"
LIMIT_S = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_500)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-scrapy", action="store_true")
    parser.add_argument("--proxy", help=argparse.SUPPRESS)  # crawl it here, and print the figures
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.proxy:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the command does
            print(json.dumps(runner.run(ours(given.proxy, given.pages, given.concurrency, full=given.full))))
        return
    with served(given.pages) as proxy:
        print(table(rounds(proxy, given)))


def rounds(proxy: str, given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The best of each, by pages in a CPU second."""
    us = [sys.executable, "-m", "bench.crawling", "--proxy", proxy, "--pages", str(given.pages)]
    us += ["--concurrency", str(given.concurrency)]
    who = {"crawlguide crawl": us, "with WARC and Parquet": [*us, "--full"]}
    if not given.without_scrapy:
        them = [str(environments.python("scrapy")), "-m", "bench.peers.scrapy_crawl", proxy, SEED]
        who["Scrapy"] = [*them, str(given.pages), str(given.concurrency)]
    best: dict[str, dict[str, Any]] = {}
    for _ in range(given.rounds):
        for name, command in who.items():
            found = measured(command)
            if name not in best or rate(found) > rate(best[name]):
                best[name] = found
    return best


def measured(command: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TMPDIR": folder, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            command, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=LIMIT_S
        )
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def rate(found: dict[str, Any]) -> float:
    return float(found["pages"] / found["cpu_s"])


def asked(found: dict[str, Any]) -> float:
    return float(found["requests"] / found["cpu_s"])


def table(best: dict[str, dict[str, Any]]) -> str:
    rows = ["| crawler | requests | pages | CPU s | requests, pages in a CPU second | of Scrapy's | guide's share |"]
    rows.append("|---|---:|---:|---:|---:|---:|---:|")
    for name, found in best.items():
        peer = best.get("Scrapy")
        ratio = f"{asked(found) / asked(peer):.2f}, {rate(found) / rate(peer):.2f}" if peer else ""
        share = f"{found['guide_cpu_s'] / found['cpu_s']:.0%}" if "guide_cpu_s" in found else ""
        counts = f"{found['requests']:,} | {found['pages']:,} | {found['cpu_s']:.2f}"
        rows.append(f"| {name} | {counts} | {asked(found):.0f}, {rate(found):.0f} | {ratio} | {share} |")
    return "\n".join(rows)


@contextmanager
def served(pages: int) -> Iterator[str]:
    """A web in a process of its own."""
    command = [sys.executable, "-m", "crawlguide", "lab", "serve", "--web", WEB.format(pages=pages), "--port", "0"]
    with subprocess.Popen([*command, "--slowest-s", "0"], stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline() if process.stderr else ""
            yield next(word for word in said.replace(",", " ").split() if word.startswith("http://"))
        finally:
            process.terminate()


# Ours, in a process of its own.


class Stepped:
    """An awaitable whose every step is timed, in CPU time of this thread."""

    cpu_s = 0.0  # of all of them

    def __init__(self, work: Any) -> None:
        self._steps = work.__await__()

    def __await__(self) -> Generator[Any, Any, Any]:
        value = None
        while True:
            began = time.thread_time()
            try:
                waited = self._steps.send(value)
            except StopIteration as end:
                return end.value
            finally:
                Stepped.cpu_s += time.thread_time() - began
            try:
                value = yield waited
            except BaseException as wrong:  # noqa: BLE001 - whatever it is, it is the guide's
                waited = self._steps.throw(wrong)


def _timed(method: Any) -> Any:
    return lambda *arguments: Stepped(method(*arguments))


async def ours(proxy: str, pages: int, concurrency: int, *, full: bool) -> dict[str, Any]:
    for name in ("_ask", "_tell"):
        setattr(LocalGuide, name, _timed(getattr(LocalGuide, name)))
    spent: dict[str, float] = {}
    run = CrawlLoop.run

    async def timed(loop: CrawlLoop) -> str:
        Stepped.cpu_s, process, thread = 0.0, time.process_time(), time.thread_time()
        why = await run(loop)
        spent["cpu_s"] = time.process_time() - process
        elsewhere = spent["cpu_s"] - (time.thread_time() - thread)  # threads: the guide's disk
        spent["guide_cpu_s"] = Stepped.cpu_s + elsewhere
        return why

    CrawlLoop.run = timed  # type: ignore[method-assign, assignment]
    options = CrawlOptions(
        seeds=(SEED,), topic="garden plants", out=Path("out"), max_pages=pages, concurrency=concurrency, proxy=proxy,
        delay_s=0.0, warc=full, parquet=full,
    )  # fmt: skip
    outcome = await running.crawl(options, Plain(lambda text: print(text, file=sys.stderr)))
    return {"requests": outcome.tally.requests, "pages": outcome.tally.pages, **spent}


if __name__ == "__main__":
    main()
