"""`make hard`: does guidance lose anywhere? `layered` beside breadth-first and keyword, on webs where it could fail.

Every kind of `synthetic:kind=…`, every task, paired over repeats; the figure is the mean harvest over the whole crawl.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from crawlguide.lab import jobs
from crawlguide.lab.compare import compare
from crawlguide.lab.report.formatting import decimal, percent, signed, span
from crawlguide.lab.results import Results
from crawlguide.lab.run import Settings
from crawlguide.lab.summary import Summary
from crawlguide.lab.synthetic import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.lab.compare import Comparison

SUBJECT, OTHERS = "layered", ("breadth-first", "keyword")
FIGURE = "auc"
HEADS = (
    "web",
    "tasks",
    "layered",
    "breadth-first",
    "keyword",
    "against breadth-first",
    "against keyword",
    "dead",
    "wins",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(kinds.names()), choices=kinds.names())
    parser.add_argument("--subject", default=SUBJECT, help="the policy that must not lose")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=100, help="the first so many of each web")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=None, help="processes; by default one for each core")
    given = parser.parse_args()
    print("| " + " | ".join(HEADS).replace(SUBJECT, given.subject) + " |")
    print("|" + "---|" * len(HEADS))
    for row in rows(given):
        print("| " + " | ".join(row) + " |", flush=True)


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    """One for each web. Difference, 95 % interval and tasks won/even/lost, as in the reports of the lab."""
    for kind in given.kinds:
        summary = _ran(f"synthetic:kind={kind}", given)
        compared = [compare(summary, given.subject, other, FIGURE) for other in OTHERS]
        means = [summary.mean(policy, FIGURE) for policy in (given.subject, *OTHERS)]
        yield [
            kind,
            str(len(summary.tasks)),
            *map(decimal, means),
            *map(_words, compared),
            percent(summary.mean(given.subject, "dead")),
            _winner(given.subject, compared),
        ]


def _ran(web: str, given: argparse.Namespace) -> Summary:
    tasks = jobs.tasks_named(jobs.opened(web), ["all"])[: given.tasks]
    settings = Settings(budget=given.budget, seed=given.seed)
    todo = jobs.jobs(web, tasks, [given.subject, *OTHERS], given.repeat, settings)
    return Summary(
        Results(
            command=["make", "hard"], versions=jobs.versions(), runs=list(jobs.completed(todo, None, given.workers))
        )
    )


def _words(one: Comparison) -> str:
    return f"{signed(one.difference)} {span(one.low, one.high)} {one.wins}/{one.ties}/{one.losses}"


def _winner(subject: str, compared: list[Comparison]) -> str:
    worst = min(compared, key=lambda one: one.difference)
    if worst.difference >= 0:
        return subject
    return worst.other if worst.settled else "open"


if __name__ == "__main__":
    main()
