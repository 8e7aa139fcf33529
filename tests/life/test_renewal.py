"""What waits already is judged anew when the rules change, some at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide import Guide
from crawlguide.guide.crawl import crawls as crawls_module
from crawlguide.testing import ManualClock
from tests.life.common import B, numbers, pages, policy
from tests.support import asked, fetched, state_of, tell

if TYPE_CHECKING:
    from pathlib import Path


def waiting(guide: Guide) -> int:
    return int(numbers(guide)["queued"])


def test_a_large_frontier_is_renewed_in_steps_and_not_in_the_request(
    guide: Guide, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawls_module, "RENEWED_AT_ONCE", 50)
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 2)
    guide.seed("default", pages(500))
    guide.edit_rules("default", {"ban": {"patterns": ["/[0-9]+$"]}})
    left = [waiting(guide)]
    assert 300 <= left[0] < 500
    while left[-1]:
        guide._run(guide._guide._guide.upkeep())
        left.append(waiting(guide))
        assert left[-1] < left[-2]
    assert numbers(guide)["dropped"] == {"banned": 500}


def test_without_upkeep_asks_bring_it_to_its_end(guide: Guide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 0)
    tell(guide, fetched("https://c.org/", *pages(1_000), relevance=0.9))
    tell(guide, fetched("https://c.org/2", B, relevance=0.1))
    guide.edit_rules("default", {"priority": {"hosts": {"a.org": 0.0}}})
    for _ in range(11):
        asked(guide, "c-1", 1)
    assert state_of(guide, B) == "leased"


def test_a_restart_in_the_middle_begins_it_anew(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawls_module, "PAGES_AT_ONCE", 2)  # one for those that were dropped before, of which are none
    monkeypatch.setattr(crawls_module, "RENEWED_AT_ONCE", 100)
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        policy(guide)
        guide.seed("default", pages(250))
        guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
        assert waiting(guide) == 150
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        guide.rules("default")
        for _ in range(3):
            guide._run(guide._guide._guide.upkeep())
        assert waiting(guide) == 0
