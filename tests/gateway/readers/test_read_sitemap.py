"""Sitemaps as sites publish them, and as nobody should."""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING

import pytest

from crawlguide.core.errors import DataError
from crawlguide.core.messages import SeedMessage
from crawlguide.gateway.readers import Skipped, sitemap

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {NAMESPACE} xmlns:image="urn:image">'
LAUGHS = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 10))
MEBIBYTE = 1024 * 1024


def read(folder: Path, content: bytes | str) -> list[SeedMessage | Skipped]:
    path = folder / "sitemap.xml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(sitemap.read(path))


def urlset(*entries: str) -> str:
    return HEAD + "".join(f"<url>{entry}</url>\n" for entry in entries) + "</urlset>"


def test_each_url_is_a_seed(tmp_path: Path) -> None:
    found = read(tmp_path, urlset("<loc>https://a.example/1</loc>", "<loc> https://a.example/2?a=1&amp;b=2\n</loc>"))
    assert found == [SeedMessage("https://a.example/1"), SeedMessage("https://a.example/2?a=1&b=2")]


def test_priority_and_lastmod_come_along(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        urlset("<loc>https://a.example/</loc><lastmod>2025-01-01</lastmod><changefreq>daily</changefreq>"
               "<priority>0.8</priority>"),
    )  # fmt: skip
    assert found == [SeedMessage("https://a.example/", priority=0.8, metadata={"lastmod": "2025-01-01"})]


@pytest.mark.parametrize("priority", ["high", "-0.1", "1.1", "nan", ""])
def test_a_priority_that_is_none_is_left_out(tmp_path: Path, priority: str) -> None:
    found = read(tmp_path, urlset(f"<loc>https://a.example/</loc><priority>{priority}</priority>"))
    assert found == [SeedMessage("https://a.example/")]


def test_a_lastmod_that_is_no_date_by_its_length_is_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, urlset(f"<loc>https://a.example/</loc><lastmod>{'9' * 65}</lastmod>"))
    assert found == [SeedMessage("https://a.example/")]


def test_the_address_of_an_image_is_not_the_address_of_the_page(tmp_path: Path) -> None:
    image = "<image:image><image:loc>https://a.example/i.png</image:loc></image:image>"
    assert read(tmp_path, urlset(f"<loc>https://a.example/</loc>{image}<image:loc>https://b.example/</image:loc>")) == [
        SeedMessage("https://a.example/")
    ]


def test_a_sitemap_without_a_namespace_is_read_too(tmp_path: Path) -> None:
    found = read(tmp_path, "<urlset><url><loc>https://a.example/</loc></url></urlset>")
    assert found == [SeedMessage("https://a.example/")]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "iso-8859-1"])
def test_other_encodings_that_xml_declares_are_read(tmp_path: Path, encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>{urlset("<loc>https://a.example/é</loc>")[39:]}'
    assert read(tmp_path, content.encode(encoding)) == [SeedMessage("https://a.example/é")]


def test_an_entry_that_cannot_be_used_is_skipped_with_its_number(tmp_path: Path) -> None:
    found = read(tmp_path, urlset("<loc>/relative</loc>", "<lastmod>2025</lastmod>", "<loc>https://a.example/</loc>"))
    assert found == [
        Skipped("entry 1", "not a URL: '/relative'"),
        Skipped("entry 2", "expected a <loc>, got none"),
        SeedMessage("https://a.example/"),
    ]


def test_an_address_that_is_too_long_is_skipped_and_not_held(tmp_path: Path) -> None:
    found = read(
        tmp_path, urlset(f"<loc>https://a.example/{'x' * 2 * MEBIBYTE}</loc>", "<loc>https://a.example/</loc>")
    )
    assert found == [
        Skipped("entry 1", "expected a <loc> of at most 16384 characters, got more"),
        SeedMessage("https://a.example/"),
    ]


def test_nested_sitemaps_are_named_but_not_fetched(tmp_path: Path) -> None:
    index = f"<sitemapindex {NAMESPACE}><sitemap><loc>https://a.example/2.xml</loc></sitemap></sitemapindex>"
    assert read(tmp_path, index) == [
        Skipped("entry 1", "nested sitemaps are not fetched here: 'https://a.example/2.xml'")
    ]


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(urlset("<loc>https://a.example/</loc>").encode())
    assert read(tmp_path, packed) == [SeedMessage("https://a.example/")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "line 1: cannot be read as a sitemap: no element found"),
        ("https://a.example/", "line 1: cannot be read as a sitemap: not well-formed"),
        ("<!DOCTYPE html><html></html>", "line 1: cannot be read as a sitemap: DTDForbidden"),
        ("<html></html>", "line 1: cannot be read as a sitemap: expected <urlset> or <sitemapindex>, got <html>"),
        ("<rss>\n</rss>", "expected <urlset> or <sitemapindex>, got <rss>"),
        ('<?xml version="1.0" encoding="klingon"?><urlset/>', "unknown encoding"),
    ],
)
def test_what_is_no_sitemap_is_refused_with_file_and_line(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(DataError, match=r"sitemap\.xml: line 1: ") as refused:
        read(tmp_path, content)
    assert reason in refused.value.message


def test_a_sitemap_that_is_cut_off_gives_what_it_has_and_is_then_refused(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_text(urlset("<loc>https://a.example/</loc>").removesuffix("</urlset>"))
    reading = sitemap.read(path)
    assert next(reading) == SeedMessage("https://a.example/")
    with pytest.raises(DataError, match=r"sitemap\.xml: line 3: .*no element found"):
        next(reading)


@pytest.mark.parametrize(
    "doctype",
    [
        f'<!DOCTYPE urlset [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE urlset [<!ENTITY l9 SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE urlset [<!ENTITY % l9 SYSTEM "http://a.example/evil.dtd"> %l9;]>',
        '<!DOCTYPE urlset SYSTEM "http://a.example/evil.dtd">',
    ],
    ids=["billion laughs", "external entity", "parameter entity", "external dtd"],
)
def test_entities_are_refused_before_they_do_anything(tmp_path: Path, doctype: str) -> None:
    started = time.monotonic()
    with pytest.raises(DataError, match="Forbidden"):
        read(tmp_path, f"{doctype}<urlset><url><loc>https://a.example/&l9;</loc></url></urlset>")
    assert time.monotonic() - started < 1


def test_the_fifty_thousand_and_first_entry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    path.write_text(urlset(*["<loc>https://a.example/</loc>"] * (sitemap.MAX_ENTRIES + 1)))
    reading = sitemap.read(path)
    for _ in range(sitemap.MAX_ENTRIES):
        assert next(reading)
    with pytest.raises(DataError, match="entry 50001: expected at most 50000 entries"):
        next(reading)


def test_more_than_50_mib_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sitemap.xml"
    with path.open("w") as file:
        file.write(HEAD)
        for _ in range(51):
            file.write(" " * MEBIBYTE)
    with pytest.raises(DataError, match="expected a sitemap of at most 52428800 bytes, unpacked"):
        list(sitemap.read(path))


def test_a_gzip_bomb_is_refused_early(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected gzip of at most 100:1"):
        read(tmp_path, gzip.compress(HEAD.encode() + b" " * 100 * MEBIBYTE))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (f"{HEAD}<!--{'x' * 3 * MEBIBYTE}-->", "tags and comments of at most"),
        (f"{HEAD}<url a='{'x' * 3 * MEBIBYTE}'/>", "tags and comments of at most"),
        (f"{HEAD}{'<a>' * 100_000}", "at most 32 levels"),
        (f"{HEAD}{''.join(f'<a{number}/>' for number in range(100_000))}", "1000 names"),
    ],
    ids=["comment", "attribute", "depth", "names"],
)
def test_what_would_fill_the_memory_of_the_parser_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read(tmp_path, content)
