"""Patterns that people write: what they may cost to compile and to keep."""

from __future__ import annotations

import resource
import time

import pytest

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.patterns import Patterns, check_budget

LARGE = [
    r"\pL{1000}",
    r"(\pL{31}){31}",
    r"((\pL|\pN|\pS){10}){100}",
    r"[\pL\pN\pM\pS]{0,1000}",
    r"(?i:\pL{500})",
    r"(\PL{30}){30}x",
]
MANY = {
    "40 of words": [rf"\pL{{{1 + number % 6}}}x{number}" for number in range(40)],
    "1000 long ones": [f"{'a' * 990}{number}" for number in range(1_000)],
    "1000 that may be empty": ["(?:a?){1000}"] * 1_000,
    "many of any characters": [".{1000}"] * 100,
}


@pytest.mark.parametrize("text", LARGE)
def test_a_pattern_that_unfolds_to_very_much_is_refused_at_once(text: str) -> None:
    began, held = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MalformedRequest, match=r"policy.include_patterns\[0\]: .*too large"):
        check_budget({"policy.include_patterns": [text]})
    assert time.process_time() - began < 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held < 32 * 1024


@pytest.mark.parametrize("texts", MANY.values(), ids=MANY)
def test_all_patterns_of_a_crawl_share_one_budget(texts: list[str]) -> None:
    half, began = len(texts) // 2, time.process_time()
    with pytest.raises(MalformedRequest, match="steps in all") as refused:
        check_budget({"policy.include_patterns": texts[:half], "rules.ban.patterns": texts[half:]})
    assert refused.value.field in {"policy.include_patterns", "rules.ban.patterns"}
    assert time.process_time() - began < 0.5


def test_a_thousand_patterns_of_the_usual_kind_are_no_matter() -> None:
    texts, began = [rf"/tag{number}/page/\d+" for number in range(1_000)], time.process_time()
    check_budget({"policy.exclude_patterns": texts})
    patterns = Patterns(texts, "policy.exclude_patterns")
    assert patterns.found("https://a.example/tag7/page/12") == [7]
    assert patterns.found("https://a.example/") == []
    assert time.process_time() - began < 0.5


def test_what_was_defined_before_there_was_a_budget_is_still_understood() -> None:
    with pytest.raises(MalformedRequest):
        check_budget({"policy.include_patterns": [r"\pL{100}"]})
    assert Patterns([r"\pL{100}"], "policy.include_patterns").found("ä" * 100) == [0]
