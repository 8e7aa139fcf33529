"""What a crawl may visit beyond its domains: patterns, kinds of files, languages, the hosts of its seeds; and paces."""

from __future__ import annotations

from gc import collect
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest

from crawlguide import Guide
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import MalformedRequest
from crawlguide.policy import diversity, politeness, scope
from crawlguide.policy.link_rules import extension, is_kind
from crawlguide.testing import ManualClock
from tests.support import NOW, ask, asked, batch, fetched, question, state_of, tell

if TYPE_CHECKING:
    from pathlib import Path

A, B = "https://a.org/", "https://b.org/"
OPEN = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "risk_threshold": 1.0, "traps": False}


def opened(path: str = ":memory:", **policy: Any) -> Guide:
    guide = Guide.open(path, clock=ManualClock(NOW))
    guide.define("default", {"policy": {**OPEN, **policy}})
    return guide


# patterns


def test_only_urls_with_one_of_the_patterns_are_given_and_seeds_always() -> None:
    with opened(include_patterns=["/docs/", "[.]md$"]) as guide:
        guide.seed("default", [A])
        tell(guide, fetched(B, f"{A}docs/1", f"{A}news/1", f"{A}news/2.md"))
        assert set(asked(guide)) == {A, f"{A}docs/1", f"{A}news/2.md"}
        assert state_of(guide, f"{A}news/1") == "dropped"
        assert "include_patterns" in str(guide.explain("default", f"{A}news/1")["filters"])


def test_urls_with_an_excluded_pattern_are_not_given_although_they_are_included() -> None:
    with opened(include_patterns=["/docs/"], exclude_patterns=["print=1"]) as guide:
        tell(guide, fetched(A, f"{A}docs/1", f"{A}docs/1?print=1"))
        assert asked(guide) == [f"{A}docs/1"]
        assert "exclude_patterns holds 'print=1'" in str(guide.explain("default", f"{A}docs/1?print=1")["filters"])


def test_patterns_are_changed_while_the_crawl_runs() -> None:
    with opened() as guide:
        tell(guide, fetched(A, f"{A}one", f"{A}two", f"{A}three"))
        guide.patch("default", {"policy": {"exclude_patterns": ["one"], "include_patterns": ["t"]}})
        assert set(asked(guide, max_urls=1)) <= {f"{A}two", f"{A}three"}
        tell(guide, fetched(B, f"{A}four"))
        guide.patch("default", {"policy": {"exclude_patterns": None, "include_patterns": None}})
        assert {f"{A}one", f"{A}four"} <= set(asked(guide))


@pytest.mark.parametrize(
    "written", ["b.org", "https://b.org/x", "http://b.org:8080/", "*.b.org", "https://*.b.org/", ".b.org."]
)
def test_a_domain_may_be_written_as_people_write_it(written: str) -> None:
    with opened(deny_domains=[written]) as guide:
        guide.seed("default", [A])
        tell(guide, fetched(A, f"{A}1", f"{B}1", "https://www.b.org/2"))
        assert asked(guide) == [f"{A}1"]
    with opened(allow_domains=[written]) as guide:
        tell(guide, fetched(A, f"{A}1", "https://www.b.org/2"))
        assert asked(guide) == ["https://www.b.org/2"]


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(MalformedRequest, match=r"policy\.include_patterns\[0\]: expected an RE2 pattern"):
        scope.build(Definition(policy=Policy(include_patterns=("(?=look)",))))


# files


@pytest.mark.parametrize(
    ("url", "ending"),
    [(f"{A}a/b.PDF?c=d.zip", "pdf"), (f"{A}a.b/c", ""), (A, ""), (f"{A}x.tar.gz", "gz"), (f"{A}.profile", "profile")],
)
def test_the_extension_of_a_url(url: str, ending: str) -> None:
    assert extension(url) == ending


def test_files_that_nobody_wants_are_dropped_when_they_are_found() -> None:
    with opened(deny_extensions=[".ZIP"], deny_content_types=["image/*", "application/pdf"]) as guide:
        tell(guide, fetched(A, f"{A}a.zip", f"{A}b.png", f"{A}c.pdf", f"{A}d.html", f"{A}e?x=.zip"))
        assert set(asked(guide)) == {f"{A}d.html", f"{A}e?x=.zip"}


def test_links_of_pages_in_other_languages_and_of_unwanted_files_are_not_followed() -> None:
    with opened(languages=["en", "de-AT"], deny_content_types=["application/*"]) as guide:
        tell(guide, fetched(f"{A}1", f"{A}en", language="en-GB"), fetched(f"{A}2", f"{A}de", language="de"))
        tell(guide, fetched(f"{A}3", f"{A}fr", language="fr"), fetched(f"{A}4", f"{A}nobody-said"))
        tell(guide, fetched(f"{A}5", f"{A}feed", content_type="application/rss+xml; charset=utf-8"))
        assert set(asked(guide)) == {f"{A}en", f"{A}de", f"{A}nobody-said"}


# hosts of seeds


def test_only_hosts_of_seeds_are_visited_and_those_they_redirect_to() -> None:
    with opened(seed_hosts_only=True) as guide:
        guide.seed("default", [A, B])
        tell(guide, fetched(A, f"{A}1", f"{B}1", "https://c.org/1", redirected_to="https://www.a.org/"))
        tell(guide, fetched(f"{A}2", "https://www.a.org/3"))
        assert set(asked(guide)) == {B, f"{A}1", f"{B}1", "https://www.a.org/3"}
        assert state_of(guide, "https://c.org/1") == "dropped"
        assert "host of no seed" in str(guide.explain("default", "https://c.org/1")["filters"])


def test_hosts_of_seeds_are_known_after_a_restart_and_from_before_it_was_wanted(tmp_path: Path) -> None:
    with opened(str(tmp_path)) as guide:
        guide.seed("default", [A])
    with Guide.open(str(tmp_path), clock=ManualClock(NOW + 9)) as guide:
        guide.patch("default", {"policy": {"seed_hosts_only": True}})
        tell(guide, fetched(f"{A}x", f"{A}1", f"{B}1"))
        assert set(asked(guide)) == {A, f"{A}1"}


# how much, how fast


def test_a_domain_gets_so_many_places_in_an_answer_all_its_hosts_together() -> None:
    found = [f"https://{host}.example.org/{n}" for host in "abc" for n in range(4)] + [f"{B}1"]
    rule = diversity.build(Definition(policy=Policy(max_per_host=2, max_per_domain=3)))
    kept = rule.keep(batch(found), question())
    assert [url for url, keep in zip(found, kept.tolist(), strict=True) if keep] == [
        found[0],
        found[1],
        found[4],
        f"{B}1",
    ]


def test_a_host_that_takes_long_is_asked_more_slowly_and_others_are_not() -> None:
    clock = ManualClock(NOW)
    policy = {**OPEN, "default_delay_s": 1, "horizon_s": 60, "delay_factor": 2.0}
    with Guide.open(":memory:", clock=clock) as guide:
        guide.define("default", {"policy": policy})
        tell(guide, fetched(A, *(f"{A}{n}" for n in range(3)), elapsed_ms=4_000))
        tell(guide, fetched(B, *(f"{B}{n}" for n in range(3)), elapsed_ms=100))
        clock.advance(60)
        given = ask(guide)["assigned_urls"]
        waits = {queue: sorted(one["not_before_ms"] for one in given if queue in one["url"]) for queue in (A, B)}
    assert waits == {A: [0, 8_000, 16_000], B: [0, 1_000, 2_000]}


def test_slowness_alone_holds_nobody_back_for_ever_and_no_pacing_means_none() -> None:
    found = batch([f"{A}1", f"{A}2"], median_ms=[900_000.0])
    assert politeness.Politeness(1.0, 60.0, False, 1.0).wait(found, question()).tolist() == [0.0, 30.0]
    assert politeness.Politeness(0.0, 60.0, False, 1.0).wait(found, question()).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("kind", "types", "is_one"),
    [
        ("image/png", ["image/*"], True),
        ("image/png", ["text/html", "image/png"], True),
        ("image/png", ["IMAGE/PNG"], True),
        ("application/atom+xml", ["application/*+xml"], True),
        ("application/xml", ["application/*+xml"], False),
        ("text/html", [], False),
        ("ab", ["ab*b"], False),
    ],
)
def test_a_content_type_is_one_of_a_list(kind: str, types: list[str], is_one: bool) -> None:
    assert is_kind(kind, types) is is_one


def test_a_scope_that_is_replaced_leaves_nothing_behind() -> None:
    """A definition with a hundred thousand domains kept 10 MB for each time it was changed."""
    old = scope.Scope(deny=frozenset({"a.org"}), most_known=3)
    for _ in range(2):
        assert [old.covers(f"{name}.org") for name in "abcdefgh"] == [False] + [True] * 7
    assert len(old.known) <= 3
    gone = ref(old)
    del old
    collect()
    assert gone() is None
