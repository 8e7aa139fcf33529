"""A text file with one URL a line, as people keep it."""

from __future__ import annotations

import codecs
import gzip
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from crawlguide.core.errors import DataError
from crawlguide.core.messages import SeedMessage
from crawlguide.gateway.readers import Skipped, _bytes, urls

NAUGHTY = Path(__file__).resolve().parents[4] / "shared" / "corpora" / "naughty_strings.jsonl"
MEBIBYTE = 1024 * 1024
READ_STDIN = """
from pathlib import Path
from crawlguide.gateway.readers import urls
print(*(seed.url for seed in urls.read(Path("-"))))
"""


def read(folder: Path, content: bytes) -> list[SeedMessage | Skipped]:
    path = folder / "list.txt"
    path.write_bytes(content)
    return list(urls.read(path))


def seeds(*names: str) -> list[SeedMessage]:
    return [SeedMessage(name) for name in names]


def test_each_line_is_a_seed(tmp_path: Path) -> None:
    found = read(tmp_path, b"https://a.example/1\nhttps://b.example/2\n")
    assert found == seeds("https://a.example/1", "https://b.example/2")


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    assert read(tmp_path, b"https://a.example/") == seeds("https://a.example/")


def test_an_empty_file_has_no_seeds(tmp_path: Path) -> None:
    assert read(tmp_path, b"") == []


def test_blank_lines_and_comments_say_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, b"# mine\n\n   \n  https://a.example/#part  \n\t# https://b.example/\n")
    assert found == seeds("https://a.example/#part")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_on_any_machine(tmp_path: Path, end: bytes) -> None:
    assert read(tmp_path, end.join([b"https://a.example/", b"https://b.example/"])) == seeds(
        "https://a.example/", "https://b.example/"
    )


def test_a_byte_order_mark_is_no_part_of_the_url(tmp_path: Path) -> None:
    assert read(tmp_path, codecs.BOM_UTF8 + b"https://a.example/\n") == seeds("https://a.example/")


def test_utf_16_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"list\.txt: byte 0: expected UTF-8, got UTF-16"):
        read(tmp_path, "https://a.example/\n".encode("utf-16"))


def test_bytes_that_are_not_utf_8_skip_their_line_only(tmp_path: Path) -> None:
    found = read(tmp_path, b"https://a.example/\nhttps://b.example/\xff\nhttps://c.example/\xc3\xa9\n")
    assert found == [
        SeedMessage("https://a.example/"),
        Skipped("line 2", "expected UTF-8, got other bytes"),
        SeedMessage("https://c.example/é"),
    ]


def test_a_line_that_is_no_url_is_skipped_with_its_number_and_the_reason(tmp_path: Path) -> None:
    found = read(tmp_path, b"\nnot a url\nftp://a.example/\nhttps://a.example/\n")
    assert [type(one) for one in found] == [Skipped, Skipped, SeedMessage]
    assert found[0] == Skipped("line 2", "not a URL: 'not a url'")
    assert found[1] == Skipped("line 3", "scheme: expected http or https, got 'ftp'")


def test_a_line_may_be_16_kib_long_and_no_longer(tmp_path: Path) -> None:
    start = b"https://a.example/#"
    fitting = start + b"x" * (urls.MAX_LINE_BYTES - len(start))
    found = read(tmp_path, fitting + b"\n" + fitting + b"x\nhttps://b.example/\n")
    assert found[1] == Skipped("line 2", "expected at most 16384 bytes, got more")
    assert found[2] == SeedMessage("https://b.example/")
    assert found[0] != Skipped("line 1", "expected at most 16384 bytes, got more")


def test_a_line_without_end_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    with path.open("wb") as file:
        for _ in range(20):
            file.write(b"x" * MEBIBYTE)
        file.write(b"\nhttps://a.example/\n")
    tracemalloc.start()
    found = list(urls.read(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [Skipped("line 1", "expected at most 16384 bytes, got more"), SeedMessage("https://a.example/")]
    assert peak < 2 * MEBIBYTE


def test_gzip_is_unpacked_whatever_the_name(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(b"https://a.example/\n")) == seeds("https://a.example/")


def test_gzip_in_parts_is_one_file(tmp_path: Path) -> None:
    packed = gzip.compress(b"https://a.example/\n") + gzip.compress(b"https://b.example/\n")
    assert read(tmp_path, packed) == seeds("https://a.example/", "https://b.example/")


def test_gzip_that_is_cut_off_is_refused_after_what_could_be_read(tmp_path: Path) -> None:
    path = tmp_path / "list.gz"
    path.write_bytes(gzip.compress(b"https://a.example/\n" * 10)[:-4])
    reading = urls.read(path)
    assert next(reading) == SeedMessage("https://a.example/")
    with pytest.raises(DataError, match=r"list\.gz: byte 190: cannot be read"):
        list(reading)


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"expected gzip of at most {_bytes.MAX_RATIO}:1"):
        read(tmp_path, gzip.compress(bytes(20 * MEBIBYTE)))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.txt: byte 0: cannot be read: .*No such file"):
        list(urls.read(tmp_path / "nowhere.txt"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_dash_is_the_standard_input(pack: type[bytes]) -> None:
    content = pack(b"https://a.example/\nhttps://b.example/\n")
    done = subprocess.run([sys.executable, "-c", READ_STDIN], input=content, capture_output=True, check=True)
    assert done.stdout == b"https://a.example/ https://b.example/\n"


@pytest.mark.skipif(not NAUGHTY.is_file(), reason=f"the corpora are not here: {NAUGHTY}")
def test_naughty_strings_are_seeds_or_skipped_one_by_one(tmp_path: Path) -> None:
    strings = [json.loads(line)["s"] for line in NAUGHTY.read_text().splitlines()]
    lines = [f"https://a.example/?q={''.join(string.splitlines())}" for string in strings]
    found = read(tmp_path, "\n".join(lines).encode("utf-8", "surrogatepass"))
    assert len(found) == len(lines)
    assert sum(isinstance(one, SeedMessage) for one in found) > 0.9 * len(lines)
