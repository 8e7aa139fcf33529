"""Features of other systems, and what corresponds to each of them here; a part of docs/explain/columns.md."""

from __future__ import annotations

from scripts.reference import table

FORAGER = {  # forager's eleven, by name and order
    "depth": "`depth`",
    "domain_relevance": "`host`, `place`",
    "domain_count": "`new host`, `little known host`",
    "domain_failure_rate": "`answers`",
    "parent_score": "`finder`; of all parents: `parents`, `best parent`, `good parents`, `bad parents`",
    "anchor_similarity": "`anchor meaning`, `words in anchor`",
    "sibling_score": "`mean yield`, `best yield`; the nearest: `neighbours`",
    "path_depth": "`path`",
    "has_query": "`query`",
    "domain_weight": "none, because people set it: [`policy.domain_weights`](../steering.md) is a factor on the value",
    "round_discovered": "none; among equals the one discovered first comes first",
}
GROUPS = {
    "Graph and links": {
        "links that it has": "the expected number of new links: in the exploration bonus before the first hit",
        "links to it": "`good parents`, `bad parents`; the term `authority` of the score, with a sitemap's priority",
        "PageRank of its domain": "`pagerank` in `external_features`: the term `authority`, and `ask signals`; "
        "strategies `opic` and `pagerank`",
        "diversity of anchor texts": "none: the words of the link where it was discovered count",
        "depth": "`depth`",
    },
    "Content and metadata": {
        "length of the URL": "`path`",
        "keywords in URL or title": "`words in anchor`, `words in address`, `title meaning`; a weight for each word",
        "kind of file": "a weight for each word of the URL, including its extension; `policy.deny_extensions`",
        "language, location": "a weight for each word and place; `policy.languages`",
        "path tokens": "a weight for each word, and for up to 5 places",
    },
    "Time": {
        "last fetch": "the term `freshness` of the score: 1 − exp(−age / τ), 1 if a sitemap says that it has changed",
        "how often it changes": "`goal.reward.change`: changed pages have a higher reward, and so do their places",
        "when it was discovered": "none; among equals the one discovered first comes first",
        "last update, if known": "`last_modified` in `external_features`, like any timestamp: `ask signals`",
    },
    "Performance and cost": {
        "time and bytes of its host": "the term `cost` of the score, by the host's medians; `goal.reward.cost`",
        "failures": "`answers`, by host and place",
        "bans": "`refusals`",
    },
}


def text() -> str:
    groups = [
        f"| {group if not number else ''} | {name} | {carried} |"
        for group, features in GROUPS.items()
        for number, (name, carried) in enumerate(features.items())
    ]
    return (
        "## Features of other systems\n\n"
        "forager's eleven features, which [`tres`](../strategies.md#tres) uses, and the columns of `layered` with the"
        " same\ninformation:\n\n"
        + table(("forager", "`layered`"), [f"| `{name}` | {carried} |" for name, carried in FORAGER.items()])
        + "\nAnd common features of crawlers, by group. What is a term of the score is not a column as well:\n\n"
        + table(("group", "feature", "here"), groups)
    )
