"""What the filter `traps` keeps of links when they are told, and in which order it judges them."""

from __future__ import annotations

import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.messages import Fetch, Outlink
from crawlguide.core.patterns import Patterns
from crawlguide.core.types import Lesson
from crawlguide.guide import intake
from crawlguide.policy.traps import Traps
from crawlguide.policy.traps.novelty import START
from tests.support import CRAWL, NOW

A = "https://a.org/"
RULES = intake.Rules(judge=lambda _: float("nan"), verdict=lambda _: None)


def built() -> Traps:
    return Traps(Patterns([], "policy.trap_patterns"))


def lesson(*links: str) -> Lesson:
    """A page was fetched, and nobody knew its links before."""
    page = Fetch(url=A, status=200, outlinks=[Outlink(url=link) for link in links])
    told = intake.reported([page], CRAWL, "c-1", NOW, RULES)
    return Lesson(NOW, told.fetches, texts([""]), texts([""]), told.links, np.ones(len(links), np.bool_))


def unknown(rule: Traps, *links: str) -> list[str]:
    """Links whose texts an ask would have to read."""
    ids = np.array([urls.identity(link) for link in links], np.uint64)
    return [links[row] for row in rule.memory.numbers.find(ids)[1].tolist()]


def test_links_into_a_template_with_an_account_need_no_reading_later() -> None:
    rule = built()
    rule.memory.novelty.number("a.org", f"{A}x/1")
    rule.learn(lesson(f"{A}x/2", f"{A}y/2"))
    assert unknown(rule, f"{A}x/2", f"{A}y/2") == [f"{A}y/2"]


def test_a_link_that_would_speak_for_its_template_is_still_read() -> None:
    rule = built()
    rule.memory.novelty.number("a.org", f"{A}x/1", suspicion=0.5)
    rule.learn(lesson(f"{A}x/2"))
    assert unknown(rule, f"{A}x/2") == [f"{A}x/2"]


def test_a_link_is_judged_by_what_was_known_when_it_was_found() -> None:
    rule, doubtful, plain = built(), f"{A}browse/by/name/by", f"{A}browse/by/name/x"
    part = rule.memory.novelty.number("a.org", f"{A}browse/1")
    for _ in range(int(START / 2)):
        rule.memory.novelty.note(part, 1.0, 0.0)
    rule.memory.shut.add("a.org")
    found = rule.sight(["a.org"] * 3, [doubtful, plain, doubtful], ["a.org"] * 3, np.arange(3, dtype=np.uint64))
    assert [why is not None for why in found] == [True, False, False]
