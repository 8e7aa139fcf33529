"""Metadata comes back as it was given."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from crawlguide.core.errors import MalformedRequest
from crawlguide.testing import ManualClock
from tests.guide.common import LEASE_S, A
from tests.support import ask, asked, fetched, tell

METADATA = {"label": "product", "nested": {"list": [1, 2.5, None, True, "ä"]}, "big": 2**53}


def test_metadata_of_a_seed_comes_back_unchanged(guide: Guide) -> None:
    guide.seed("default", [{"url": A, "metadata": METADATA}])
    assert ask(guide)["assigned_urls"][0]["metadata"] == METADATA


def test_metadata_of_a_link_comes_back_unchanged(guide: Guide) -> None:
    tell(guide, fetched(A) | {"outlinks": [{"url": "https://b.org/", "metadata": METADATA}]})
    assert ask(guide)["assigned_urls"][0]["metadata"] == METADATA


def test_metadata_comes_back_again_when_the_url_is_given_again(unpaced: Guide, clock: ManualClock) -> None:
    unpaced.seed("default", [{"url": A, "metadata": METADATA}])
    asked(unpaced)
    clock.advance(LEASE_S)
    assert ask(unpaced)["assigned_urls"][0]["metadata"] == METADATA


def test_metadata_of_four_kibibytes_is_taken(guide: Guide) -> None:
    metadata = {"x": "y" * (4_096 - len('{"x":""}'))}
    guide.seed("default", [{"url": A, "metadata": metadata}])
    assert ask(guide)["assigned_urls"][0]["metadata"] == metadata


def test_a_seed_with_more_metadata_is_refused_by_name(guide: Guide) -> None:
    with pytest.raises(MalformedRequest, match="metadata: expected at most 4096 bytes") as refusal:
        guide.seed("default", [A, {"url": A + "1", "metadata": {"x": "y" * 4_096}}])
    assert refusal.value.field == "urls[1]"


def test_a_link_with_more_metadata_comes_without_it(guide: Guide) -> None:
    heavy = {"url": "https://b.org/", "metadata": {"x": "y" * 4_096}}
    assert tell(guide, fetched(A) | {"outlinks": [heavy, {"url": "https://c.org/"}]})["discovered"] == 2
    assert all("metadata" not in given for given in ask(guide)["assigned_urls"])


def test_a_url_without_metadata_has_none_in_the_answer(guide: Guide) -> None:
    guide.seed("default", [A])
    assert "metadata" not in ask(guide)["assigned_urls"][0]
