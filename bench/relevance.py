"""How well judges of relevance rank pages, by the labels of recorded webs.

    .venv/bin/python -m bench.relevance [--webs docsweb debpkg] [--pages 20000] [--judges ...]

Random pages of a web are put to each judge, in one order; it sees URL, title and text, its goal is the topic's name.
AUC / average precision, mean over the topics; precision and recall where it says at least one half; CPU time a page.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from bench import labels

from crawlguide.core.definition import Goal
from crawlguide.core.types import Page
from crawlguide.features.embedding import Embedding
from crawlguide.features.relevance import Judge, five_signals, forager, page_judge

if TYPE_CHECKING:
    from collections.abc import Callable

    Score = Callable[[Page], float]


def feedstock_as_it_is(goal: Goal) -> Score:
    """Parts of words count, titles do not, and every answer is a success."""
    keywords = goal.topic.lower().replace("::", " ").replace("_", " ").replace("-", " ").split()

    def density(text: str) -> float:
        return min(1.0, sum(map(text.lower().count, keywords)) / max(len(text) / 200, 1e-9))

    def score(page: Page) -> float:
        found = sum(keyword in page.url.lower() for keyword in keywords) / len(keywords)
        return 0.4 * density(page.text) + 0.15 * found + 0.15 * min(1.0, len(page.text) / 2_000) + 0.1

    return score


def cosine(goal: Goal) -> Score:
    """Nothing but the nearness of topic and text."""
    embedding = Embedding.load()
    aim = embedding.embed([goal.topic])[0]
    return lambda page: float(embedding.embed([page.text[:2_000]])[0] @ aim)


def plain(goal: Goal) -> Score:
    """The judge without what is near to its best pages."""
    judge = Judge(goal)

    def score(page: Page) -> float:
        enough, page_judge.ENOUGH = page_judge.ENOUGH, 1_000
        found = judge.judge(page)
        page_judge.ENOUGH = enough
        return found

    return score


JUDGES: dict[str, Callable[[Goal], Score]] = {
    "feedstock as it is": feedstock_as_it_is,
    "five signals": lambda goal: lambda page: five_signals(page, goal),
    "semantic (forager)": lambda goal: lambda page: forager.relevance(page, goal),
    "cosine of topic and text": cosine,
    "judge without nearness": plain,
    "judge": lambda goal: Judge(goal).judge,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--webs", nargs="*", default=["docsweb", "debpkg"])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--judges", nargs="*", default=list(JUDGES), choices=list(JUDGES))
    given = parser.parse_args()
    print("| judge | web | AUC / AP | said ≥ ½: precision / recall | µs a page |\n|---|---|---|---|---|")
    for web in given.webs:
        shown = labels.pages(labels.WEBS / web, given.pages)
        order = np.random.default_rng(1).permutation(len(shown.url))
        pages = [Page(shown.url[at], shown.title[at], shown.text[at]) for at in order]
        for name in given.judges:
            print(
                f"| {name} | {web} | {measured(JUDGES[name], pages, shown.topics, shown.labels[order])} |", flush=True
            )


def measured(build: Callable[[Goal], Score], pages: list[Page], topics: list[str], truth: labels.Labels) -> str:
    scores = np.empty(truth.shape)
    began = time.process_time()
    for column, topic in enumerate(topics):
        score = build(Goal(topic=topic))
        scores[:, column] = [score(page) for page in pages]
    microseconds = (time.process_time() - began) / scores.size * 1e6
    area, precision = labels.worth(truth, scores)
    right = [truth[said, at].mean() for at in range(len(topics)) if (said := scores[:, at] >= 0.5).any()]
    found = [(scores[truth[:, at], at] >= 0.5).mean() for at in range(len(topics)) if truth[:, at].any()]
    halves = f"{np.mean(right) if right else 0:.2f} / {np.mean(found):.2f}"
    return f"{area:.3f} / {precision:.3f} | {halves} | {microseconds:.0f}"


if __name__ == "__main__":
    main()
