"""A second simulator, to check the lab by: a few plain rules over a graph held in arrays, and no guide at all.

It shares nothing with the lab but the web it reads and two conventions: a page that is linked several times from one
page counts once, and a seed counts as linked from one relevant page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.urls import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from crawlguide.lab.pages import Task, Web

MOST_LINKS = 2_000


@dataclass
class Drawn:
    """A web as numbers: where the links of each page lead, dead ends included."""

    number: dict[str, int] = field(default_factory=dict)
    links: dict[int, list[int]] = field(default_factory=dict)

    def of(self, url: str) -> int:
        return self.number.setdefault(url, len(self.number))


def drawn(web: Web, task: Task, kind: str) -> Drawn:
    """All that can be reached from the seeds, and what it links to."""
    result = Drawn()
    for url in sorted(web.reachable(task.seeds[kind])):
        page = web.fetch(url)
        links = [page.redirected_to] if page.redirected_to else [link.url for link in page.links[:MOST_LINKS]]
        result.links[result.of(url)] = [result.of(canonical(link, url)) for link in links]
    return result


@dataclass
class Frontier:
    """What is known of each URL: when it was found, how many pages link to it, how many of those were relevant."""

    found: NDArray[np.float64]
    parents: NDArray[np.float64]
    good: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    tie: NDArray[np.float64]


RULES: dict[str, Callable[[Frontier], NDArray[np.float64]]] = {
    "random": lambda known: known.tie,
    "breadth-first": lambda known: -known.found,
    "best-first": lambda known: np.minimum(known.good, 1.0) - 1e-7 * known.found,  # of equals the first
    "relational": lambda known: (known.good + 0.5) / (known.parents + 2.0) + 1e-6 * known.tie,
    "oracle-one-hop": lambda known: np.where(known.relevant, 1e6, known.good) + 1e-6 * known.tie,
}


def simulated(graph: Drawn, task: Task, kind: str, rule: str, budget: int, seed: int) -> list[int]:
    """For each fetch whether it was relevant."""
    count = len(graph.number)
    relevant = np.zeros(count, np.bool_)
    relevant[[graph.number[url] for url in task.relevant if url in graph.number]] = True
    tie = np.random.default_rng(seed).random(count)
    known = Frontier(np.full(count, np.inf), np.zeros(count), np.zeros(count), relevant, tie)
    done = np.zeros(count, np.bool_)
    discoveries = 0

    def discover(targets: list[int], worth: float) -> None:
        nonlocal discoveries
        for target in dict.fromkeys(targets):
            if known.found[target] == np.inf:
                known.found[target] = discoveries
                discoveries += 1
            known.parents[target] += 1.0
            known.good[target] += worth

    discover([graph.of(seed) for seed in task.seeds[kind]], 1.0)
    fetched: list[int] = []
    while len(fetched) < budget:
        waiting = np.flatnonzero((known.found < np.inf) & ~done)
        if not len(waiting):
            break
        best = int(waiting[RULES[rule](known)[waiting].argmax()])
        done[best] = True
        fetched.append(int(relevant[best]))
        discover(graph.links.get(best, []), float(relevant[best]))
    return fetched
