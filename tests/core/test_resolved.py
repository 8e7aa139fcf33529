"""Links that are recognised without a parser are what the parser would have made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlguide.core import urls
from crawlguide.core.errors import UrlError

BASE = "https://www.example.co.uk:8443/a/b?c=d"
QUEUE = "www.example.co.uk:8443"
CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "url_cases.jsonl"
letters = st.text("abcXYZ019-_.~!$&()*+,;=:@/?%#\\ '\"xn|^`{}é\t", max_size=30)


def both(link: str) -> None:
    """The quick way and the long way agree, also about what is no URL."""
    try:
        expected = urls.canonical(link, BASE)
    except UrlError:
        with pytest.raises(UrlError):
            urls.resolved(link, BASE, QUEUE)
        return
    assert urls.resolved(link, BASE, QUEUE) == (expected, urls.queue(expected))


@settings(max_examples=2_000, deadline=None)
@given(st.one_of(letters, letters.map("/".__add__), letters.map("https://example.com/".__add__)))
@example("//other.org/x")
@example("/%2e%2e/x")
@example("/a/../b")
@example("/a/.hidden")
@example("/?a=%zz'")
def test_any_link_is_located_as_the_parser_says(link: str) -> None:
    both(link)


@settings(max_examples=1_000, deadline=None)
@given(st.text("abz019-.x", max_size=20), st.sampled_from(["http://", "https://"]))
@example("1.2.3.4", "http://")
@example("0x7f.1", "http://")
@example("xn--zca.com", "https://")
@example("a.xn--p1ai", "https://")
@example("a-.com", "https://")
@example("a.b.", "https://")
@example("ab--c.com", "https://")
def test_any_host_is_located_as_the_parser_says(host: str, scheme: str) -> None:
    both(f"{scheme}{host}/x")


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpora are not beside this checkout (../shared/corpora)")
def test_every_case_of_the_corpus_is_located_as_the_parser_says() -> None:
    for line in CORPUS.read_text().splitlines():
        link = json.loads(line).get("input")
        if isinstance(link, str):
            both(link)
