"""Of crawls that stop where the estimate says that a share is found: which share was really found?

    .venv/bin/python -m bench.stopping [--webs ../shared/data/webs/docsweb …] [--tasks 3] [--budget 100000]
                                       [--feedback label]

`layered` crawls each task from its seeds, and after every answer the estimator of the built-in crawler
(`crawlguide/crawler/estimate.py`) says which share is found. The crawl goes on until that is 95 %, or the budget is
spent. Truth is the share of the relevant pages that lie within reach of the seeds. With `--feedback text` nobody knows
labels: guide and estimator have the guide's own judgement of each page.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.messages import MAX_OUTLINKS, VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage
from crawlguide.core.types import Page
from crawlguide.crawler.estimate import Estimator
from crawlguide.features.relevance import Judge
from crawlguide.lab import run as lab
from crawlguide.lab import web as webs
from crawlguide.lab.budgeted_web import BudgetedWeb

if TYPE_CHECKING:
    from crawlguide.core.messages import Assigned
    from crawlguide.crawler.estimate import Estimate
    from crawlguide.lab.pages import Page as Shown
    from crawlguide.lab.pages import Task, Web

SHARES = (0.8, 0.9, 0.95)
WEBS = [f"../shared/data/webs/{name}" for name in ("docsweb", "debpkg", "wikispeedia")]
CRAWL, CRAWLER = "stopping", "crawler"


@dataclass(frozen=True)
class Stop:
    """Where a crawl would have ended: after how many requests, what was said and what was true."""

    requests: int
    said: Estimate
    found: float  # share of the reachable relevant pages
    remaining: int

    @property
    def covered(self) -> bool:
        return self.said.low <= self.remaining <= self.said.high


class Crawl:
    """One crawl of one task, which notes its stops as it passes them."""

    def __init__(self, web: Web, task: Task, settings: lab.Settings) -> None:
        _, self._seeds = lab.seeds_of(web, task, settings.seeds_from)
        self._settings = settings
        self._reachable = len(web.reachable(self._seeds) & task.relevant)
        self._web = BudgetedWeb(web, task, self._seeds, settings.budget)
        self._definition = lab.definition(web, task, "layered", self._seeds, settings)
        self._judge = Judge(self._definition.goal)
        self._estimator = Estimator()

    def stops(self) -> list[Stop]:
        """One for each share; where the budget ended first, the end."""
        passed: list[Stop] = []
        with lab.guide("layered", self._settings.seed, self._settings) as (guide, clock):
            guide.define(CRAWL, self._definition)
            guide.seed(CRAWL, list(self._seeds))
            while self._web.left and len(passed) < len(SHARES):
                budget = BudgetMessage(min(self._settings.batch, self._web.left))
                urls = guide.ask(AskMessage(VERSION, CRAWLER, budget, crawl_id=CRAWL)).assigned_urls
                if not urls:
                    break
                for part in lab.parts([self._fetched(one) for one in urls]):
                    guide.tell(ReportMessage(VERSION, CRAWLER, part, CRAWL))
                if clock is not None:
                    clock.advance(lab.TURN_S)
                here = self._here(queued(guide))
                passed += [here for share in SHARES[len(passed) :] if here.said.share >= share]
            last = self._here(queued(guide))
        return passed + [last] * (len(SHARES) - len(passed))

    def _fetched(self, one: Assigned) -> Fetch:
        page = self._web.fetch(one.url)
        relevance = self._relevance(page)
        self._estimator.fetched(one.p, relevance)
        return Fetch(
            url=one.url, status=page.status or None, error=page.error, bytes=page.size or None, relevance=relevance,
            title=page.title or None, text=page.text or None, outlinks=outlinks(page),
        )  # fmt: skip

    def _relevance(self, page: Shown) -> float:
        if self._settings.feedback == "label":
            return self._web.label(page.url)
        return self._judge.judge(Page(page.url, page.title, page.text, status=page.status))

    def _here(self, waiting: int) -> Stop:
        found = sum(self._web.relevant)
        said = self._estimator.estimate(waiting)
        return Stop(len(self._web.relevant), said, found / max(self._reachable, 1), self._reachable - found)


def outlinks(page: Shown) -> list[Outlink]:
    """All that a message may hold; with the lab's bound of 2,000 some pages would be out of reach."""
    if page.redirected_to:
        return lab.outlinks(page)
    return [Outlink(link.url, link.anchor, position=link.position) for link in page.links[:MAX_OUTLINKS]]


def queued(guide: lab.CrawlerGuide) -> int:
    """How many URLs wait, by the statistics that any crawler may ask for."""
    return int(guide.stats(CRAWL)["crawls"][CRAWL]["queued"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webs", nargs="*", default=WEBS)
    parser.add_argument("--tasks", type=int, default=0, help="of each web, evenly chosen; 0: all")
    parser.add_argument("--budget", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--feedback", choices=("label", "text"), default="label")
    given = parser.parse_args()
    settings = lab.Settings(budget=given.budget, batch=given.batch, feedback=given.feedback)
    for name in given.webs:
        web = webs.open(name)
        tasks = web.tasks()
        chosen = tasks[:: -(-len(tasks) // given.tasks)] if given.tasks else tasks
        crawls = []
        for task in chosen:
            crawls.append(Crawl(web, task, settings).stops())
            print(f"{web.name} {task.name}: " + "; ".join(map(told, crawls[-1])), flush=True)
        print(table(web.name, crawls), flush=True)


def told(stop: Stop) -> str:
    said = stop.said
    return (
        f"{stop.found:.1%} found after {stop.requests:,} ({said.share:.1%} said,"
        f" {said.remaining:.0f} [{said.low:.0f}, {said.high:.0f}] left, truly {stop.remaining})"
    )


def table(web: str, crawls: list[list[Stop]]) -> str:
    """One row for each share."""
    rows = [f"| {web}, {len(crawls)} tasks: stopped at | found, mean ± deviation (least) | requests | interval held |"]
    rows.append("|---|---|---|---|")
    for share, stops in zip(SHARES, zip(*crawls, strict=True), strict=True):
        found = 100 * np.array([stop.found for stop in stops])
        requests = np.median([stop.requests for stop in stops])
        held = np.mean([stop.covered for stop in stops])
        spread = f"{found.mean():.1f} ± {found.std():.1f} ({found.min():.1f})"
        rows.append(f"| {share:.0%} | {spread} | {requests:,.0f} | {held:.0%} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
