"""Does the guide harvest what an exact loop harvests?

    .venv/bin/python bench/relational.py [--web WEB] [--tasks 3] [--budget 2000] [--batch 1]

The exact loop knows only what a crawler knows and re-scores its whole frontier after every fetch:
(relevant parents + 1/2) / (parents + 2), the earliest discovered among equals. The guide reads the heads of queues
whose priorities were written at discovery and by `rank`. Same web, seeds, labels and budget.
WEB is any web of the lab: a folder with a recorded one, or synthetic[:option=value,…].
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.lab import web as webs
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.pages import Page, Task, Web

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "webs" / "docsweb"


def canonical(url: str) -> str | None:
    try:
        return urls.canonical(url)
    except UrlError:
        return None


def exact(web: Web, task: Task, seeds: Sequence[str], budget: int) -> list[bool]:
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
        harvest.append(web.is_relevant(task, url))
        for target in dict.fromkeys(canonical(link.url) for link in web.fetch(url).links):
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


def guided(web: Web, task: Task, seeds: Sequence[str], budget: int, batch: int) -> list[bool]:
    """The same through ask and tell."""
    policy = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
    policy |= {"unreliable_threshold": 1}
    harvest: list[bool] = []
    who = {"mcp_version": "2025-11", "crawler_id": "bench"}
    with Guide.open(":memory:", clock=ManualClock()) as guide:
        guide.define("default", {"strategy": {"kind": "relational"}, "policy": policy})
        guide.seed("default", list(seeds))
        while len(harvest) < budget:
            wanted = min(batch, budget - len(harvest))
            assigned = guide.ask({**who, "budget": {"max_urls": wanted}})["assigned_urls"]
            if not assigned:
                break
            pages = [web.fetch(one["url"]) for one in assigned]
            relevant = [web.is_relevant(task, one["url"]) for one in assigned]
            harvest += relevant
            fetches = [
                {"url": page.url, "status": page.status or 404, "relevance": float(good), "outlinks": outlinks(page)}
                for page, good in zip(pages, relevant, strict=True)
            ]
            guide.tell({**who, "fetches": fetches})
    return harvest


def outlinks(page: Page) -> list[dict[str, object]]:
    return [{"url": link.url, "anchor": link.anchor, "position": link.position} for link in page.links]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--web", default=str(SHARED))
    arguments.add_argument("--tasks", type=int, default=3)
    arguments.add_argument("--budget", type=int, default=2_000)
    arguments.add_argument("--batch", type=int, default=1)
    options = arguments.parse_args()
    web = webs.open(options.web)
    print(f"{'task':24} {'exact':>7} {'guide':>7} {'points':>7} {'s exact':>8} {'s guide':>8}")
    for task in web.tasks()[: options.tasks]:
        seeds = task.seeds.get("portal") or task.seeds["far"]
        began = time.perf_counter()
        first = exact(web, task, seeds, options.budget)
        middle = time.perf_counter()
        second = guided(web, task, seeds, options.budget, options.batch)
        ended = time.perf_counter()
        rates = sum(first) / options.budget, sum(second) / options.budget
        times = f"{middle - began:8.1f} {ended - middle:8.1f}"
        print(f"{task.name:24} {rates[0]:7.4f} {rates[1]:7.4f} {100 * (rates[1] - rates[0]):+7.2f} {times}")


if __name__ == "__main__":
    main()
