"""What the filter `traps` keeps of links when they are told, and in which order it judges them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.messages import Fetch, Outlink
from crawlguide.core.notebook import Notebook
from crawlguide.core.patterns import Patterns
from crawlguide.core.types import Lesson
from crawlguide.guide.tell.intake import IntakeRules, reported
from crawlguide.policy.traps import Traps, judge_urls
from crawlguide.policy.traps.duplicates import FirstOwners, StoredFirstOwners
from crawlguide.policy.traps.template_budgets import ACCOUNT, START
from crawlguide.testing import ManualClock
from tests.policy.plain_templates import account
from tests.support import CRAWL, NOW, ask, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path

A = "https://a.org/"
OPEN = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "risk_threshold": 1.0}
RULES = IntakeRules(judge=lambda _: float("nan"), verdict=lambda _: None)


def built() -> Traps:
    return Traps(Patterns([], "policy.trap_patterns"))


def lesson(*links: str) -> Lesson:
    """A page was fetched, and nobody knew its links before."""
    page = Fetch(url=A, status=200, outlinks=[Outlink(url=link) for link in links])
    told = asyncio.run(reported([page], CRAWL, "c-1", NOW, RULES))
    return Lesson(NOW, told.fetches, texts([""]), texts([""]), told.links, np.ones(len(links), np.bool_))


def unknown(rule: Traps, *links: str) -> list[str]:
    """Links whose texts an ask would have to read."""
    ids = np.array([urls.identity(link) for link in links], np.uint64)
    return [links[row] for row in rule.memory.numbers.get(ids)[1].tolist()]


def test_links_into_a_template_with_an_account_need_no_reading_later() -> None:
    rule = built()
    account(rule.memory.novelty, "a.org", f"{A}x/1")
    rule.learn(lesson(f"{A}x/2", f"{A}y/2"))
    assert unknown(rule, f"{A}x/2", f"{A}y/2") == [f"{A}y/2"]


def test_a_link_that_would_speak_for_its_template_is_still_read() -> None:
    rule = built()
    account(rule.memory.novelty, "a.org", f"{A}x/1", suspicion=0.5)
    rule.learn(lesson(f"{A}x/2"))
    assert unknown(rule, f"{A}x/2") == [f"{A}x/2"]


def test_a_link_is_judged_by_what_was_known_when_it_was_found() -> None:
    rule, doubtful, plain = built(), f"{A}browse/by/name/by", f"{A}browse/by/name/x"
    part = account(rule.memory.novelty, "a.org", f"{A}browse/1")
    for _ in range(int(START / 2)):
        rule.memory.novelty.record_page(part, 1.0, 0.0, copied=True)
    rule.memory.shut.add("a.org")
    found = rule.judge_links(["a.org"] * 3, [doubtful, plain, doubtful], ["a.org"] * 3, np.arange(3, dtype=np.uint64))
    assert [why is not None for why in found] == [True, False, False]


def test_budgets_contents_and_titles_lie_in_the_notebook() -> None:
    notebook, rule = Notebook(), built()
    rule.remember(notebook)
    number = account(rule.memory.novelty, "a.org", f"{A}x/1")
    rule.memory.novelty.record_page(number, 5.0, 0.0)
    assert not rule.memory.contents.owned_by_another("same", 1)
    again = built()
    again.remember(notebook)
    assert account(again.memory.novelty, "a.org", f"{A}x/2") == number
    assert again.memory.novelty.used[number] == 5.0
    assert again.memory.contents.owned_by_another("same", 2)


def test_a_notebook_that_is_read_anew_wins_over_what_is_inherited() -> None:
    before, after, lent = built(), built(), Notebook()
    before.remember(Notebook())
    after.remember(lent)
    after.inherit(before)
    assert after.memory.novelty.sheet is lent.sheet("trap.acc", ACCOUNT)


def test_a_stored_table_grows_and_keeps_most_of_what_it_holds() -> None:
    kept = StoredFirstOwners()
    for number in range(5_000):
        kept.owned_by_another(str(number), number)
    known = sum(kept.owned_by_another(str(number), 9_999) for number in range(5_000))
    assert known > 0.7 * 5_000  # of two that claim one place the older is forgotten
    assert kept.sheet.used <= 1 << 16


def test_a_guide_that_starts_anew_knows_its_traps(tmp_path: Path) -> None:
    guide = Guide.open(str(tmp_path), clock=ManualClock(NOW))
    guide.define("default", {"policy": OPEN})
    tell(guide, *(fetched(f"{A}soft/{n}", title="Sorry", content_hash="same") for n in range(20)))
    guide.close()
    with Guide.open(str(tmp_path), clock=ManualClock(NOW + 60)) as guide:
        tell(guide, fetched(A, f"{A}soft/99"))
        assert ask(guide)["metadata"]["dropped"] == {"traps": 1}


@pytest.mark.parametrize("slots", [64, 1 << 12])
def test_first_owners_that_grow_know_what_a_table_of_full_size_knows(slots: int) -> None:
    chance = np.random.default_rng(slots)
    growing, full = FirstOwners(slots), FirstOwners(slots)
    full._clear(slots)
    for _ in range(60):
        keys = chance.integers(1, 6_000, 40).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        owners = chance.integers(1, 9, 40).astype(np.uint64)
        verdicts = [np.zeros(40, np.int8), np.zeros(40, np.int8)]
        for known, found in zip((growing, full), verdicts, strict=True):
            known.expect(40)
            variant, plain = np.ones(40, np.uint64), np.zeros(40)
            judge_urls(plain, keys, owners, variant, 0.9, known.keys, known.owners, known.slots, found)  # type: ignore[no-untyped-call]
        assert verdicts[0].tolist() == verdicts[1].tolist()
        rested = FirstOwners(slots)
        rested.unpack(growing.packed())
        growing = rested
    assert len(growing.keys) <= slots
