"""What strategies cost, beside `relational` in the same run.

    .venv/bin/python bench/strategies.py [--strategies groups,bandit] [--urls 100000,1000000] [--rounds 200]

A frontier is filled through tells; then one crawler asks for ten URLs and tells ten pages of fifty links, again and
again, in turns with `relational`. Processor time of the guide: the median ask, the median tell, how many times those of
`relational` they are, and what a strategy adds for each link of a tell.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field

import numpy as np

from crawlguide import Guide
from crawlguide.testing import ManualClock

HOSTS, SECTIONS, LINKS, ASKED = 300, 6, 50, 10
WHO = {"mcp_version": "2025-11", "crawler_id": "bench"}
POLICY = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
ALL = "layered,groups,bandit,ucb,scorer,tres,opic,pagerank,in-degree,best-first-mean"


@dataclass
class Web:
    """Pages without end: some hosts are about the topic, all link mostly to their own. All links are new."""

    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    known: int = 0

    def page(self, url: str, links: int) -> dict[str, object]:
        host = int(url.removeprefix("https://h").partition(".")[0])
        abroad = self.chance.integers(0, HOSTS, 3)
        hosts = np.where(self.chance.random(links) < 0.8, host, self.chance.choice(abroad, links)).tolist()
        numbers = (self.known + np.arange(links)).tolist()
        self.known += links
        out = [{"url": address(at, number), "anchor": "more of it"} for at, number in zip(hosts, numbers, strict=True)]
        relevance = float(self.chance.random() < (0.6 if host % 10 == 0 else 0.05))
        return {"url": url, "status": 200, "relevance": relevance, "outlinks": out}


def address(host: int, number: int) -> str:
    return f"https://h{host}.example.org/part-{number % SECTIONS}/page-{number}.html"


def filled(strategy: str, urls: int) -> tuple[Guide, Web]:
    guide, web = Guide.open(":memory:", clock=ManualClock(), seed=1), Web()
    guide.define("default", {"strategy": {"kind": strategy}, "policy": POLICY, "goal": {"topic": "parts of pages"}})
    while web.known < urls:
        pages = [web.page(address(int(host), -1 - web.known), 500) for host in web.chance.integers(0, HOSTS, 10)]
        guide.tell({**WHO, "fetches": pages})
    return guide, web


def measured(strategy: str, urls: int, rounds: int) -> list[tuple[float, float]]:
    """The median ask and tell of `relational` and of a strategy, in microseconds of the processor, in turns."""
    both = [filled(kind, urls) for kind in ("relational", strategy)]
    costs: list[tuple[list[int], list[int]]] = [([], []), ([], [])]
    for _ in range(rounds):
        for (guide, web), (asks, tells) in zip(both, costs, strict=True):
            began = time.process_time_ns()
            given = guide.ask({**WHO, "budget": {"max_urls": ASKED}})["assigned_urls"]
            asks.append(time.process_time_ns() - began)
            told = {**WHO, "fetches": [web.page(one["url"], LINKS) for one in given]}
            began = time.process_time_ns()
            guide.tell(told)
            tells.append(time.process_time_ns() - began)
    for guide, _ in both:
        guide.close()
    return [(float(np.median(asks)) / 1_000, float(np.median(tells)) / 1_000) for asks, tells in costs]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--strategies", default=ALL)
    arguments.add_argument("--urls", default="100000,1000000")
    arguments.add_argument("--rounds", type=int, default=200)
    given = arguments.parse_args()
    print(f"{'strategy':16} {'URLs':>9} {'ask µs':>8} {'times':>6} {'tell µs':>8} {'times':>6} {'link +µs':>9}")
    for urls in map(int, given.urls.split(",")):
        for strategy in given.strategies.split(","):
            plain, mine = measured(strategy, urls, given.rounds)
            ask, tell = mine[0] / plain[0], mine[1] / plain[1]
            more = (mine[1] - plain[1]) / (ASKED * LINKS)
            print(
                f"{strategy:16} {urls:9} {mine[0]:8.0f} {ask:6.2f} {mine[1]:8.0f} {tell:6.2f} {more:9.2f}", flush=True
            )


if __name__ == "__main__":
    main()
