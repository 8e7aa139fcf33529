"""How many bytes files may have, and what becomes of those that are too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlguide import Guide
from crawlguide.policy.sizes import USUAL, Sizes
from crawlguide.testing import ManualClock
from tests.support import NOW, ask, asked, batch, fetched, state_of, tell

A = "https://a.org/"
OPEN = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "risk_threshold": 1.0, "traps": False}


def opened() -> Guide:
    guide = Guide.open(":memory:", clock=ManualClock(NOW))
    guide.define("default", {"policy": OPEN})
    return guide


def test_a_file_is_expected_to_weigh_what_such_files_weigh_and_a_page_what_its_host_says() -> None:
    found = Sizes().expected(batch([f"{A}x.iso", f"{A}y.PDF?z", f"{A}page", f"{A}odd.xyz"]))
    assert found.tolist()[:2] == [USUAL["iso"], USUAL["pdf"]]
    assert found[2:] != pytest.approx(found[2:])  # not known


def test_a_heavy_file_is_withheld_and_not_lost() -> None:
    with opened() as guide:
        tell(guide, fetched(A, f"{A}x.iso", f"{A}page", bytes=5_000))
        assert asked(guide, max_bytes=1_000_000) == [f"{A}page"]
        assert state_of(guide, f"{A}x.iso") == "queued"
        (one,) = ask(guide, max_bytes=10**9)["assigned_urls"]
        assert (one["url"], one["estimated_bytes"]) == (f"{A}x.iso", int(USUAL["iso"]))


def test_explain_says_why_it_is_withheld() -> None:
    with opened() as guide:
        tell(guide, fetched(A, f"{A}x.iso"))
        assert "700000000 bytes" in str(guide.explain("default", f"{A}x.iso")["filters"])


def test_what_a_crawl_meets_corrects_what_is_usual_and_teaches_what_is_not_known() -> None:
    with opened() as guide:
        tell(guide, *(fetched(f"{A}{n}.pdf", bytes=9_000) for n in range(30)))
        tell(guide, *(fetched(f"{A}{n}.xyz", bytes=3_000_000) for n in range(5)))
        tell(guide, *({"url": f"{A}{n}.odd", "error": "too_large"} for n in range(5)))
        tell(guide, fetched(A, f"{A}new.pdf", f"{A}new.xyz", f"{A}new.odd"))
        found = {one["url"]: one["estimated_bytes"] for one in ask(guide, max_bytes=10**9)["assigned_urls"]}
    assert 9_000 < found[f"{A}new.pdf"] < 30_000
    assert found[f"{A}new.xyz"] == pytest.approx(3_000_000, rel=0.01)
    assert found[f"{A}new.odd"] == pytest.approx(16_000_000, rel=0.01)


def test_what_was_met_outlives_a_restart_and_a_new_definition(tmp_path: Path) -> None:
    for again in (False, True):
        with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
            if not again:
                guide.define("default", {"policy": OPEN})
                tell(guide, *(fetched(f"{A}{n}.xyz", bytes=3_000_000) for n in range(5)))
            guide.define("default", {"policy": OPEN | {"max_retries": 1 + again}})
            tell(guide, fetched(A, f"{A}new{again}.xyz"))
            found = {one["url"]: one["estimated_bytes"] for one in ask(guide, max_bytes=10**9)["assigned_urls"]}
            assert found[f"{A}new{again}.xyz"] == pytest.approx(3_000_000, rel=0.01)
