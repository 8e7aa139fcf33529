"""No answer is over its budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from crawlguide.testing import ManualClock
from tests.guide.common import HOSTS, A, pages
from tests.support import ask, fetched, tell


def test_estimated_bytes_stay_within_the_budget(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(50)))
    given_out = ask(unpaced, max_urls=50, max_bytes=1_000_000)["assigned_urls"]
    assert 0 < sum(one["estimated_bytes"] for one in given_out) <= 1_000_000


def test_estimated_times_stay_within_timeout_times_concurrency(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(50)))
    given_out = ask(unpaced, max_urls=50, timeout_ms=2_000, metadata={"concurrency": 3})["assigned_urls"]
    assert 0 < sum(one["estimated_fetch_ms"] for one in given_out) <= 6_000


def test_without_a_word_on_concurrency_it_is_eight(unpaced: Guide) -> None:
    unpaced.seed("default", list(pages(200)))
    given_out = ask(unpaced, max_urls=200, timeout_ms=2_000)["assigned_urls"]
    assert sum(one["estimated_fetch_ms"] for one in given_out) == 16_000


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, "8", True])
def test_a_concurrency_that_is_no_count_is_refused_by_name(guide: Guide, concurrency: object) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        ask(guide, metadata={"concurrency": concurrency})
    assert refusal.value.field == "context.metadata.concurrency"


def test_estimates_follow_what_was_told_of_a_host(unpaced: Guide) -> None:
    tell(unpaced, *(fetched(f"{A}{n}", elapsed_ms=n * 100, bytes=n * 1_000) for n in (1, 2, 3)))
    unpaced.seed("default", [A + "next"])
    given_out = ask(unpaced)["assigned_urls"][0]
    assert (given_out["estimated_fetch_ms"], given_out["estimated_bytes"]) == (200, 2_000)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0, 20_000), st.floats(0, 5e6)), min_size=1, max_size=8),
    st.integers(0, 10_000_000),
    st.integers(1, 60_000),
    st.integers(1, 20),
)
def test_no_answer_is_over_its_budget(
    hosts: list[tuple[float, float]], max_bytes: int, timeout_ms: int, concurrency: int
) -> None:
    with Guide.open(":memory:", clock=ManualClock()) as guide:
        for number, (ms, size) in enumerate(hosts):
            links = pages(5, HOSTS[number])
            tell(guide, fetched(HOSTS[number], *links, elapsed_ms=ms, bytes=size))
        answer = ask(guide, "c", 40, max_bytes=max_bytes, timeout_ms=timeout_ms, metadata={"concurrency": concurrency})
        given_out = answer["assigned_urls"]
        assert sum(one["estimated_bytes"] for one in given_out) <= max_bytes
        assert sum(one["estimated_fetch_ms"] for one in given_out) <= timeout_ms * concurrency
