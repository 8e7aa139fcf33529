"""What each column of `layered` costs: nanoseconds for a link, with all else in a crawl of 100 000 URLs.

`python -m scripts.column_costs` measures, writes scripts/column_costs.json and the page of costs; with `--show` it
prints the figures and writes nothing. Every function is compiled into a loop of its own over links in a random order,
so that records come from wherever they lie, as in an ask.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from bench.strategies import filled

from crawlguide.strategies.layered import columns, ingest, model
from crawlguide.strategies.layered.records import COLUMNS
from scripts.columns import COSTS, COSTS_PAGE, costs_page

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 2_000
Looked = tuple[Any, ...]  # what a column may look at
BODIES = {  # functions of the columns, as they are called for a link
    "link": "link.best",
    "host": "places[link.places[0]].history",
    "share": "share(link, usual, tuning)",
    "yields": "yields(link, pages, usual, tuning)[0]",
    "neighbours": "neighbours(row, links, used, usual)",
    "place_rates": "place_rates(link, places, usual, tuning)[0]",
    "reachable": "reachable(link, places, crawl)",
    "likeness": "likeness(link.anchor, 0, crawl)",
    "title_likeness": "title_likeness(link, pages, crawl)",
    "liking": "liking(link, taste, crawl)",
    "turned_away": "turned_away(places[link.places[0]])",
    "describe": "called(describe(row, links, used, pages, places, crawl, taste, tuning, found), found[1])",
    "score": "score(link, found, 0.0, dense, words, places)",
}


def looked_at(urls: int) -> Looked:
    """A crawl that a guide was told of, as its strategy knows it: links, pages, places and the crawl itself."""
    guide, _ = filled("layered", urls)
    local: Any = guide._guide._guide
    (running,) = local.crawls.known.values()
    learner = running.strategy.predictor
    memory = learner.memory
    found = memory.links.rows, memory.links.used, memory.pages.rows, memory.places.rows, memory.crawl.rows
    return *found, ingest.taste(memory), learner.tuning, memory.dense.rows, memory.words.rows


def loop(body: str) -> Callable[..., float]:
    """A compiled loop over links; `body` is what is done with each, in the words of the functions of columns."""
    code = (
        "def run(rows, links, used, pages, places, crawls, taste, tunings, dense, words):\n"
        "    crawl, tuning, total = crawls[0], tunings[0], 0.0\n"
        "    found, usual = np.zeros(COLUMNS, np.float32), rate(crawls[0])\n"
        "    for row in rows:\n"
        "        link = links[row]\n"
        f"        total += {body}\n"
        "    return total\n"
    )
    names: dict[str, Any] = {**vars(columns), "np": np, "COLUMNS": COLUMNS, "score": model.score, "called": called}
    exec(code, names)  # noqa: S102 - words of ours
    compiled: Callable[..., float] = numba.njit(names["run"])
    return compiled


@numba.njit
def called(nothing, value):  # type: ignore[no-untyped-def]  # noqa: ARG001
    return value


def measured(body: str, looked: Looked, loops: int) -> float:
    """Nanoseconds for a link: the quickest of many loops, as others may be at work on this machine."""
    rows = np.random.default_rng(1).permutation(looked[1])[:ROWS].astype(np.int64)
    run, times = loop(body), []
    run(rows, *looked)
    for _ in range(loops):
        before = time.perf_counter_ns()
        run(rows, *looked)
        times.append((time.perf_counter_ns() - before) / len(rows))
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=100_000, help="of the crawl")
    parser.add_argument("--loops", type=int, default=400, help="of each function; the quickest counts")
    parser.add_argument("--show", action="store_true", help="print the figures and write nothing")
    options = parser.parse_args()
    looked = looked_at(options.urls)
    costs = {name: round(measured(body, looked, options.loops)) for name, body in BODIES.items()}
    if options.show:
        print(costs)  # noqa: T201 - what was asked for
        return
    COSTS.write_text(json.dumps(costs, indent=2) + "\n")
    COSTS_PAGE.write_text(costs_page())


if __name__ == "__main__":
    main()
