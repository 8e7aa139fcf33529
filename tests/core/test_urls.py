"""One canonical form for every URL, and what is read off it: measured on the corpora of others, and by sentences."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlguide.core import urls
from crawlguide.core.errors import UrlError

CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"

# Two cases of the web platform tests hold a raw NUL inside path or query. WHATWG percent-encodes it; our rule
# "control characters are refused" wins over that: such a URL is never a link anybody meant.
RAW_NUL = {"https://x/\x00y", "https://x/?\x00y"}


def corpus(name: str) -> list[dict[str, Any]]:
    path = CORPORA / name
    if not path.exists():
        pytest.skip(f"no {name}: the corpora are not in {CORPORA}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def outcome(url: str, base: str | None = None) -> str | None:
    """The canonical form, None where it is refused."""
    try:
        return urls.canonical(url, base)
    except UrlError:
        return None


def expected(case: dict[str, Any]) -> str | None:
    if case["failure"] or case["input"] in RAW_NUL or not case["href"].startswith(("http://", "https://")):
        return None
    return str(case["href"]).partition("#")[0]


def test_every_case_of_the_web_platform_tests_has_the_form_they_expect() -> None:
    wrong = [
        (case["input"], case["base"], expected(case), found)
        for case in corpus("url_cases.jsonl")
        if (found := outcome(case["input"], case["base"])) != expected(case)
    ]
    assert wrong == []


def test_parts_agree_with_the_web_platform_tests() -> None:
    good = [case for case in corpus("url_cases.jsonl") if expected(case) is not None]
    wrong = [
        (case["href"], found)
        for case in good
        if (found := urls.parts(urls.canonical(case["input"], case["base"])))[1:]
        != (case["host"].removesuffix(f":{case['port']}"), case["port"], case["pathname"], case["search"].lstrip("?"))
    ]
    assert good
    assert wrong == []


@pytest.mark.parametrize("url", sorted(RAW_NUL))
def test_a_raw_nul_in_path_or_query_is_refused_although_whatwg_would_encode_it(url: str) -> None:
    with pytest.raises(UrlError, match="control character"):
        urls.canonical(url)


def test_every_international_name_becomes_the_ascii_name_the_standard_expects() -> None:
    wrong = []
    for case in corpus("idna_cases.jsonl"):
        if not case["input"]:  # an empty host is a missing host, tested below
            continue
        found = outcome("https://" + case["input"] + "/x")
        host = None if found is None else urls.parts(found).host
        if host != case["output"]:
            wrong.append((case["input"], case["output"], host))
    assert wrong == []


def test_every_case_of_the_public_suffix_list_has_its_registrable_domain() -> None:
    wrong = [
        (case["input"], case["registrable"], found)
        for case in corpus("psl_cases.jsonl")
        if (found := urls.registrable_domain(case["input"])) != case["registrable"]
    ]
    assert wrong == []


def test_canonicalising_any_case_of_the_normalisers_twice_changes_nothing() -> None:
    once = [found for case in corpus("url_normalise_cases.jsonl") if (found := outcome(case["input"])) is not None]
    assert len(once) > 100
    assert [outcome(url) for url in once] == once


@settings(deadline=None, max_examples=500)
@given(st.text(max_size=60))
@example(" \t\x1f")
@example("//h:80/a b?c d#e f")
@example("u:p@h:443/%zz/../..//?a=%00#x")
def test_canonicalising_twice_changes_nothing(text: str) -> None:
    once = outcome(f"https://example.org/{text}")
    assert once is None or outcome(once) == once


@settings(deadline=None, max_examples=500)
@given(st.text(alphabet="abä.:@[]%-/\\?#12 \t", max_size=30))
def test_canonicalising_twice_changes_nothing_whatever_the_authority(text: str) -> None:
    once = outcome(f"http://{text}")
    assert once is None or outcome(once) == once


def answered(url: str, base: str) -> str:
    """The canonical form, or the reason of the refusal; any other error is a bug."""
    try:
        return urls.canonical(url, base)
    except UrlError as refusal:
        return f"refused: {refusal.message}" if refusal.message else ""


@settings(deadline=None)
@given(st.text())
def test_any_text_is_either_canonical_or_refused_with_a_reason(text: str) -> None:
    assert answered(text, "https://example.org/").startswith(("http://", "https://", "refused: "))


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_base_is_either_usable_or_refused_with_a_reason(text: str, base: str) -> None:
    assert answered(text, base).startswith(("http://", "https://", "refused: "))


def test_a_url_of_8192_characters_is_taken() -> None:
    url = "https://example.org/" + "a" * (8_192 - 20)
    assert urls.canonical(url) == url


@pytest.mark.parametrize("length", [8_193, 16_385, 1_000_000])
def test_a_longer_url_is_refused(length: int) -> None:
    with pytest.raises(UrlError, match="at most 8192 characters"):
        urls.canonical("https://example.org/" + "a" * (length - 20))


LONGEST_HOST = ".".join(["a" * 50] * 4 + ["b" * 51])


@pytest.mark.parametrize(
    "url", [f"http://{LONGEST_HOST}/", f"http://{LONGEST_HOST}.:8080/", f"http://{'n' * 300}:p@{LONGEST_HOST}/"]
)
def test_a_host_of_255_characters_is_taken(url: str) -> None:
    assert urls.canonical(url) == url


@pytest.mark.parametrize(
    "host",
    ["a." * 3_800 + "org", f"b{LONGEST_HOST}", f"é{LONGEST_HOST}", "n@" + "a." * 127 + "org", "a." * 127 + "org:8080"],
)
def test_a_host_that_dns_cannot_hold_is_refused(host: str) -> None:
    """Every label of a host is a domain to be looked up in scopes and weights: thousands of them held up everybody."""
    with pytest.raises(UrlError, match=r"host: expected at most 255 characters, got \d+"):
        urls.canonical(f"http://{host}/")
    with pytest.raises(UrlError, match="host"):
        urls.resolved(f"http://{host}/", "http://b.example/", "b.example")


COMBINING = "\u0301\u0327"  # two marks in the order in which they do not stand when they are normalised


@pytest.mark.parametrize("host", ["é" + COMBINING * 4_000 + ".org", quote(COMBINING) * 600, "i\u00ad" * 200 + ".org"])
@pytest.mark.parametrize("before", ["https://", "HTTP:", "//", " \t\\/", "ht\ntps:///", "http://n:p@x@"])
def test_a_host_that_is_written_too_long_is_refused_before_it_is_normalised(before: str, host: str) -> None:
    """Eight thousand combining marks took 50 ms, and one report could bring hundreds of such hosts."""
    began = time.thread_time()
    for _ in range(20):
        with pytest.raises(UrlError, match=r"host: expected at most 255 characters, got \d+"):
            urls.canonical(f"{before}{host}:8080/", "http://b.example/")
    assert time.thread_time() - began < 0.2


@pytest.mark.parametrize("path", ["a" * 1_000, "/" + "a" * 1_000, "?" + "a" * 1_000, "https://a.example/" + "é" * 500])
def test_a_long_path_is_no_host(path: str) -> None:
    assert urls.canonical(path, "https://a.example/").startswith("https://a.example/")


def test_a_url_that_grows_over_the_limit_by_encoding_is_refused() -> None:
    with pytest.raises(UrlError, match="at most 8192 characters, got 15020"):
        urls.canonical("https://example.org/" + "ä" * 2_500)


@pytest.mark.parametrize("url", ["https://", "http:///", "https://?x", "https://:80/", "https://@/", "/a/path", ""])
def test_a_url_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(UrlError):
        urls.canonical(url)


@pytest.mark.parametrize("url", ["ftp://h/x", "mailto:a@b.org", "javascript:alert(1)", "data:,x", "file:///etc/passwd"])
def test_another_scheme_is_refused_by_name(url: str) -> None:
    with pytest.raises(UrlError, match=f"expected http or https, got '{url.partition(':')[0]}'"):
        urls.canonical(url)


@pytest.mark.parametrize(
    "url", ["https://x/\ud800", "https://x/?q=\udfff", "https://\ud83d.org/", "https://x/#\udc00a"]
)
def test_half_of_a_surrogate_pair_is_refused(url: str) -> None:
    with pytest.raises(UrlError):
        urls.canonical(url)


@pytest.mark.parametrize("control", ["\x00", "\x01", "\x0b", "\x1f"])
def test_a_control_character_inside_is_refused(control: str) -> None:
    with pytest.raises(UrlError, match="control character"):
        urls.canonical(f"https://example.org/a{control}b")


def test_tabs_and_line_ends_are_removed() -> None:
    assert urls.canonical(" https://exam\tple.org/a\r\nb\n") == "https://example.org/ab"


def test_the_fragment_is_dropped() -> None:
    assert urls.canonical("https://example.org/a?b#c?d#e") == "https://example.org/a?b"


def test_case_of_scheme_and_host_default_port_and_dots_do_not_matter() -> None:
    assert urls.canonical("HTTPS://EXAMPLE.org:443/a/./b/../c") == "https://example.org/a/c"


def test_a_relative_link_is_read_from_its_page() -> None:
    assert urls.canonical("../c?d", "https://example.org/a/b/x") == "https://example.org/a/c?d"


def test_a_link_without_a_scheme_takes_that_of_its_page() -> None:
    assert urls.canonical("//other.org/a", "http://example.org/") == "http://other.org/a"


@pytest.mark.parametrize(
    ("url", "queue"),
    [
        ("https://example.org/a", "example.org"),
        ("https://example.org:443/a", "example.org"),
        ("http://example.org:443/a", "example.org:443"),
        ("https://example.org:8443/a", "example.org:8443"),
        ("https://user:secret@example.org:8443/a@b", "example.org:8443"),
        ("https://user@example.org/", "example.org"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[::1]/", "[::1]"),
    ],
)
def test_the_politeness_queue_is_the_host_with_a_port_that_is_not_the_default(url: str, queue: str) -> None:
    assert urls.queue(urls.canonical(url)) == queue


@pytest.mark.parametrize(
    ("queue", "host"),
    [("example.org:8443", "example.org"), ("example.org", "example.org"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]")],
)
def test_the_host_of_a_queue_has_no_port(queue: str, host: str) -> None:
    assert urls.host_of(queue) == host


def test_parts_cut_a_url_at_its_seams() -> None:
    cut = urls.parts("https://me:x@a.example.org:8443/p/q?r=/s?t")
    assert cut == ("https", "a.example.org", "8443", "/p/q", "r=/s?t")


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.com", "example.com"),
        ("EXAMPLE.com.", "example.com"),
        ("someone.github.io", "someone.github.io"),
        ("com", None),
        ("co.uk", None),
        ("", None),
        (None, None),
    ],
)
def test_the_registrable_domain_is_one_label_below_a_public_suffix(host: str | None, domain: str | None) -> None:
    assert urls.registrable_domain(host) == domain


@pytest.mark.parametrize(
    ("queue", "domain"),
    [
        ("a.example.org:8080", "example.org"),
        ("192.168.0.1", "192.168.0.1"),
        ("192.168.0.1:8080", "192.168.0.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("[2001:db8::1]:8080", "[2001:db8::1]"),
        ("localhost:3000", "localhost"),
        ("com", "com"),
    ],
)
def test_the_domain_of_a_queue_is_registrable_or_the_host_itself(queue: str, domain: str) -> None:
    assert urls.domain_of(queue) == domain


@pytest.mark.parametrize(
    ("url", "group"),
    [
        ("https://example.org/blog/2025/post", "same:blog"),
        ("https://example.org/blog", "same:blog"),
        ("https://other.org/research/x?y", "cross:research"),
        ("https://www.example.org/blog", "cross:blog"),
        ("https://example.org/", "same:_root"),
        ("https://other.org/?q=1", "cross:_root"),
    ],
)
def test_a_link_group_is_nearness_and_the_first_segment_of_the_path(url: str, group: str) -> None:
    assert urls.link_group(url, "example.org") == group


def test_the_lower_bits_of_an_identity_are_xxh3_of_the_url() -> None:
    url = "https://example.org/"
    assert urls.identity(url) & (1 << 56) - 1 == xxhash.xxh3_64_intdigest(url.encode()) & (1 << 56) - 1


def test_the_top_byte_of_an_identity_is_the_same_for_a_whole_domain() -> None:
    found = {urls.identity(f"https://{host}.example.co.uk/{n}") >> 56 for n in range(9) for host in ("a", "b.c", "www")}
    assert found == {int(urls.domain_hash("example.co.uk")[:2], 16)}


def test_partitions_spread_domains_evenly() -> None:
    counts = Counter(urls.partition(f"site{n}.org") for n in range(20_000))
    assert len(counts) == 256
    assert max(counts.values()) < 2 * 20_000 / 256


def test_the_identity_of_a_url_never_changes() -> None:
    assert urls.identity("https://example.org/") == 0x402C3C2914C7CB49  # stored frontiers depend on it


@given(st.text(max_size=50))
def test_an_identity_fits_in_64_bits(path: str) -> None:
    assert 0 <= urls.identity("https://example.org/" + path) < 2**64


def test_different_urls_have_different_identities() -> None:
    assert len({urls.identity(f"https://example.org/{number}") for number in range(100_000)}) == 100_000


def test_a_domain_hash_is_16_hex_digits_of_the_same_hash() -> None:
    assert urls.domain_hash("example.org") == "4037554f7ebcbf45"
