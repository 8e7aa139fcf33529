"""What may happen to a crawl: few URLs, hosts and names, so that everything happens to the same ones."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from crawlguide.core.types import Crawl

from .builders import fetches, ids, links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.types import Fetches, Links

NAN = float("nan")
CRAWLS = (Crawl("tenant", "one"), Crawl("tenant", "two"))
HOSTS = ("a.org", "b.a.org", "x.org:8080", "y.org")  # the first two are one domain
URLS = [f"https://{host}/{page}" for page, host in product(range(3), HOSTS)][:-2]
IDS = ids(*URLS)

seldom = st.sampled_from([False] * 4 + [True])
crawls, crawlers = st.sampled_from([CRAWLS[0], *CRAWLS]), st.sampled_from(["c-1", "c-2"])
some_urls = st.lists(st.sampled_from(URLS), min_size=1, max_size=6)
distinct_urls = st.lists(st.sampled_from(URLS), min_size=1, max_size=6, unique=True)
shares = st.sampled_from([0.0, 0.2, 0.5, 0.9])
link_facts = st.fixed_dictionaries(
    {
        "manual_priority": st.sampled_from([NAN, NAN, 0.1, 0.9]),
        "max_depth": st.sampled_from([-1, -1, 0, 1, 2]),
        "metadata": st.sampled_from([None, None, b'{"n":1}', b'{"n":2}']),
        "reason": st.sampled_from([None, None, None, "scope", "risk"]),
        "anchor": st.sampled_from(["", "here", "ß"]),
        "position": st.integers(0, 9),
    }
)
outcomes = st.one_of(
    st.fixed_dictionaries(
        {"relevance": st.sampled_from([NAN, 0.1, 0.9]), "elapsed_ms": st.sampled_from([NAN, 80.0]), "bytes": shares}
    ),
    st.sampled_from(
        [
            {"status": 404},
            {"status": 429, "retry_after_s": 30.0},
            {"status": 503},
            {"status": 0, "error": "timeout"},
            {"status": 0, "error": "tls"},
            {"status": 0, "error": "released"},
            {"status": -1, "reward": 0.3},
            {"status": -1, "reward": 1.0},
        ]
    ),
)
FETCHED = ("status", "error", "elapsed_ms", "bytes", "relevance", "reward", "retry_after_s", "fetch_time")


def with_facts(found: Sequence[str], parents: Sequence[int], facts: list[dict[str, Any]], deepest: int) -> Links:
    columns = {name: [one[name] for one in facts[: len(found)]] for name in facts[0]}
    return links(*found, parent=parents, **columns).attach(deepest=deepest)


def reported(
    pages: Sequence[str], told: list[dict[str, Any]], times: list[str], target: str | None, crawler_id: str
) -> Fetches:
    """Fetches of some pages, each with its own outcome; a redirect leads from all of them to one page."""
    usual = {"status": 200, "error": "", "fetch_time": ""}
    rows = [usual | one | {"fetch_time": time} for one, time in zip(told, times, strict=True)][: len(pages)]
    columns = {name: [row.get(name, NAN) for row in rows] for name in FETCHED}
    return fetches(*pages, target=target, crawler_id=crawler_id, **columns)
