"""Write docs/explain/columns.md, the columns of `layered`, and docs/research/column-costs.md, what each of them costs.

`python -m scripts.columns` writes them; with `--check` it only says whether they are up to date.
"""

from __future__ import annotations

import json
from pathlib import Path

from crawlguide.strategies.layered.columns import TABLE
from crawlguide.strategies.layered.records import LEVELS, MEANING, PARENTS
from crawlguide.strategies.layered.tuning import PARTS
from scripts import named
from scripts.reference import DOCS, table, write_or_check

PAGE: Path = DOCS / "explain" / "columns.md"
COSTS_PAGE: Path = DOCS / "research" / "column-costs.md"
COSTS = Path(__file__).with_name("column_costs.json")  # as `scripts.column_costs` measured them
LINK, FINDER, HOST = "the link", "the page where it was found first", "its host"
SOME_PARENTS, BESIDE = f"{PARENTS} pages that link here", "6 links beside it"
TOLD = "up to 8 numbers sent by crawlers"
ALL_PLACES, LAST_PLACE, MEANT = f"up to {LEVELS} places", "its host and its last place", f"{MEANING} numbers"
WEIGHED = f"{LAST_PLACE}, and a weight for each of its words"
LOOKS_AT = {  # the records that a column needs; all others only that of the link
    "always": "nothing",
    "mean yield": SOME_PARENTS,
    "best yield": SOME_PARENTS,
    "title meaning": SOME_PARENTS,
    "parents and yield": SOME_PARENTS,
    "neighbours": BESIDE,
    "host": HOST,
    "new host": HOST,
    "little known host": HOST,
    "history": HOST,
    "refusals": HOST,
    "place": ALL_PLACES,
    "answers": WEIGHED,
    "new place": LAST_PLACE,
    "finder": FINDER,
    "profile": MEANT,
    "ask signals": TOLD,
}  # fmt: skip

FUNCTIONS = {  # of columns that are more than a field of the link
    "parents": "parents_rate", "mean yield": "yields", "best yield": "yields", "parents and yield": "yields",
    "neighbours": "neighbours", "host": "place_rates", "place": "place_rates", "answers": "answers",
    "new host": "host", "new place": "host", "little known host": "host", "history": "host", "finder": "host",
    "anchor meaning": "similarity", "address meaning": "similarity", "best meaning": "similarity",
    "title meaning": "title_similarity", "profile": "profile_similarity", "refusals": "refusals",
}  # fmt: skip


def page() -> str:
    rows = [
        f"| {column.name} | {column.meaning} | {LOOKS_AT.get(column.name, LINK)} | {column.first_weight:.1f} "
        f"| {_parts(column.name)} |"
        for column in TABLE
    ]
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
    rows = [f"| {column.name} | {costs[FUNCTIONS.get(column.name, 'link')]} |" for column in TABLE]
    return (
        "# Cost of columns\n\n"
        "Nanoseconds for one link and one [column of `layered`](../explain/columns.md), measured for the function\n"
        "that computes the column, with everything else it computes; a column that is a stored field takes"
        f" {costs['link']}.\nAll columns together take {costs['describe']}, and the weighted sum with words, places and"
        f" meaning {costs['score']} more.\n`python -m scripts.column_costs` measures them: a crawl of 100 000 URLs on"
        " 300 hosts in memory, links in random\norder, the fastest of 400 loops over 2 000 links.\n\n"
        + table(("column", "ns"), rows)
    )


def _parts(name: str) -> str:
    return ", ".join(f"`{part}`" for part, (columns, _) in PARTS.items() if name in columns)


if __name__ == "__main__":
    write_or_check({PAGE: page(), COSTS_PAGE: costs_page()}, __doc__)
