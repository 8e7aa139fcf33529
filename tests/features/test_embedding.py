"""Texts of one meaning lie near each other, and word pieces are found as WordPiece finds them."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from crawlguide.core import urls
from crawlguide.core.columns import coded
from crawlguide.core.errors import ConfigError
from crawlguide.features.embedding import Embedding, words_of
from crawlguide.features.embedding.table import MARKS, SHIPPED, indexed, normalised, plain, save

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.features.embedding.table import F32

WORD = re.compile(r"[a-zA-Z0-9]+")
WEBS = Path(__file__).parents[3] / "shared" / "data" / "webs"
PIECES = ["play", "##ing", "##er", "player", "s", "##s", "http", "server", "cafe"]


@pytest.fixture(scope="module")
def shipped() -> Embedding:
    return Embedding.load()


def one_each() -> Embedding:
    """Every piece has a direction of its own, so that a vector says which pieces it was made of."""
    return indexed(PIECES, np.eye(len(PIECES), dtype=np.int8), np.ones(len(PIECES), np.float32))


def pieces(text: str) -> dict[str, int]:
    """How often each piece was found, up to a common factor of one."""
    vector = one_each().embed([text])[0]
    least = vector[vector > 0].min(initial=1)
    return {PIECES[at]: round(float(vector[at] / least)) for at in np.flatnonzero(vector)}


def test_the_longest_piece_wins_and_the_rest_continues_it() -> None:
    assert pieces("playing") == {"play": 1, "##ing": 1}
    assert pieces("players") == {"player": 1, "##s": 1}
    assert pieces("play play playing") == {"play": 3, "##ing": 1}


def test_a_continuation_never_begins_a_word() -> None:
    assert pieces("ing er") == {}
    assert pieces("s") == {"s": 1}


def test_case_accents_and_other_marks() -> None:
    assert pieces("CAFÉ, Café; cafe\u0301") == {"cafe": 1}
    assert pieces("play—server\u00a0http“s”") == {"play": 1, "server": 1, "http": 1, "s": 1}


@pytest.mark.parametrize("text", ["httpServer", "HTTPServer", "HTTP_server", "http-server", "Http/Server"])
def test_words_within_names(text: str) -> None:
    assert pieces(text) == {"http": 1, "server": 1}


def test_very_long_runs_are_no_words() -> None:
    assert pieces("play" + "s" * 100) == {}


def test_rows_are_one_long_or_zero(shipped: Embedding) -> None:
    vectors = shipped.embed(["databases", "", "日本語", "?!", "a longer text about regular expressions", "\x00"])
    assert vectors.dtype == np.float32
    assert vectors.shape == (6, shipped.dims)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 0, 0, 0, 1, 0], abs=1e-5)


def test_a_batch_is_its_texts_one_by_one(shipped: Embedding) -> None:
    texts = ["one", "", "naïve café", "SQL joins and indexes", "日本", "playing"]
    together = shipped.embed(texts)
    assert np.array_equal(together, np.concatenate([shipped.embed([text]) for text in texts]))
    assert shipped.embed([]).shape == (0, shipped.dims)


@pytest.mark.parametrize(
    ("topic", "near", "far"),
    [
        ("databases", "SQL queries", "garden flowers"),
        ("music", "MIDI synthesizer", "matrix inversion"),
        ("encryption", "password hashing", "image resize"),
        ("astronomy", "stars and planets", "mail server"),
        ("animals", "horse", "parliament"),
    ],
)
def test_meaning(shipped: Embedding, topic: str, near: str, far: str) -> None:
    about, close, distant = shipped.embed([topic, near, far])
    assert about @ close > about @ distant + 0.1


def test_words_of_urls() -> None:
    assert words_of("https://docs.example.org/en/HowTo/regular-expressions2.html?q=caf%C3%A9") == (
        "example en how to regular expressions 2 q café"
    )
    assert words_of("https://www.example.co.uk/") == "example"
    assert words_of("https://example.org/XMLParser/index.php?id=1234567&Page=3") == "example xml parser id page 3"
    assert words_of("http://192.0.2.1:8080/a_b%2Fc") == "a b c"
    assert words_of("http://[2001:db8::1]/x") == "x"
    assert words_of("http://localhost/%ff%fe/%") == "localhost"


def test_the_table_is_small_and_quickly_there() -> None:
    assert SHIPPED.stat().st_size <= 8_000_000
    timed = (
        "import time; from crawlguide.features.embedding import Embedding; start = time.perf_counter();"
        " Embedding.load(); print(time.perf_counter() - start)"
    )
    took = subprocess.run([sys.executable, "-c", timed], capture_output=True, check=True).stdout
    assert float(took) < 0.5  # 0.02 s on a quiet machine


def test_a_table_is_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "table.npz"
    own = one_each()
    save(file, PIECES, own.table, own.scale)
    vectors: F32 = Embedding.load(file).embed(["playing players"])
    assert np.array_equal(vectors, own.embed(["playing players"]))


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "other.npz"
    np.savez(file, table=np.zeros((2, 2)), scale=np.zeros(2), vocabulary=np.zeros(1, np.uint8))
    with pytest.raises(ConfigError, match="a row of bytes for each of 1 pieces"):
        Embedding.load(file)
    file.write_bytes(b"no zip")
    with pytest.raises(ConfigError, match="expected a table of word pieces"):
        Embedding.load(file)


def by_words(embedding: Embedding, addresses: Sequence[str]) -> tuple[F32, F32]:
    """The vectors of URLs read over bytes, and those of the words that `words_of` finds in them."""
    queues = sorted({urls.queue(address) for address in addresses})
    queue = np.array([queues.index(urls.queue(address)) for address in addresses], np.int64)
    fast = embedding.sums_of_addresses(addresses, coded(addresses), queues, queue)
    return normalised(fast), embedding.embed([words_of(address) for address in addresses])


@pytest.mark.parametrize("alone", ["mailto:a@b", "javascript:alert(1)", "//a.example", "x", ""])
def test_of_what_has_no_path_nothing_is_read_beyond_its_end(shipped: Embedding, alone: str) -> None:
    """Clients of URLFrontier may store anything. What follows in the same bytes is another URL."""
    both, queue = [alone, "https://a.example/bread-and-butter"], np.zeros(2, np.int64)
    found = shipped.sums_of_addresses(both, coded(both), ["a.example"], queue)
    (name,) = shipped.sums_of_addresses(["https://a.example/"], coded(["https://a.example/"]), ["a.example"], queue[:1])
    assert np.array_equal(found[0], name)
    assert not np.array_equal(found[1], name)


ODD_TAILS = (
    "/", "/HTTPServer/getURLFor/ABCdef12345/x1234y.html?q=A1bC", "/INDEX.HTML/Default.aspx?www=php&jsp",
    "/%41%42c%zz%4", "/a%", "/%25%32%35", "/K%C3%A4se/%E4%B8%AD%E6%96%87/%ff%fe", "/%C3%89cole-%C3%89t%C3%A9?%C3",
    "/" + "a" * 70 + "/b" * 40 + "?12345=1234", "/_under_score-dash.dot~tilde", "/%00%1F%7f", "/ŒUVRE?ĐỒNG=ß",
)  # fmt: skip
ODD_HOSTS = (
    "docs.example.co.uk", "127.0.0.1:8080", "[::1]", "xn--bcher-kva.example", "me:you@e2e.org.", "localhost", "co.uk"
)  # fmt: skip


def test_urls_say_over_bytes_what_they_say_in_words(shipped: Embedding) -> None:
    odd = [urls.canonical(f"https://{host}{tail}") for host in ODD_HOSTS for tail in ODD_TAILS]
    fast, slow = by_words(shipped, odd)
    assert np.array_equal(fast, slow)


@given(st.lists(st.text("aAzZ09-_/.%25c3é中?&=~ ", max_size=40), max_size=20))
def test_any_url_says_over_bytes_what_it_says_in_words(tails: list[str]) -> None:
    fast, slow = by_words(Embedding.load(), [urls.canonical(f"https://example.org/{tail}") for tail in tails])
    assert np.array_equal(fast, slow)


@pytest.mark.skipif(not WEBS.exists(), reason="the recorded webs are not beside this checkout (../shared/data/webs)")
@pytest.mark.parametrize("web", ["docsweb", "debpkg", "wikispeedia"])
def test_recorded_urls_say_over_bytes_what_they_say_in_words(shipped: Embedding, web: str) -> None:
    found = parquet.read_table(WEBS / web / "nodes.parquet", columns=["url"]).column("url").to_pylist()[::40]
    fast, slow = by_words(shipped, [urls.canonical(url) for url in found])
    assert np.array_equal(fast, slow)


def test_anchors_in_the_form_for_kernels_mean_the_same(shipped: Embedding) -> None:
    anchors = ["Regular expressions", "", "HTTPServer 2", "...", "more of it"] * 5
    assert np.array_equal(shipped.embed_coded(coded(anchors)), shipped.embed(anchors))
    alone = np.array([shipped.embed([anchor])[0] for anchor in anchors])
    assert np.array_equal(shipped.embed(anchors), alone)


def test_letters_that_stand_for_many_say_what_they_said_and_not_at_length() -> None:
    """All of them, between two others: the same words as when each is spelled out first."""
    for number in [*range(128, 0xD800), *range(0xE000, 0x30000)]:
        text = f"a{chr(number)}b"
        spelled = MARKS.sub("", unicodedata.normalize("NFKD", text)).encode("ascii", "replace").decode("ascii")
        found = plain(text)
        assert WORD.findall(found) == WORD.findall(spelled), hex(number)
        assert len(found) <= 2 + 7, hex(number)
