"""Write docs/explain/columns.md, the columns of `layered`, and docs/research/column-costs.md, what each of them costs.

`python -m scripts.columns` writes them; with `--check` it only says whether they are up to date.
"""

from __future__ import annotations

import json
from pathlib import Path

from crawlguide.strategies.layered.columns import NAMES, PRIOR
from crawlguide.strategies.layered.records import LEVELS, MEANING, PARENTS
from crawlguide.strategies.layered.tuning import PARTS
from scripts import named
from scripts.reference import DOCS, table, write_or_check

PAGE: Path = DOCS / "explain" / "columns.md"
COSTS_PAGE: Path = DOCS / "research" / "column-costs.md"
COSTS = Path(__file__).with_name("column_costs.json")  # as `scripts.column_costs` measured them
LINK, FINDER, HOST = "the link", "the page that made it known", "its host"
SOME_PARENTS, BESIDE = f"{PARENTS} pages that link here", "6 links beside it"
TOLD = "up to 8 numbers told"
ALL_PLACES, LAST_PLACE, MEANT = f"up to {LEVELS} places", "its host and its last place", f"{MEANING} numbers"
MEANINGS = {  # what a column says, and which records it looks at
    "always": ("1, whatever the link: what all have in common", "nothing"),
    "parents": ("worth of all fetched pages that link here, as a share of them", LINK),
    "best parent": ("worth of the best of them", LINK),
    "good parents": ("how much worth they have together (logarithm)", LINK),
    "bad parents": ("how many of them have none (logarithm)", LINK),
    "mean yield": ("what other links of the same pages paid, on the mean of these pages", SOME_PARENTS),
    "best yield": ("the same of the page whose links paid best", SOME_PARENTS),
    "neighbours": ("what links beside it paid, on the page that made it known; nearer ones count more", BESIDE),
    "host": ("what its host pays of late", HOST),
    "place": ("what its smallest place pays, drawn to what the rest of the places around it pays", ALL_PLACES),
    "words in anchor": ("share of the goal's words that the link's text has", LINK),
    "words in address": ("share of the goal's words that the URL has", LINK),
    "unknown host": ("1 if nothing was fetched from its host yet", HOST),
    "answers": ("how likely it answers at all, by host and place (logarithm)", LAST_PLACE),
    "new place": ("1 / (1 + pages fetched from its smallest place)", LAST_PLACE),
    "depth": ("links from a seed, at most 10, divided by 10", LINK),
    "path": ("folders in its URL, at most 10, divided by 10", LINK),
    "abroad": ("1 if it leads to another host than the page it was found on", LINK),
    "finder": ("worth of the page that made it known", FINDER),
    "anchor meaning": ("how near the link's text is to the goal, among all texts seen so far", LINK),
    "address meaning": ("how near the words of the URL are to the goal, among all URLs seen so far", LINK),
    "best meaning": ("the better of the two, if above the mean", LINK),
    "title meaning": ("how near the titles of pages that link here are to the goal, among all titles", SOME_PARENTS),
    "liking": ("how alike it is to pages that were of worth, less how alike to the others", MEANT),
    "parents and yield": ("`parents` times `mean yield`, divided by 4: good pages whose links pay", SOME_PARENTS),
    "near worth": ("1 / (1 + links from the nearest page of worth on the way to it)", LINK),
    "little known host": ("1 / √(1 + pages fetched from its host), if the host answers", HOST),
    "query": ("1 if the URL has a query", LINK),
    "told": ("what crawlers told of it in `external_features`, each number by a weight that is learned", TOLD),
    "history": ("what its domain yielded before, as crawlers told in `historical_yield`", HOST),
    "turned away": ("how often its host turns crawlers away (403, 429, `blocked`)", HOST),
    "authority": ("what pages passed on to it, against the mean of all links (OPIC; logarithm)", LINK),
}  # fmt: skip

FUNCTIONS = {  # of columns that are more than a field of the link
    "parents": "share", "mean yield": "yields", "best yield": "yields", "parents and yield": "yields",
    "neighbours": "neighbours", "host": "place_rates", "place": "place_rates", "answers": "reachable",
    "unknown host": "host", "new place": "host", "little known host": "host", "history": "host", "finder": "host",
    "anchor meaning": "likeness", "address meaning": "likeness", "best meaning": "likeness",
    "title meaning": "title_likeness", "liking": "liking", "turned away": "turned_away",
}  # fmt: skip


def page() -> str:
    rows = [f"| {name} | {_meaning(name)} | {weight:.1f} | {_parts(name)} |" for name, weight in _weights()]
    return (
        "# Columns of `layered`\n\n"
        "The features of a link that [`layered`](ordering.md) weighs; this page is generated from the code. Rates\n"
        "are differences of log-odds to the recent mean reward of the crawl: 0 means average. A crawl starts with the\n"
        "initial weight and learns from then on. `without` names the part that leaves a column out. However large a\n"
        "crawl is, a column reads these records and the one of the crawl, nothing else.\n\n"
        + table(("column", "means", "reads", "initial weight", "`without`"), rows)
        + "\nWhat each column costs is in [research](../research/column-costs.md).\n\n"
        + named.text()
    )


def costs_page() -> str:
    costs: dict[str, int] = json.loads(COSTS.read_text())
    rows = [f"| {name} | {_cost(name, costs)} |" for name, _ in _weights()]
    return (
        "# Cost of columns\n\n"
        "Nanoseconds for one link and one [column of `layered`](../explain/columns.md), measured for the function\n"
        "that computes the column, with everything else it computes; a column that is a stored field takes"
        f" {costs['link']}.\nAll columns together take {costs['describe']}, and the weighted sum with words, places and"
        f" meaning {costs['score']} more.\n`python -m scripts.column_costs` measures them: a crawl of 100 000 URLs on"
        " 300 hosts in memory, links in random\norder, the fastest of 400 loops over 2 000 links.\n\n"
        + table(("column", "ns"), rows)
    )


def _weights() -> list[tuple[str, float]]:
    return list(zip(NAMES, PRIOR.tolist(), strict=False))


def _cost(name: str, costs: dict[str, int]) -> int:
    return costs[FUNCTIONS.get(name, "link")]


def _meaning(name: str) -> str:
    says, looks_at = MEANINGS[name]
    return f"{says} | {looks_at}"


def _parts(name: str) -> str:
    return ", ".join(f"`{part}`" for part, (columns, _) in PARTS.items() if name in columns)


if __name__ == "__main__":
    write_or_check({PAGE: page(), COSTS_PAGE: costs_page()}, __doc__)
