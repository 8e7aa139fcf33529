"""Traps: by the form of a URL, by what its template paid, and in whole crawls of webs that are full of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import MalformedRequest
from crawlguide.lab import synthetic
from crawlguide.policy import traps
from crawlguide.policy.traps.explain import normal_form, suspicion
from crawlguide.policy.traps.template_budgets import AT_ONCE, CLOSED, EXHAUSTED, OWN_PROBES, START, TemplateBudgets
from crawlguide.testing import ManualClock
from tests.policy.plain_templates import account, link_words, template
from tests.policy.trapped import AT, Endless, crawl
from tests.policy.unknown_traps import Facets, Feed, Mirror
from tests.support import ask, asked, batch, fetched, question, state_of, tell

SHARED = Path(__file__).parents[3] / "shared"
A = "https://a.org/"
OPEN = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "risk_threshold": 1.0}
YEAR = 2026


def much(url: str) -> float:
    return suspicion(url, YEAR).probability


def built(**policy: object) -> traps.Traps:
    rule = traps.build(Definition(policy=Policy(**policy)))  # type: ignore[arg-type]
    assert isinstance(rule, traps.Traps)
    return rule


# the form of a URL


@pytest.mark.parametrize(
    "url",
    [
        f"{A}docs/docs/docs/index.html",
        f"{A}shop/item/shop/item/7",
        f"{A}calendar/2093/04",
        f"{A}events/list?calendar=1&date=1871-04-01",
        f"{A}news/2093/04/12",
        f"{A}list?size=m&colour=red&size=m",
        f"{A}{'x/' * 40}",
        f"{A}{'word-' * 400}",
    ],
)
def test_some_forms_are_enough(url: str) -> None:
    assert much(urls.canonical(url)) >= traps.CERTAIN


@pytest.mark.parametrize(
    "url",
    [
        A,
        f"{A}wiki/HD_217107",
        f"{A}2024/05/13/a-story-of-the-week/",
        f"{A}releases/1999/12/",
        f"{A}article?id=2353075",
        f"{A}a-trade-agenda-for-2015/",
        f"{A}search?q=calendar",
        f"{A}en/guide/setup/linux/",
        f"{A}python/library/python",
    ],
)
def test_plain_pages_are_not_suspicious(url: str) -> None:
    assert much(url) < 0.5


def test_a_calendar_is_doubtful_now_and_certain_far_away() -> None:
    assert 0.5 <= much(f"{A}calendar/2026/11") < traps.CERTAIN <= much(f"{A}calendar/2041/11")


def test_where_nobody_knows_the_year_no_date_is_far_away() -> None:
    assert suspicion(f"{A}calendar/2041/11", None).probability < traps.CERTAIN


def test_a_session_is_doubtful_but_not_certain_since_a_whole_site_may_carry_one() -> None:
    assert 0.5 <= much(f"{A}view?PHPSESSID=evd7tesvnacrmu5ms0vj0rrb53") < traps.CERTAIN


def test_scores_are_a_column_of_single_precision() -> None:
    found = traps.score([A, "HTTPS://A.org/a/a/a/"])
    assert (found.dtype.name, found.shape) == ("float32", (2,))
    assert found[0] == 0.0
    assert traps.CERTAIN < found[1] <= 1.0


def test_no_urls_have_no_scores() -> None:
    assert traps.score([]).shape == (0,)


# templates


def test_pages_made_alike_have_one_template() -> None:
    assert template(f"{A}news/17/a-b") == template(f"{A}news/18/c-d-e")


def test_parameters_make_another_template_and_their_values_do_not() -> None:
    assert template(f"{A}list?a=1&b=2") == template(f"{A}list?b=3&a=4") != template(f"{A}list?a=1")


def test_the_bare_form_has_neither_session_nor_order() -> None:
    assert normal_form(f"{A}v/1?sid=0123456789abcdef&b=2&sort=name&a=1") == f"{A}v/1?a=1&b=2"
    assert normal_form(f"{A}v;jsessionid=99AF/1") == f"{A}v/1"


def test_what_says_more_than_an_order_stays() -> None:
    assert normal_form(f"{A}files?dir=images&order=4711") == f"{A}files?dir=images&order=4711"


def test_a_link_speaks_by_its_address_where_that_has_words() -> None:
    assert link_words(f"{A}a-long-story", "read more") == "a-long-story"
    assert link_words(f"{A}2026/11", "Next month 11") == "next month #"


# budgets


def test_a_template_that_pays_nothing_shuts_and_one_that_pays_does_not() -> None:
    budgets = TemplateBudgets()
    bad, good = account(budgets, "a.org", f"{A}bad/1"), account(budgets, "a.org", f"{A}good/1")
    for _ in range(int(START)):
        budgets.record_page(bad, 1.0, 0.0)
        budgets.record_page(good, 1.0, 0.5)
    left = budgets.left(np.array([bad, good], np.int32))
    assert left[0] <= 0 < left[1]


def test_what_is_a_trap_on_one_host_needs_less_proof_on_the_next_unless_it_pays_there() -> None:
    budgets = TemplateBudgets()
    first, second = account(budgets, "a.org", f"{A}x/1"), account(budgets, "b.org", "https://b.org/x/1")
    for _ in range(20):
        budgets.record_page(first, 1.0, 0.0)
    assert budgets.left(np.array([second], np.int32))[0] <= 0
    for _ in range(3):
        budgets.record_page(second, 1.0, 1.0)
    assert budgets.left(np.array([second], np.int32))[0] > 0


def test_dead_links_of_one_host_say_nothing_of_another() -> None:
    with Guide.open(":memory:", clock=ManualClock(AT)) as guide:
        guide.define("default", {"policy": OPEN})
        guide.seed("default", [A, "https://b.org/"])
        tell(guide, *(fetched(f"{A}old/{n}", status=404) for n in range(40)))
        tell(guide, fetched(A, f"{A}old/99"), fetched("https://b.org/", "https://b.org/old/1"))
        assert set(asked(guide)) == {"https://b.org/old/1"}


def test_home_pages_have_no_budget() -> None:
    assert account(TemplateBudgets(), "a.org", A) == 0


def test_a_template_that_disappointed_gets_little_in_one_answer() -> None:
    rule = built()
    number = account(rule.memory.novelty, "a.org", f"{A}x/1")
    rule.memory.novelty.record_page(number, 1.0, 0.0)
    kept = rule.keep(batch([f"{A}x/{n}" for n in range(10)]), question(at=AT))
    assert int(kept.sum()) == int(AT_ONCE)
    assert kept[: int(AT_ONCE)].all()


def test_the_number_of_templates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawlguide.policy.traps.template_budgets.MOST_ACCOUNTS", 100)
    budgets = TemplateBudgets()
    numbers = [account(budgets, f"h{n}.org", f"https://h{n}.org/x/y") for n in range(1_000)]
    assert (max(numbers), numbers[-1]) == (max(n for n in numbers if n <= 101), 0)
    assert budgets.left(np.array([0], np.int32))[0] == np.inf


# in a guide


def opened(**policy: object) -> Guide:
    guide = Guide.open(":memory:", clock=ManualClock(AT))
    guide.define("default", {"policy": {**OPEN, **policy}})
    return guide


def test_a_certain_trap_is_dropped_when_it_is_found_and_explained() -> None:
    with opened() as guide:
        tell(guide, fetched(A, f"{A}a/b/a/b/a/b", f"{A}good"))
        assert asked(guide) == [f"{A}good"]
        told = guide.explain("default", f"{A}a/b/a/b/a/b")
        assert (told["state"], told["reason"]) == ("dropped", "traps")
        assert "3 times in its path" in str(told["filters"])


def test_a_seed_is_never_a_trap() -> None:
    with opened() as guide:
        guide.seed("default", [f"{A}a/b/a/b/a/b"])
        assert asked(guide) == [f"{A}a/b/a/b/a/b"]


def test_switched_off_it_drops_nothing() -> None:
    with opened(traps=False) as guide:
        tell(guide, fetched(A, f"{A}a/b/a/b/a/b"))
        assert asked(guide) == [f"{A}a/b/a/b/a/b"]
        assert "off" in str(guide.explain("default", f"{A}a/b/a/b/a/b")["filters"])


def test_what_was_dropped_comes_back_when_it_is_switched_off() -> None:
    with opened() as guide:
        tell(guide, fetched(A, f"{A}a/b/a/b/a/b"))
        guide.patch("default", {"policy": {"traps": False}})
        assert asked(guide) == [f"{A}a/b/a/b/a/b"]


def test_the_second_order_of_the_same_filters_is_dropped() -> None:
    with opened() as guide:
        tell(guide, fetched(A, f"{A}list?a=1&b=2", f"{A}list?b=2&a=1"))
        assert asked(guide) == [f"{A}list?a=1&b=2"]


def test_the_same_page_in_another_session_is_dropped() -> None:
    with opened() as guide:
        tell(guide, fetched(A, *(f"{A}v/1?sid={n:016x}ab" for n in range(5)), f"{A}v/2?sid={9:016x}ab"))
        dropped = [one["url"] for one in guide.urls("default", "dropped")]
        assert sorted(dropped) == [f"{A}v/1?sid={n:016x}ab" for n in range(1, 5)]


def test_patterns_of_the_operator_are_traps_too() -> None:
    with opened(trap_patterns=["/wp-login", "replytocom="]) as guide:
        tell(guide, fetched(A, f"{A}wp-login.php", f"{A}good"))
        assert asked(guide) == [f"{A}good"]
        assert "trap_patterns" in str(guide.explain("default", f"{A}wp-login.php")["filters"])


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(MalformedRequest, match=r"policy\.trap_patterns\[1\]: expected an RE2 pattern"):
        traps.build(Definition(policy=Policy(trap_patterns=("fine", "(?=look)"))))


def test_a_template_that_shut_is_dropped_and_counted_and_links_into_it_are_dropped_on_sight() -> None:
    with opened() as guide:
        tell(guide, *(fetched(f"{A}soft/{n}", title="Sorry", content_hash="same") for n in range(20)))
        tell(guide, fetched(A, f"{A}soft/98", f"{A}soft/99"))
        assert ask(guide)["metadata"]["dropped"] == {"traps": 2}
        assert state_of(guide, f"{A}soft/98") == "dropped"
        tell(guide, fetched(f"{A}other", f"{A}soft/100", f"{A}soft/98"))
        assert (state_of(guide, f"{A}soft/100"), state_of(guide, f"{A}soft/98")) == ("dropped", "dropped")


def numbered(n: int, *more: str) -> dict[str, object]:
    """A page of a list, with the title of all its pages and nothing but the next ones behind it."""
    return fetched(f"{A}list/{n}", *more, title="List", content_hash=f"own {n}", bytes=100 + n)


def test_a_template_whose_titles_repeat_waits_behind_all_others_and_is_not_dropped() -> None:
    with opened() as guide:
        tell(guide, *(numbered(n, f"{A}list/{100 + n}") for n in range(9)))
        tell(guide, fetched(A, f"{A}list/98", f"{A}other/1"))
        assert asked(guide) == [f"{A}other/1"]
        assert state_of(guide, f"{A}list/98") == "queued"
        assert "tried when there is nothing else" in str(guide.explain("default", f"{A}list/98")["filters"])


def test_where_nothing_else_is_left_it_is_probed_until_that_was_in_vain_often_enough() -> None:
    clock, probed = ManualClock(AT), list[int]()
    with Guide.open(":memory:", clock=clock) as guide:
        guide.define("default", {"policy": OPEN})
        tell(guide, *(numbered(n, f"{A}list/{100 + n}", f"{A}list/{200 + n}") for n in range(9)))
        while ask(guide)["metadata"]["crawl_state"] != "exhausted" and len(probed) < 20:
            for one in guide.urls("default", "leased"):
                number = int(one["url"].rpartition("/")[2])
                tell(guide, numbered(number, f"{A}list/{1_000 + number}"))
                probed.append(number)
            clock.advance(1.0)
    assert len(probed) == OWN_PROBES


def test_a_probe_that_pays_makes_up_for_those_before() -> None:
    budgets = TemplateBudgets()
    number = account(budgets, "a.org", f"{A}x/1")
    budgets.record_page(number, 10 * START, 0.0)
    for paid in (0.0, 1.0, 0.0):
        budgets.record_page(number, 1.0, paid, probed=True)
    assert budgets.states(np.array([number], np.int32)).tolist() == [EXHAUSTED]
    budgets.record_page(number, 1.0, 0.0, probed=True)
    assert budgets.states(np.array([number], np.int32)).tolist() == [CLOSED]


def test_what_was_learned_stays_when_the_crawl_is_defined_anew() -> None:
    with opened() as guide:
        tell(guide, *(fetched(f"{A}soft/{n}", title="Sorry", content_hash="same") for n in range(20)))
        guide.patch("default", {"policy": {"max_per_host": 7}})
        tell(guide, fetched(A, f"{A}soft/99"))
        assert asked(guide) == []


def test_a_page_fetched_again_is_no_copy_of_itself() -> None:
    with opened() as guide:
        for n in range(20):
            tell(
                guide, fetched(f"{A}news/1", f"{A}news/{100 + n}", title="News", content_hash="same", fetch_time=str(n))
            )
        assert asked(guide)


def test_a_priority_set_by_hand_goes_before_a_budget() -> None:
    with opened() as guide:
        tell(guide, *(fetched(f"{A}soft/{n}", title="Sorry", content_hash="same") for n in range(20)))
        guide.seed("default", [{"url": f"{A}soft/99", "priority": 0.9}])
        assert asked(guide) == [f"{A}soft/99"]


# whole crawls; the webs are made from seeds that were not looked at while this was written


@pytest.mark.parametrize("seed", [101, 102, 103])
@pytest.mark.parametrize("judged", [False, True])
def test_little_of_a_crawl_is_wasted_in_traps_and_hardly_a_good_page_withheld(seed: int, judged: bool) -> None:
    web = synthetic.make(seed, pages=3_000, hosts=30)
    found = crawl(web, web.tasks()[0], 2_000, judged=judged)
    assert len(found.trapped) <= 0.01 * len(found.fetched)
    assert len(found.withheld) <= 0.005 * found.reachable


def test_without_the_filter_the_same_crawl_is_lost_in_them() -> None:
    web = synthetic.make(102, pages=3_000, hosts=30)
    found = crawl(web, web.tasks()[0], 2_000, traps=False)
    assert len(found.trapped) > 0.05 * len(found.fetched)


@pytest.mark.parametrize("seed", [201, 202])
def test_a_kind_of_trap_that_nobody_knew_is_found_out(seed: int) -> None:
    web = Endless(synthetic.make(seed, pages=3_000, hosts=30, traps=0))
    found = crawl(web, web.tasks()[0], 2_000, judged=True)
    assert 0 < len(found.trapped) <= 0.03 * len(found.fetched)
    assert len(found.withheld) <= 0.005 * found.reachable


@pytest.mark.parametrize("kind", [Facets, Mirror, Feed])
def test_so_are_kinds_that_came_later_than_the_filter(kind: type[Facets]) -> None:
    web = kind(synthetic.make(8001, pages=3_000, hosts=30, traps=0))
    found = crawl(web, web.tasks()[0], 1_500)
    assert 0 < len(found.trapped) <= 0.03 * len(found.fetched)
    assert len(found.withheld) <= 0.005 * found.reachable


# corpora, where they are there


def test_hardly_a_real_page_looks_like_a_trap() -> None:
    folder = SHARED / "data" / "webs" / "wikispeedia"
    if not folder.exists():
        pytest.skip("the recorded webs of ../shared are not here")
    from crawlguide.lab import web

    pages = sorted(web.open(folder).tasks()[0].relevant)
    assert (traps.score(pages) >= 0.5).mean() <= 0.01


def test_the_patterns_of_others_can_be_used() -> None:
    corpus = SHARED / "corpora" / "trap_regexes.jsonl"
    if not corpus.exists():
        pytest.skip("the corpora of ../shared are not here")
    known = [json.loads(line)["regex"] for line in corpus.read_text().splitlines()]
    used = tuple(dict.fromkeys(pattern for pattern in known if compiles(pattern)))
    assert len(used) > 300
    rule = built(trap_patterns=used)
    assert (
        rule.judge_links(
            ["a.org"] * 2,
            [f"{A}wiki?title=Special:Log&a=1&action=edit", f"{A}story"],
            [""] * 2,
            np.arange(2, dtype=np.uint64),
        )[0]
        is not None
    )


def compiles(pattern: str) -> bool:
    try:
        traps.build(Definition(policy=Policy(trap_patterns=(pattern,))))
    except MalformedRequest:
        return False
    return True


def test_a_catalogue_that_is_off_topic_and_tells_no_titles_is_no_trap() -> None:
    """Its pages lead to more of their kind, under numbers; whether they repeat themselves nobody has said."""
    clock, told = ManualClock(), 0
    with Guide.open(":memory:", clock=clock) as guide:
        guide.define("default", {"policy": OPEN})
        guide.seed("default", [A])
        for _ in range(20):
            given = [one["url"] for one in ask(guide, max_urls=5)["assigned_urls"]]
            pages = []
            for url in given:
                told += 1
                links = [{"url": f"/item-{3 * told + more}", "anchor": f"item {3 * told + more}"} for more in range(3)]
                pages.append({"url": url, "status": 200, "relevance": 0.0, "outlinks": links})
            if pages:
                guide.tell({"mcp_version": "2025-11", "crawler_id": "c-1", "fetches": pages})
            clock.advance(1.0)
        assert told > 50
        assert guide.stats("default")["crawls"]["default"]["dropped"] == {}
