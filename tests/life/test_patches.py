"""Definitions that are changed in parts."""

from __future__ import annotations

from typing import Any

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest, NotFound
from tests.guide.common import UNPACED
from tests.life.common import A, B
from tests.support import asked


def test_a_patch_changes_what_it_names_and_nothing_else(guide: Guide) -> None:
    guide.define("default", {"goal": {"topic": "tea"}, "policy": UNPACED | {"max_retries": 7}})
    found = guide.patch("default", {"policy": {"deny_domains": ["a.org"]}, "limits": {"max_pages": 9}})
    assert found["crawl_id"] == "default"
    definition = found["definition"]
    assert (definition["goal"]["topic"], definition["policy"]["max_retries"]) == ("tea", 7)
    assert (definition["policy"]["deny_domains"], definition["limits"]["max_pages"]) == (["a.org"], 9)


def test_a_scope_changes_while_the_crawl_runs(guide: Guide) -> None:
    guide.patch("default", {"policy": {"allow_domains": ["b.org"]}})
    guide.seed("default", [A, B])
    assert asked(guide) == [B]
    guide.patch("default", {"policy": {"allow_domains": []}})
    assert asked(guide) == [A]


def test_null_brings_a_field_back_to_its_default(guide: Guide) -> None:
    found = guide.patch("default", {"policy": {"max_per_host": None}, "limits": None})
    assert found["definition"]["policy"]["max_per_host"] == 5
    assert found["definition"]["policy"]["default_delay_s"] == 0


def test_a_patch_keeps_rules_and_a_pause(guide: Guide) -> None:
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.pause("default")
    found = guide.patch("default", {"goal": {"topic": "tea"}})
    assert found["state"] == "paused"
    assert found["definition"]["rules"]["ban"]["hosts"] == ["a.org"]


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"polcy": {}}, "polcy"),
        ({"polcy": None}, "polcy"),
        ({"policy": {"alow_domains": None}}, "policy.alow_domains"),
        ({"policy": {"crawlers": {"c.1": {"max": None}}}}, "policy.crawlers.c.1.max"),
        ({"policy": {"max_per_host": -1}}, "policy.max_per_host"),
        ({"policy": 7}, "policy"),
        ({"strategy": {"kind": "nobody"}}, "strategy.kind"),
    ],
)
def test_a_wrong_patch_is_refused_by_name(guide: Guide, patch: dict[str, Any], field: str) -> None:
    before = guide.patch("default", {})
    with pytest.raises(MalformedRequest) as wrong:
        guide.patch("default", patch)
    assert wrong.value.field == field
    assert guide.patch("default", {}) == before


def test_a_crawl_that_is_not_there_is_not_patched_into_being(guide: Guide) -> None:
    with pytest.raises(NotFound):
        guide.patch("nobody", {})
