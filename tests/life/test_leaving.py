"""What a crawler held goes back when it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest, NotFound
from crawlguide.testing import ManualClock
from tests.guide.common import UNPACED
from tests.life.common import numbers, pages
from tests.support import asked, state_of

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_crawler_holds_goes_back(guide: Guide) -> None:
    guide.seed("default", pages(5))
    given = asked(guide, "c-1", 3)
    assert guide.release("default", "c-1") == 3
    assert set(asked(guide, "c-2", 9)) >= set(given)


def test_releasing_twice_gives_nothing_back_twice(guide: Guide) -> None:
    guide.seed("default", pages(2))
    asked(guide, "c-1")
    assert [guide.release("default", "c-1"), guide.release("default", "c-1")] == [2, 0]


def test_others_keep_what_they_hold(guide: Guide) -> None:
    guide.seed("default", pages(4))
    asked(guide, "c-1", 2)
    held = asked(guide, "c-2", 2)
    guide.release("default", "c-1")
    assert [state_of(guide, url) for url in held] == ["leased", "leased"]


def test_what_ended_by_itself_is_not_counted_as_released(guide: Guide, clock: ManualClock) -> None:
    guide.seed("default", pages(2))
    asked(guide, "c-1")
    clock.advance(1_000.0)
    assert guide.release("default", "c-1") == 0


def test_a_release_is_neither_a_fetch_nor_a_failure(guide: Guide) -> None:
    guide.seed("default", pages(2))
    asked(guide, "c-1")
    guide.release("default", "c-1")
    found = numbers(guide)
    assert (found["queued"], found["leased"], found["fetches"], found["failed"]) == (2, 0, 0, 0)


def test_releasing_in_a_crawl_that_is_not_there_makes_none(guide: Guide) -> None:
    with pytest.raises(NotFound):
        guide.release("nobody", "c-1")
    assert "nobody" not in guide.stats()["crawls"]


@pytest.mark.parametrize("crawler", ["", "x" * 201, 7, None])
def test_a_crawler_without_a_name_is_refused_by_name(guide: Guide, crawler: Any) -> None:
    with pytest.raises(MalformedRequest) as wrong:
        guide.release("default", crawler)
    assert wrong.value.field == "crawler_id"


def test_a_release_survives_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        guide.define("default", {"policy": UNPACED})
        guide.seed("default", pages(3))
        asked(guide, "c-1")
        assert guide.release("default", "c-1") == 3
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        assert numbers(guide)["leased"] == 0
        assert len(asked(guide, "c-2")) == 3
