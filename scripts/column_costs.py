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

from crawlguide.strategies.layered import answers, columns, model
from crawlguide.strategies.layered.records import Tables
from scripts.columns import COSTS, COSTS_PAGE, costs_page

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 2_000
BODIES = {  # functions of the columns, as they are called for a link
    "link": "link.best",
    "host": "places[link.places[0]].history",
    "parents_rate": "parents_rate(link.count, link.sum, usual, tuning)",
    "yields": "yields(link, pages, usual, tuning)[0]",
    "neighbours": "neighbours(row, links, tables.links_used, usual)",
    "place_rates": "place_rates(link, places, usual, tuning)[0]",
    "answers": "answer_chance(link, tables)",
    "similarity": "similarity(link.anchor, 0, crawl)",
    "title_similarity": "title_similarity(link, pages, crawl)",
    "profile_similarity": "profile_similarity(link, tables.profile, crawl)",
    "refusals": "refusals(places[link.places[0]])",
    "describe": "called(describe(row, tables, found), found[1])",
    "score": "log_odds(link, found, 0.0, tables)",
}


def looked_at(urls: int) -> Tables:
    """A crawl that a guide was told of, as its strategy knows it: links, pages, places and the crawl itself."""
    guide, _ = filled("layered", urls)
    local: Any = guide._guide._guide
    (running,) = local.crawls.known.values()
    tables: Tables = running.strategy.predictor.memory.tables()
    return tables


def loop(body: str) -> Callable[..., float]:
    """A compiled loop over links; `body` is what is done with each, in the words of the functions of columns."""
    code = (
        "def run(rows, tables):\n"
        "    links, pages, places = tables.links, tables.pages, tables.places\n"
        "    crawl, tuning, total = tables.crawl[0], tables.tuning[0], 0.0\n"
        "    found, usual = np.zeros(COLUMNS, np.float32), rate(crawl)\n"
        "    for row in rows:\n"
        "        link = links[row]\n"
        f"        total += {body}\n"
        "    return total\n"
    )
    names: dict[str, Any] = {**vars(columns), **vars(answers), **vars(model), "called": called}
    exec(code, names)  # noqa: S102 - words of ours
    compiled: Callable[..., float] = numba.njit(names["run"])
    return compiled


@numba.njit
def called(nothing, value):  # type: ignore[no-untyped-def]  # noqa: ARG001
    return value


def measured(body: str, tables: Tables, loops: int) -> float:
    """Nanoseconds for a link: the quickest of many loops, as others may be at work on this machine."""
    rows = np.random.default_rng(1).permutation(tables.links_used)[:ROWS].astype(np.int64)
    run, times = loop(body), []
    run(rows, tables)
    for _ in range(loops):
        before = time.perf_counter_ns()
        run(rows, tables)
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
