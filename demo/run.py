"""The main job in a minute: a guide steers two small crawlers over a tiny web on this machine.

    make demo
    python -m demo.run 40    # with another number of fetches

Four sites on loopback ports, some pages about databases and most about other things. The crawlers fetch only what
the guide tells them to, and report what they found; at the end the harvest is shown beside what a crawler without a
guide would expect.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from demo.web import TinyWeb
from rich.console import Console
from rich.live import Live
from rich.table import Table

BUDGET, DELAY_S = 120, 0.05
KEYWORDS = ["database", "index", "transaction", "query"]


class Links(HTMLParser):
    """Links with their words, the title, and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[dict[str, Any]] = []
        self.title, self.text, self._in = "", "", ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._in = tag
        href = dict(attributes).get("href")
        if tag == "a" and href:
            self.links.append({"url": href, "anchor": "", "position": len(self.links)})

    def handle_data(self, data: str) -> None:
        if self._in == "a" and self.links:
            self.links[-1]["anchor"] += data.strip()
        elif self._in == "title":
            self.title += data.strip()
        else:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag == self._in else self._in


class Crawler(threading.Thread):
    """Asks, waits as told, fetches, tells; until the guide has nothing more or the budget is spent."""

    def __init__(self, name: str, guide: str, budget: int, spent: list[int]) -> None:
        super().__init__(name=name, daemon=True)
        self.guide, self.budget, self.spent = guide, budget, spent

    def run(self) -> None:
        with suppress(OSError):  # the guide is gone: somebody has ended the demo
            self.crawl()

    def crawl(self) -> None:
        told: list[dict[str, Any]] = []
        while len(self.spent) < self.budget:
            question = self.message(budget={"max_urls": 5}, context={"recent_history": told})
            answer = post(self.guide, "/v1/next", question)
            told = [self.fetched(one, time.monotonic()) for one in answer["assigned_urls"]]
            if not told:
                if answer["metadata"]["crawl_state"] in {"exhausted", "finished"}:
                    return
                time.sleep(answer["retry_after_ms"] / 1_000)
        post(self.guide, "/v1/report", self.message(fetches=told))

    def message(self, **parts: Any) -> dict[str, Any]:
        return {"mcp_version": "2025-11", "crawler_id": self.name, "crawl_id": "demo", **parts}

    def fetched(self, one: dict[str, Any], received: float) -> dict[str, Any]:
        time.sleep(max(0.0, received + one["not_before_ms"] / 1_000 - time.monotonic()))
        self.spent.append(1)
        began = time.monotonic()
        try:
            with urllib.request.urlopen(one["url"], timeout=5) as reply:
                body, status = reply.read(), reply.status
        except HTTPError as refused:
            body, status = b"", refused.code
        page = Links()
        page.feed(body.decode())
        return {
            "url": one["url"], "status": status, "elapsed_ms": (time.monotonic() - began) * 1_000, "bytes": len(body),
            "title": page.title, "text": page.text, "outlinks": page.links,
        }  # fmt: skip


def post(guide: str, path: str, message: Any, method: str = "POST") -> Any:
    request = urllib.request.Request(guide + path, json.dumps(message).encode(), method=method)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def started(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The service, on a free port."""
    ready = folder / "ready.json"
    command = [str(Path(sys.executable).with_name("crawlguide")), "serve", "--data", ":memory:", "--port", "0"]
    # in a session of its own: Ctrl-C is for this program, which ends the service when its crawlers have stopped
    service = subprocess.Popen([*command, "--ready-file", str(ready)], start_new_session=True)
    while not ready.exists():
        if service.poll() is not None:
            sys.exit("the service did not start")
        time.sleep(0.05)
    return service, f"http://127.0.0.1:{json.loads(ready.read_text())['port']}"


def progress(stats: dict[str, Any]) -> Table:
    table = Table(title="crawlguide demo")
    for name in ("fetched", "on topic", "harvest", "waiting", "leased", "hosts"):
        table.add_column(name, justify="right")
    fetched, relevant = stats["fetches"], stats["relevant"]
    rate = f"{100 * relevant / fetched:.0f} %" if fetched else "-"
    table.add_row(*map(str, (fetched, relevant, rate, stats["queued"], stats["leased"], stats["hosts"])))
    return table


def crawled(guide: str, web: TinyWeb, budget: int, console: Console) -> dict[str, Any]:
    """Two crawlers, watched until they stop."""
    goal = {"topic": "database internals", "keywords": KEYWORDS}
    policy = {"robots": "ignore", "default_delay_s": DELAY_S, "strict": True}
    policy["traps"] = False  # pages made of a dozen words look like one
    post(guide, "/v1/crawls/demo", {"goal": goal, "policy": policy}, "PUT")
    post(guide, "/v1/crawls/demo/seeds", {"urls": [site + "/" for site in web.sites]})
    spent: list[int] = []
    crawlers = [Crawler(name, guide, budget, spent) for name in ("c-901", "c-902")]
    for crawler in crawlers:
        crawler.start()
    with Live(console=console, refresh_per_second=8) as live:
        while any(crawler.is_alive() for crawler in crawlers):
            live.update(progress(numbers(guide)))
            time.sleep(0.1)
        live.update(progress(numbers(guide)))
    return numbers(guide)


def numbers(guide: str) -> dict[str, Any]:
    with urllib.request.urlopen(guide + "/v1/stats?crawl_id=demo", timeout=5) as reply:
        found: dict[str, Any] = json.load(reply)["crawls"]["demo"]
    return found


def summary(stats: dict[str, Any], web: TinyWeb, console: Console) -> None:
    rate = stats["relevant"] / max(stats["fetches"], 1)
    console.print(f"{web.pages} pages on {len(web.sites)} sites, {100 * web.share:.0f} % of them about databases.")
    console.print(f"{stats['fetches']} fetched, {stats['relevant']} judged on topic: a harvest of {100 * rate:.0f} %.")
    console.print(f"Shortest time between two requests to one site: {1_000 * web.shortest_gap():.0f} ms")
    console.print(f"(asked for: {1_000 * DELAY_S:.0f} ms).")


def main(budget: int) -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as folder, TinyWeb() as web:
        service, guide = started(Path(folder))
        try:
            summary(crawled(guide, web, budget, console), web, console)
        except KeyboardInterrupt:
            console.print("stopped")
        finally:
            service.terminate()
            service.wait(20)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else BUDGET)
