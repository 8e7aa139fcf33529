"""Features that other systems name, and what carries each of them here; a part of docs/explain/columns.md."""

from __future__ import annotations

from scripts.reference import table

FORAGER = {  # forager's eleven, by name and order
    "depth": "`depth`",
    "domain_relevance": "`host`, `place`",
    "domain_count": "`unknown host`, `little known host`",
    "domain_failure_rate": "`answers`",
    "parent_score": "`finder`; of all parents: `parents`, `best parent`, `good parents`, `bad parents`",
    "anchor_similarity": "`anchor meaning`, `words in anchor`",
    "sibling_score": "`mean yield`, `best yield`; the nearest: `neighbours`",
    "path_depth": "`path`",
    "has_query": "`query`",
    "domain_weight": "no column, as people set it: [`rules.priority.hosts`](../steering.md) is a factor on the score",
    "round_discovered": "none; of equals the one that was found first is looked at first",
}
GROUPS = {
    "Graph and links": {
        "links that it has": "how many new ones to hope for (`hubs.py`): in the bonus for what is little known",
        "links to it": "`good parents`, `bad parents`; the term `authority` of the score, with a sitemap's priority",
        "PageRank of its domain": "`pagerank` in `external_features`: the term `authority`, and `told`; "
        "strategies `opic` and `pagerank`",
        "diversity of anchor texts": "none: the words of the link that made it known count",
        "depth": "`depth`",
    },
    "Content and metadata": {
        "length of the URL": "`path`",
        "keywords in URL or title": "`words in anchor`, `words in address`, `title meaning`; a weight for each word",
        "kind of file": "a weight for each word of the URL, its ending too; `policy.deny_extensions`",
        "language, location": "a weight for each word and place; `policy.languages`",
        "path tokens": "a weight for each word, and for up to 5 places",
    },
    "Time": {
        "last fetch": "the term `freshness` of the score: 1 − exp(−age / τ), 1 if a sitemap says that it changed since",
        "how often it changes": "`goal.reward.change`: what changed is worth more, to its places as well",
        "when it was found": "none; of equals the one that was found first is looked at first",
        "last update, if known": "`last_modified` in `external_features`, as any instant: `told`",
    },
    "Performance and cost": {
        "time and bytes of its host": "the term `cost` of the score, by the host's medians; `goal.reward.cost`",
        "failures": "`answers`, by host and place",
        "bans": "`turned away`",
    },
}


def text() -> str:
    groups = [
        f"| {group if not number else ''} | {name} | {carried} |"
        for group, features in GROUPS.items()
        for number, (name, carried) in enumerate(features.items())
    ]
    return (
        "## Features that others name\n\n"
        "forager's eleven, which [`tres`](../strategies.md#tres) has as they are:\n\n"
        + table(("forager", "here"), [f"| `{name}` | {carried} |" for name, carried in FORAGER.items()])
        + "\nAnd what a guide may look at, by group. What the score has as a term of its own is no column besides:\n\n"
        + table(("group", "feature", "here"), groups)
    )
