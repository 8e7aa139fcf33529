"""What the kernels find in URLs is what plain patterns say of them, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlguide.core import urls as addresses
from crawlguide.core.errors import UrlError
from crawlguide.policy.traps.duplicates import FirstOwners
from crawlguide.policy.traps.evidence import anchor_lines, count_links, skeleton
from crawlguide.policy.traps.explain import normal_form, suspicion
from crawlguide.policy.traps.url_scan import IS_VARIANT, NORMAL_FORM, SLUG, WHOLE, UrlScan, scan_urls
from tests.policy.plain_templates import link_words, template

RISK = Path(__file__).parents[3] / "shared" / "data" / "risk" / "urls.parquet"
EVERY = 23  # of the URLs there
YEARS = (None, 2026, 1971)

WORDS = """
a b news shop Calendar calendars kalender cal agenda ical-x month week day date year yr start_date to_year 2026 2041
1999 2026-04 2041/4/12 2031.12.1 2024_13 204104 20410412 2041-04-5 12 007 1001 100001 9999999999999999 sid PHPSESSID
jsessionid osess ssession_id cfid s_id evd7tesvnacrmu5ms0vj0rrb53 aaaaaaaaaaaaaa 12345678 ab%2F12345678 sort sort_by
SortOrder order dir direction asc DESC up d view per_page filter filter[a_b] filters%5Bx%5d filter[a-b] page paged p
cursor action edit editor history do diff login oldid replytocom add-to-cart redirect_url utm_source utm_ amp;amp;
a-long-story some_word.html xy-ab ..
"""
PIECES = WORDS.split()
SEAMS = ["/", "/", "/", "&", "=", "?", ";", "-", "_", ".", "", "%"]


def canonical(rest: str, host: str = "a.org") -> str:
    try:
        return addresses.canonical(f"https://{host}/{rest}")
    except UrlError:
        return f"https://{host}/"


pieces = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(SEAMS)), max_size=14)
patched = pieces.map(lambda found: canonical("".join(piece + seam for piece, seam in found)))
anything = st.text("ab/?&=;-_.%[]0129", max_size=60).map(canonical)
long = st.tuples(st.sampled_from(["a/", "x1/", "a&", "q=1&", "word-"]), st.integers(1, 500)).map(
    lambda found: canonical(found[0] * found[1])
)
many = st.lists(patched | anything | long, min_size=1, max_size=20)


def one_to_one(hashes: Sequence[int], texts: Sequence[str]) -> bool:
    """Are equal texts equal hashes, and different ones different?"""
    pairs = set(zip(hashes, texts, strict=True))
    return len(pairs) == len({code for code, _ in pairs}) == len({text for _, text in pairs})


def check(urls: Sequence[str]) -> None:
    for year in YEARS:
        found = scan_urls(urls, year)
        plain = [suspicion(url, year).probability for url in urls]
        wrong = np.flatnonzero(found.suspicion != plain).tolist()
        assert [(urls[row], found.suspicion[row], plain[row]) for row in wrong[:5]] == []
    check_templates(found, urls)
    check_forms(found, urls)


def check_templates(found: UrlScan, urls: Sequence[str]) -> None:
    own, coarse_own, fine, coarse = found.budget_keys.tolist()
    known = [template(url) for url in urls]
    assert one_to_one(fine + coarse, [one.fine for one in known] + [f" {one.coarse}" for one in known])
    assert [not code for code in own] == [one.fine == "/" for one in known]
    away = [
        (code, f"{addresses.queue(url)}{one.fine}") for code, url, one in zip(own, urls, known, strict=True) if code
    ]
    named = [f"{addresses.queue(url)} {one.coarse}" for url, one in zip(urls, known, strict=True)]
    assert one_to_one([code for code, _ in away] + coarse_own, [name for _, name in away] + named)


def check_forms(found: UrlScan, urls: Sequence[str]) -> None:
    forms = [normal_form(url) for url in urls]
    assert one_to_one(found.code(NORMAL_FORM).tolist(), forms)
    assert one_to_one(found.code(WHOLE).tolist(), urls)
    assert found.code(IS_VARIANT).tolist() == [form != url for form, url in zip(forms, urls, strict=True)]
    words = [link_words(url, "") for url in urls]
    assert one_to_one(found.code(SLUG).tolist(), words)
    assert (found.code(SLUG) == 0).tolist() == [not slug for slug in words]


@given(many)
@settings(max_examples=300, deadline=None)
def test_any_url_is_scanned_as_the_patterns_say(urls: list[str]) -> None:
    check(urls)


def test_real_urls_are_scanned_as_the_patterns_say() -> None:
    if not RISK.exists():
        pytest.skip("the URLs of ../shared are not here")
    import pyarrow.parquet as pq

    check(list(dict.fromkeys(canonical_or_home(url) for url in pq.read_table(RISK)["url"].to_pylist()[::EVERY])))


def canonical_or_home(url: str) -> str:
    try:
        return addresses.canonical(url)
    except UrlError:
        return "https://a.org/"


KNOWN = ["Next 11", " next 12", "next\n1", "next 1\n", "ÄÖ 1", "äö 2", "٣", ""]


@given(st.lists(st.text(max_size=12) | st.sampled_from(KNOWN), min_size=1, max_size=20))
@settings(deadline=None)
def test_a_link_is_an_echo_if_an_earlier_one_had_the_skeleton_of_its_anchor(anchors: list[str]) -> None:
    count, skeletons = len(anchors), [skeleton(anchor) for anchor in anchors]
    nothing, ids = np.zeros(count, np.uint64), np.arange(count, dtype=np.uint64)
    known, counts = FirstOwners(1 << 20), np.zeros((1, 3), np.int64)
    count_links(  # type: ignore[no-untyped-call]
        np.zeros(count, np.int64), nothing, nothing, nothing, ids, nothing[:1], np.zeros(count, np.bool_),
        anchor_lines(anchors), known.keys, known.owners, known.slots, counts,
    )  # fmt: skip
    spoken = [one for one in skeletons if one]
    assert counts[0, 0] == len(spoken) - len(set(spoken))


def test_no_urls_have_no_suspicion() -> None:
    assert scan_urls([], None).suspicion.shape == (0,)


def test_a_line_end_in_a_url_moves_no_other() -> None:
    """Clients of URLFrontier spell URLs as they like."""
    odd, plain = "http://a.example/b\nc", "https://d.example/e?f=1"
    assert scan_urls([odd, plain], None).code(WHOLE).tolist()[1] == scan_urls([plain], None).code(WHOLE).tolist()[0]
