"""What a strategy has learned stays when its crawl is defined anew."""

from __future__ import annotations

from typing import Any

from crawlguide import Guide
from crawlguide.core.types import Crawl


def predictor(guide: Guide) -> Any:
    inner = guide._guide._guide
    active = guide._run(inner.crawls.get(Crawl("default", "default"), inner.clock.now()))
    return active.strategy.guarded.parts[0].predictor


def test_a_rule_or_a_patch_leaves_what_was_learned_and_another_strategy_begins_anew(guide: Guide) -> None:
    before = predictor(guide)
    guide.edit_rules("default", {"ban": {"hosts": ["a.org"]}})
    guide.patch("default", {"limits": {"max_pages": 7}})
    assert predictor(guide) is before
    guide.patch("default", {"strategy": {"kind": "random"}})
    assert predictor(guide) is not before
