"""Does the corridor harvest what an exact loop harvests?

    .venv/bin/python bench/relational.py [--web DIR] [--tasks N] [--budget 2000] [--batch 1]

The exact loop knows only what a crawler knows and re-scores its whole frontier after every fetch:
(relevant parents + 1/2) / (parents + 2), the earliest discovered among equals. The corridor reads heads of queues
whose priorities were written at discovery and by `rank`. Same web, seeds, labels and budget.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.testing import ManualClock

MOST_LINKS = 2_000
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "webs" / "docsweb"


@dataclass
class Web:
    """A recorded web: a URL in, the links a crawler would have seen out; None for a dead end."""

    url: list[str]
    row: dict[str, int]
    links: list[tuple[Any, Any]]

    def fetch(self, url: str) -> list[tuple[str, str, int]] | None:
        row = self.row.get(url)
        if row is None:
            return None
        found: list[tuple[str, str, int]] = []
        for table, at in self.links:
            part = table.slice(at[row], at[row + 1] - at[row]).to_pydict()
            targets = part["url"] if "url" in part else [self.url[number] for number in part["dst"]]
            found += zip(targets, part["anchor"], part["pos"], strict=True)
        return sorted(found, key=lambda link: link[2])[:MOST_LINKS]


def opened(folder: Path) -> Web:
    pages: list[str] = pq.read_table(folder / "nodes.parquet", columns=["url"])["url"].to_pylist()
    links = []
    for name in ("edges.parquet", "external.parquet"):
        table = pq.read_table(folder / name)
        links.append((table, np.searchsorted(table["src"].to_numpy(), np.arange(len(pages) + 1))))
    return Web(pages, {url: row for row, url in enumerate(pages)}, links)


def canonical(url: str) -> str | None:
    try:
        return urls.canonical(url)
    except UrlError:
        return None


def exact(web: Web, relevant: set[str], seeds: list[str], budget: int) -> list[bool]:
    """Whether each fetch was relevant, in order."""
    known = {url: number for number, url in enumerate(dict.fromkeys(seeds))}
    parents, good, waiting = [1.0] * len(known), [1.0] * len(known), [True] * len(known)
    names, harvest = list(known), []
    for _ in range(budget):
        score = (np.array(good) + 0.5) / (np.array(parents) + 2.0)
        score[~np.array(waiting)] = -1.0
        best = int(score.argmax())
        if score[best] < 0:
            break
        waiting[best] = False
        url = names[best]
        harvest.append(url in relevant)
        for target in dict.fromkeys(canonical(link[0]) for link in web.fetch(url) or ()):
            if target is None or target == url:
                continue
            if target not in known:
                known[target] = len(names)
                names.append(target)
                parents.append(0.0)
                good.append(0.0)
                waiting.append(True)
            parents[known[target]] += 1.0
            good[known[target]] += harvest[-1]
    return harvest


def corridor(web: Web, relevant: set[str], seeds: list[str], budget: int, batch: int, strategy: str) -> list[bool]:
    """The same through ask and tell."""
    policy = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
    policy |= {"unreliable_threshold": 1}
    harvest: list[bool] = []
    who = {"mcp_version": "2025-11", "crawler_id": "bench"}
    with Guide.open(":memory:", clock=ManualClock()) as guide:
        guide.define("default", {"strategy": {"kind": strategy}, "policy": policy})
        guide.seed("default", list(seeds))
        while len(harvest) < budget:
            wanted = min(batch, budget - len(harvest))
            given = guide.ask({**who, "budget": {"max_urls": wanted}})["assigned_urls"]
            if not given:
                break
            fetches = []
            for one in given:
                links = web.fetch(one["url"])
                harvest.append(one["url"] in relevant)
                out = [{"url": url, "anchor": anchor, "position": place} for url, anchor, place in links or ()]
                status = 404 if links is None else 200
                fetches.append({"url": one["url"], "status": status, "relevance": float(harvest[-1]), "outlinks": out})
            guide.tell({**who, "fetches": fetches})
    return harvest


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--web", type=Path, default=SHARED)
    arguments.add_argument("--tasks", type=int, default=3)
    arguments.add_argument("--budget", type=int, default=2_000)
    arguments.add_argument("--batch", type=int, default=1)
    given = arguments.parse_args()
    web = opened(given.web)
    tasks = json.loads((given.web / "tasks.json").read_text())[: given.tasks]
    print(f"{'task':24} {'exact':>7} {'corridor':>9} {'points':>7} {'s exact':>8} {'s corridor':>10}")
    for task in tasks:
        relevant = {web.url[row] for row in task["relevant_ids"]}
        seeds = [found for url in task.get("seeds_portal", task["seeds_far"]) if (found := canonical(url))]
        began = time.perf_counter()
        first = exact(web, relevant, seeds, given.budget)
        middle = time.perf_counter()
        second = corridor(web, relevant, seeds, given.budget, given.batch, "relational")
        ended = time.perf_counter()
        rates = sum(first) / given.budget, sum(second) / given.budget
        points = 100 * (rates[1] - rates[0])
        times = f"{middle - began:8.1f} {ended - middle:10.1f}"
        print(f"{task['task']:24} {rates[0]:7.4f} {rates[1]:9.4f} {points:+7.2f} {times}")


if __name__ == "__main__":
    main()
