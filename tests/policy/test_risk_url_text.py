"""The kernel forms URLs for the model of risk as plain code does, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlguide.core import urls as addresses
from crawlguide.core.errors import UrlError
from crawlguide.policy.risk import url_text
from crawlguide.policy.risk.url_text import MOST_BYTES, url_texts

RISK = Path(__file__).parents[3] / "shared" / "data" / "risk" / "urls.parquet"
HOSTS = """
a.org www.a.org www.co.uk WWW.a.b.example.co.uk a.org. a.org.:81 www.org localhost 192.0.2.7 [2001:db8::1] a.org:8080
[2001:db8::1]:81 www.a.org:81 www.192.0.2.7.nip.io user@www.a.org user:p@a.org:8 xn--bcher-kva.example 1.2.example .
"""
rests = st.text("aB/?&=.%~@:1", max_size=30) | st.sampled_from(["x" * 500, "a/?" + "q" * 500, "//", "a//?b", "?"])
urls = st.builds(lambda scheme, host, rest: f"{scheme}://{host}/{rest}", st.sampled_from(["http", "https"]),
                 st.sampled_from([*HOSTS.split(), "h" * 500 + ".org"]), rests)  # fmt: skip


def plain(url: str) -> tuple[bytes, tuple[int, ...]]:
    """host/path?query, and its seams."""
    queue = addresses.queue(url)
    rest = url[url.index("/", 8) : MOST_BYTES].lower()
    host, domain = addresses.host_of(queue), addresses.domain_of(queue)
    is_address = host.startswith("[") or host.replace(".", "").isdigit()
    host = host.removeprefix("www.") if len(host) > len(domain) else host
    path = rest.partition("?")[0].rstrip("/")
    rest = path + rest[len(rest.partition("?")[0]) :]
    text = (host + (rest or "/")).encode()
    ends = len(host), len(host) + len(path), len(text)
    return text, (0, max(len(host) - len(domain), 0), *ends, int(is_address), int(queue != addresses.host_of(queue)))


def canonical(given: Sequence[str]) -> list[str]:
    found = []
    for url in given:
        try:
            found.append(addresses.canonical(url))
        except UrlError:
            continue
    return found


def check(known: Sequence[str]) -> None:
    text, seams = url_texts(known)
    for url, row in zip(known, seams.tolist(), strict=True):
        start, end = row[0], row[4]
        relative = tuple(place - start for place in row[:5]) + tuple(row[5:])
        assert (text[start:end].tobytes(), relative) == plain(url), url


@given(st.lists(urls, max_size=10))
@settings(max_examples=300, deadline=None)
def test_any_url_has_its_plain_form(given: list[str]) -> None:
    check(canonical(given))


def test_real_urls_have_their_plain_forms() -> None:
    if not RISK.exists():
        pytest.skip("the URLs of ../shared are not here")
    import pyarrow.parquet as pq

    check(canonical(pq.read_table(RISK)["url"].to_pylist()[::7]))


def test_long_names_and_passwords_are_not_remembered() -> None:
    url_text._domain_size.cache_clear()
    url_texts([f"https://{number}{'n' * 5_000}:p@a.example/" for number in range(20)])
    assert url_text._domain_size.cache_info().currsize == 1


def test_what_is_no_address_moves_no_other() -> None:
    """Clients of URLFrontier spell URLs as they like."""
    plain_one = "https://d.example/e?f=1"
    text, seams = url_texts(["nourl", "http://a.example", "http://a.example/b\nc", plain_one])
    alone, of_one = url_texts([plain_one])
    start, end = seams[-1, 0], seams[-1, 4]
    assert text[start:end].tobytes() == alone[of_one[0, 0] : of_one[0, 4]].tobytes()
