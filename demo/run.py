"""The main job in a minute: one guide steers the built-in crawler and a Scrapy spider over a small web.

    make demo
    python -m demo.run 200    # with another number of pages

The web is on this machine, with a dozen hosts: some are slow, some fail, some forbid a part of themselves, and there
are crawler traps. Both crawlers look for one topic in it. Then the built-in crawler looks for the same topic breadth
first, as a crawler without a guide does. What each found is counted where the pages are served.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table

from crawlguide import Client, lab
from crawlguide.crawler.plot import plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crawlguide.lab.pages import Task
    from crawlguide.lab.serving import Request, Served
    from crawlguide.lab.synthetic import SyntheticWeb

PAGES, DELAY_S, TOPIC = 400, 0.1, "databases-sql"
SHOWN_WIDTH = 60
STARTS_WITHIN_S = 300.0  # on a fresh machine kernels are compiled first
CRAWLGUIDE = str(Path(sys.executable).with_name("crawlguide"))
SCRAPY = str(Path(sys.executable).with_name("scrapy"))


@dataclass(frozen=True)
class Harvest:
    """What one way of crawling came to, as the web saw it."""

    pages: int
    relevant: int
    forbidden: int
    traps: int
    shortest_gap_s: float
    curve: list[tuple[int, float]]


@dataclass(frozen=True)
class Demo:
    """The web, what is looked for in it, and where results are kept."""

    web: SyntheticWeb
    served: Served
    task: Task
    folder: Path
    console: Console

    @property
    def seeds(self) -> Sequence[str]:
        return self.task.seeds["portal"]

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.served.port}"

    def guided(self, pages: int) -> Harvest:
        """The built-in crawler, whose view is shown, and a Scrapy spider behind it share one guide."""
        first = len(self.served.log)
        with self._guide() as guide:
            self.console.print(f"The dashboard of the guide, while it runs: {guide}/crawls/demo")
            with Client(guide) as client:
                policy = {"robots": "crawler", "default_delay_s": DELAY_S, "strict": True}
                client.define("demo", {"goal": {"topic": self.task.name}, "policy": policy})
                client.seed("demo", self.seeds)
            with self._spider(guide, pages // 2) as spider:
                self._crawl("guided", pages - pages // 2, "--guide", guide, "--crawl", "demo")
                spider.wait(60)
        return self._harvest(self.served.log[first:])

    def breadth_first(self, pages: int) -> Harvest:
        """The same crawler in the order in which links are found."""
        first = len(self.served.log)
        said = ("--strategy", "breadth-first", "--topic", self.task.name, "--delay", str(DELAY_S))
        self._crawl("breadth-first", pages, *said)
        return self._harvest(self.served.log[first:])

    def _crawl(self, name: str, pages: int, *options: str) -> None:
        command = [CRAWLGUIDE, "crawl", *self.seeds, "--proxy", self.proxy, "--max-pages", str(pages), *options]
        seen = (
            None if name == "guided" else subprocess.DEVNULL
        )  # the live view; its summary speaks of a guide that ends
        ended = subprocess.run(
            [*command, "--out", str(self.folder / name)], check=False, stdout=subprocess.DEVNULL, stderr=seen
        )
        if ended.returncode < 0 or ended.returncode == 130:
            raise KeyboardInterrupt
        if ended.returncode:
            sys.exit(f"the {name} crawl ended with {ended.returncode}")

    @contextmanager
    def _spider(self, guide: str, pages: int) -> Iterator[subprocess.Popen[bytes]]:
        told = {"DEMO_GUIDE": guide, "DEMO_PAGES": str(pages), "DEMO_SEEDS": " ".join(self.seeds)}
        items = ["runspider", "-O", str(self.folder / "scrapy.jsonl"), str(Path(__file__).with_name("spider.py"))]
        with (self.folder / "scrapy.log").open("wb") as log:
            environment = os.environ | told | {"http_proxy": self.proxy, "no_proxy": "127.0.0.1"}
            spider = subprocess.Popen([SCRAPY, *items], env=environment, stdout=log, stderr=log, start_new_session=True)
            with _ending(spider):
                yield spider

    @contextmanager
    def _guide(self) -> Iterator[str]:
        """A server with a data folder of its own, on a free port."""
        ready = self.folder / "ready.json"
        command = [CRAWLGUIDE, "serve", "--data", str(self.folder / "guide"), "--port", "0", "--ready-file", str(ready)]
        # in a session of its own: Ctrl-C is for this program, which ends the server when its crawlers have stopped
        with (self.folder / "guide.log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            with _ending(server):
                until = time.monotonic() + STARTS_WITHIN_S
                while not ready.exists():
                    if server.poll() is not None or time.monotonic() > until:
                        sys.exit(f"the guide did not start; it says: {(self.folder / 'guide.log').read_text()}")
                    time.sleep(0.05)
                yield f"http://127.0.0.1:{msgspec.json.decode(ready.read_bytes())['port']}"

    def _harvest(self, log: Sequence[Request]) -> Harvest:
        pages = [request for request in log if not request.url.endswith("/robots.txt")]
        seen: set[str] = set()
        curve = [(0, 0.0)]
        for number, request in enumerate(pages, 1):
            if request.status == 200 and self.web.is_relevant(self.task, request.url):
                seen.add(request.url)
            curve.append((number, float(len(seen))))
        return Harvest(
            pages=len(pages),
            relevant=len(seen),
            forbidden=sum(self.web.forbidden(request.url) for request in pages),
            traps=sum(self.web.waste(request.url) == "trap" for request in pages),
            shortest_gap_s=_shortest_gap(log),
            curve=curve,
        )


def main(pages: int) -> None:
    console = Console()
    web = lab.synthetic.make(seed=7, pages=1_500, hosts=12, mirrors=1)
    task = next(task for task in web.tasks() if task.name == TOPIC)
    folder = Path(tempfile.mkdtemp(prefix="crawlguide-demo-"))
    with lab.served(web, slowest_s=0.5) as served:
        demo = Demo(web, served, task, folder, console)
        console.print(f"A web of {len(web):,} pages on {len(web.hosts)} hosts; {len(task.relevant)} are about {TOPIC}.")
        try:
            console.print(f"The built-in crawler and a Scrapy spider share a guide: {pages // 2} pages each,")
            console.print("and those that the spider has under way when it has them.")
            guided = demo.guided(pages)
            console.print("Now the same without guidance, which takes about as long: breadth first.")
            plain = demo.breadth_first(guided.pages)
        except KeyboardInterrupt:
            console.print(f"stopped; what there is lies in {folder}")
            return
    show(console, folder, guided, plain)


def show(console: Console, folder: Path, guided: Harvest, plain: Harvest) -> None:
    table = Table(title="what the web saw")
    for name in ("", "requests", "relevant", "forbidden", "in traps", "least delay"):
        table.add_column(name, justify="right" if name else "left")
    for name, one in (("guided", guided), ("breadth first", plain)):
        numbers = (one.pages, one.relevant, one.forbidden, one.traps, f"{1_000 * one.shortest_gap_s:.0f} ms")
        table.add_row(name, *map(str, numbers))
    for line in ["", *plot(guided.curve, SHOWN_WIDTH), ""]:
        console.print(line, highlight=False)
    console.print(table)
    console.print(f"Relevant: about {TOPIC}. Forbidden: by robots.txt. Least delay: between two requests to one host.")
    ratio = guided.relevant / max(plain.relevant, 1)
    console.print(f"{ratio:.1f} times as many relevant pages for the same number of requests.")
    console.print(f"Report, pages and WARC of the crawl: {folder / 'guided' / 'report.html'}")
    console.print('Try next: .venv/bin/crawlguide crawl example.org --topic "…" (docs/crawl.md);')
    console.print("  your own Scrapy project (docs/scrapy.md); which strategy finds most (docs/lab.md).")


def _shortest_gap(log: Sequence[Request]) -> float:
    """Seconds between the two closest requests to one host."""
    asked = defaultdict(list)
    for request in log:
        asked[request.url.split("/")[2]].append(request.at)
    gaps = [later - earlier for times in asked.values() for earlier, later in pairwise(sorted(times))]
    return min(gaps, default=float("inf"))


@contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else PAGES)
