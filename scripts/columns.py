"""Write docs/explain/columns.md: what speaks for a link, column by column, as `layered` has them.

`python -m scripts.columns` writes it; a test compares what is written with what it would write.
"""

from __future__ import annotations

import json
from pathlib import Path

from crawlguide.strategies.layered.columns import TABLE
from crawlguide.strategies.layered.records import LEVELS, MEANING, PARENTS
from crawlguide.strategies.layered.tuning import PARTS
from scripts import named
from scripts.reference import DOCS, table

PAGE: Path = DOCS / "explain" / "columns.md"
COSTS = Path(__file__).with_name("column_costs.json")  # as `scripts.column_costs` measured them
LINK, FINDER, HOST = "the link", "the page that made it known", "its host"
SOME_PARENTS, BESIDE = f"{PARENTS} pages that link here", "6 links beside it"
TOLD = "up to 8 numbers told"
ALL_PLACES, LAST_PLACE, MEANT = f"up to {LEVELS} places", "its host and its last place", f"{MEANING} numbers"
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
    "answers": LAST_PLACE,
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
    costs: dict[str, int] = json.loads(COSTS.read_text())
    rows = [
        f"| {column.name} | {column.meaning} | {LOOKS_AT.get(column.name, LINK)} | {column.first_weight:.1f} "
        f"| {_parts(column.name)} | {_cost(column.name, costs)} |"
        for column in TABLE
    ]
    return (
        "# What speaks for a link\n\n"
        "The columns that [`layered`](ordering.md) weighs, out of the code. Rates are differences of log-odds to what\n"
        "a page of the crawl is worth of late: 0 says *as usual*. A crawl begins with the weight given here, and\n"
        "learns from then on. `without` says which part leaves it out. However large a crawl is, a column\n"
        "looks at these records and at the one of the crawl.\n\n"
        + table(("column", "says", "looks at", "first weight", "`without`", "ns"), rows)
        + "\nns: nanoseconds for a link, of the function that has the column, with whatever else that function finds;\n"
        f"{costs['link']} are a field that is read. All columns together take {costs['describe']}, and their weights,"
        f" words, places and\nmeanings {costs['score']} more. `python -m scripts.column_costs` measures: a crawl of"
        " 100 000 URLs on 300 hosts in memory,\nlinks in random order, the quickest of 400 loops over 2 000 links.\n\n"
        + named.text()
    )  # fmt: skip


def _cost(name: str, costs: dict[str, int]) -> int:
    return costs[FUNCTIONS.get(name, "link")]


def _parts(name: str) -> str:
    return ", ".join(f"`{part}`" for part, (columns, _) in PARTS.items() if name in columns)


if __name__ == "__main__":
    PAGE.write_text(page())
