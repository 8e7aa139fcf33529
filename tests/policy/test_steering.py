"""banned and crawlers: what people rule out while a crawl runs, and what each crawler may have."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from crawlguide.core.definition import Bans, Crawler, Definition, HandRules, Policy
from crawlguide.core.patterns import Patterns
from crawlguide.policy import banned, crawlers
from crawlguide.policy.scope import MOST_KNOWN
from tests.support import batch, question

URLS = ["https://a.org/1", "https://a.org:8080/1", "https://www.a.org/2", "https://b.org/archive/1"]


def kept(rule: Any, crawler_id: str = "c-1") -> list[bool]:
    found: list[bool] = rule.keep(batch(URLS), question(crawler_id=crawler_id)).tolist()
    return found


def bans(**lists: Any) -> banned.Banned:
    return banned.build(Definition(rules=HandRules(ban=Bans(**lists))))


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({}, [True, True, True, True]),
        ({"urls": ("HTTPS://A.org/1#x",)}, [False, True, True, True]),
        ({"hosts": ("a.org.",)}, [False, False, True, True]),
        ({"patterns": ("/1$",)}, [False, False, True, False]),
        ({"patterns": ("(?i)ARCHIVE", "^https://www")}, [True, True, False, False]),
        ({"urls": ("https://a.org/1",), "hosts": ("b.org",), "patterns": ("www",)}, [False, True, False, False]),
    ],
)
def test_what_is_banned(lists: dict[str, Any], expected: list[bool]) -> None:
    rule = bans(**lists)
    assert kept(rule) == expected
    queues = ("a.org", "a.org:8080", "www.a.org", "b.org")
    assert [rule.rule(url, queue) is None for url, queue in zip(URLS, queues, strict=True)] == expected
    assert bool(rule) is bool(lists)


def test_a_ban_says_which_rule_it_is() -> None:
    rule = bans(urls=(URLS[0],), hosts=("b.org",), patterns=("x", "www"))
    said = [rule.why(batch([url]), question()) for url in URLS]
    assert said == [
        "rules.ban.urls names it", "no rule bans it", "rules.ban.patterns holds 'www'", "rules.ban.hosts names b.org",
    ]  # fmt: skip


def test_patterns_are_found_by_their_numbers() -> None:
    patterns = Patterns(("a", "b|c", "(?P<name>d)", "(?P<name>e)"), "field")
    assert [patterns.found(text) for text in ("xyz", "ca", "b", "ed")] == [[], [0, 1], [1], [2, 3]]
    assert Patterns((), "field").found("a") == []


def test_a_pattern_that_would_take_for_ever_elsewhere_takes_none_here() -> None:
    assert Patterns(("^(a+)+$",), "field").found("a" * 5_000 + "!") == []


def of(**entries: Crawler) -> crawlers.Crawlers:
    return crawlers.build(
        Definition(policy=Policy(crawlers={name.replace("_", "*"): one for name, one in entries.items()}))
    )


def test_a_crawler_without_an_entry_may_have_all() -> None:
    rule = of(other=Crawler(allow_domains=("b.org",), max_urls=3))
    assert kept(rule) == [True] * 4
    assert (rule.bounds_of("c-1").max_urls, rule.bounds_of("other").max_urls) == (0, 3)


def test_a_scope_of_a_crawler_covers_sub_domains_and_deny_wins() -> None:
    rule = of(c_=Crawler(allow_domains=("a.org",), deny_domains=("www.a.org",)))
    assert kept(rule, "c-1") == [True, True, False, False]
    assert kept(rule, "d-1") == [True] * 4


def test_of_several_beginnings_the_longest_counts() -> None:
    rule = of(_=Crawler(max_urls=1), c_=Crawler(max_urls=2), cd_=Crawler(max_urls=3), cde=Crawler(max_urls=4))
    names = ("x", "", "c", "cx", "cd", "cdx", "cde", "cdef")
    assert [rule.bounds_of(name).max_urls for name in names] == [1, 1, 2, 2, 3, 3, 4, 3]


def test_a_crawler_named_with_a_star_inside_is_no_beginning() -> None:
    rule = crawlers.build(Definition(policy=Policy(crawlers={"a*b": Crawler(max_urls=1)})))
    assert [rule.bounds_of(name).max_urls for name in ("a", "axb", "a*b")] == [0, 0, 1]


def test_explaining_names_the_crawlers_that_may_not() -> None:
    rule = of(c_=Crawler(allow_domains=("b.org",)), d=Crawler(max_urls=1))
    assert rule.why(batch(URLS[:1]), question()) == "policy.crawlers keeps it from c*"
    assert rule.why(batch(URLS[3:]), question()) == "every crawler may fetch it"


def test_thousands_of_crawlers_with_domains_take_little_room() -> None:
    policy = Policy(crawlers={f"c{number}*": Crawler(allow_domains=("a.org",)) for number in range(2_000)})
    tracemalloc.start()
    rule = crawlers.build(Definition(policy=policy))
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rule.scopes) == 2_000
    assert kept_bytes < 5_000_000


def test_thousands_of_crawlers_that_meet_thousands_of_hosts_remember_no_more_than_one() -> None:
    policy = Policy(crawlers={f"c{number}": Crawler(deny_domains=("a.org",)) for number in range(1_000)})
    rule = crawlers.build(Definition(policy=policy))
    for one in rule.scopes.values():
        assert [one.covers(f"{host}.org") for host in ("a", *range(200))] == [False, *[True] * 200]
    assert sum(len(one.known) for one in rule.scopes.values()) <= MOST_KNOWN
