"""Reading pages: what they say, in which letters, and that none of them can hold up a crawl."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from pypdf import PdfWriter
from pypdf.annotations import Link as PdfLink
from pypdf.generic import DictionaryObject, NameObject, TextStringObject

from crawlguide.core.types import READ_ROBOTS
from crawlguide.crawler.fetched import Fetched
from crawlguide.crawler.lines import robots_text
from crawlguide.crawler.page import one_line
from crawlguide.crawler.parse import Link, Page, is_quick, parse
from crawlguide.crawler.readers import HTML, Document
from crawlguide.crawler.reading import LIMIT_S, Reader
from crawlguide.policy.robots import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "html_cases.jsonl"
URL = "http://a.example/d/p"
MIB = 1024 * 1024


def read(
    body: bytes | str, content_type: str = "text/html; charset=utf-8", agent: str = "crawlguide", **headers: str
) -> Page:
    named = {"Content-Type": content_type} | {name.replace("_", "-"): value for name, value in headers.items()}
    content = body.encode() if isinstance(body, str) else body
    return parse(Fetched(URL, 200, headers=tuple(named.items()), body=content), agent)


def links(html: str) -> list[str]:
    return [link.url for link in read(html).links]


PAGE = """<!DOCTYPE html><html lang="en-GB"><head><title> A  page </title>
<link rel="canonical" href="/canonical"><link rel="alternate" type="application/rss+xml" href="/feed">
<link rel="alternate" hreflang="de" href="/de"><meta name="Robots" content="NoIndex, follow">
<meta name="crawlguide" content="noarchive"><meta name="otherbot" content="nofollow">
<script type="application/ld+json">{"datePublished" : "2024-01-02T03:04:05Z", "dateModified":"2024-02-03"}</script>
<style>p { color: red }</style></head><body><nav><a href="/menu">Menu</a></nav>
<main><h1>Big <i>news</i></h1><p>It is <b>so</b>.<script>var hidden</script></p><h2>More</h2>
<a href="next" rel="NoFollow ugc">to the
next</a></main><footer>imprint</footer></body></html>"""


def test_a_page_says_all_this() -> None:
    assert read(PAGE) == Page(
        title="A page",
        headings=("Big news", "More"),
        text="Big news It is so . More to the next",
        links=(
            Link("http://a.example/menu", "Menu", "", 0),
            Link("http://a.example/d/next", "to the next", "nofollow ugc", 1),
        ),
        canonical="http://a.example/canonical",
        robots_meta=("noindex", "follow", "noarchive"),
        language="en",
        feeds=("http://a.example/feed",),
        published="2024-01-02T03:04:05Z",
        modified="2024-02-03",
    )


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<a href="b">x</a>', ["http://a.example/d/b"]),
        ('<a href=" b \n">x</a>', ["http://a.example/d/b"]),
        ('<a href="b#c">x</a><a href="#c">x</a>', ["http://a.example/d/b"]),
        ('<base href="/other/"><base href="/third/"><a href="b">x</a>', ["http://a.example/other/b"]),
        ('<base href="data:,x"><a href="b">x</a>', ["http://a.example/d/b"]),
        ('<base target="_top"><base href="//b.example/"><a href="b">x</a>', ["http://b.example/b"]),
        ('<map><area href="/c" alt="see"></map>', ["http://a.example/c"]),
        ('<frameset><frame src="/f"></frameset>', ["http://a.example/f"]),
        ('<noscript><a href="/n">x</a></noscript>', ["http://a.example/n"]),
        ('<a href="javascript:void(0)">x</a><a name="y">y</a><a href="http://[">z</a><a href="mailto:a@b.c">m</a>', []),
        ("<!-- <a href=x> --><script>'<a href=y>'</script><textarea><a href=z></textarea>", []),
        ("<A HREF=b>x<a href='c'>y", ["http://a.example/d/b", "http://a.example/d/c"]),
        ('<a href="?q=1&amp;r=2">x</a>', ["http://a.example/d/p?q=1&r=2"]),
        ('<a href="http://u:p@b.example/@me">x</a>', ["http://b.example/@me"]),
        ('<base href="//u@b.example/"><a href="c">x</a>', ["http://b.example/c"]),
    ],
)
def test_links_are_read_as_a_browser_reads_them(html: str, found: list[str]) -> None:
    assert links(html) == found


def test_a_page_that_sends_its_readers_on_has_a_link() -> None:
    page = read('<meta http-equiv="Refresh" content="0; URL=\'there\'">')
    assert page.links == (Link("http://a.example/d/there", "", "refresh", 0),)


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ('<a href="a">two <b>words</b></a>', "two words"),
        ('<a href="a" title="t"><img alt="Home  page"></a>', "Home page"),
        ('<a href="a" title="t"><img></a>', "t"),
        ('<area href="a" alt="see">', "see"),
        ('<a href="a"></a>', ""),
        ('<a href="a">' + "x" * 5_000 + "</a>", "x" * 1_000),
    ],
)
def test_an_anchor_is_what_a_reader_sees(html: str, anchor: str) -> None:
    assert read(html).links[0].anchor == anchor


def test_no_more_than_ten_thousand_links_are_read() -> None:
    page = read("".join(f"<a href=/{number}>x</a>" for number in range(10_050)))
    assert (len(page.links), page.links[-1]) == (10_000, Link("http://a.example/9999", "x", "", 9_999))


def test_the_server_has_a_say_about_robots_and_language() -> None:
    page = read("<meta name=robots content=nofollow>", X_Robots_Tag="noindex, nofollow", Content_Language="fr-CA, en")
    assert (page.robots_meta, page.language) == (("noindex", "nofollow"), "fr")
    assert read("", X_Robots_Tag="crawlguide: none").robots_meta == ("none",)
    assert read("", X_Robots_Tag="otherbot: none").robots_meta == ()


@pytest.mark.parametrize(
    "value",
    [
        "max-image-preview:large, nofollow",
        "max-snippet: -1, noindex, nofollow",
        "Max-Video-Preview : 3, nofollow",
        "unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, nofollow",
        "noarchive, unavailable_after: 25 Jun 2010 15:00:00 GMT, nofollow",
        "crawlguide: max-snippet: -1, nofollow",
    ],
)
def test_a_directive_with_a_value_is_no_name(value: str) -> None:
    assert "nofollow" in read("", X_Robots_Tag=value).robots_meta


@pytest.mark.parametrize("agent", ["MyBot/1.0 (+https://example.com/bot)", "Mozilla/5.0 (compatible; mybot/1.0)"])
def test_what_is_said_to_one_crawler_is_said_to_the_name_that_robots_txt_knows(agent: str) -> None:
    page = read("<meta name=mybot content=nofollow>", agent=agent, X_Robots_Tag="MyBot: noindex")
    assert page.robots_meta == ("noindex", "nofollow")
    assert read("<meta name=crawlguide content=nofollow>", agent=agent).robots_meta == ()


@pytest.mark.parametrize(
    ("html", "published"),
    [
        ('<meta property="article:published_time" content="2024-05-06T07:08:09+00:00">', "2024-05-06T07:08:09+00:00"),
        ('<time datetime="2023-01-01">then</time><time datetime="2024-01-01">now</time>', "2023-01-01"),
        ('<time datetime="yesterday">then</time>', None),
        ('<script type="application/ld+json">{"datePublished": broken', None),
    ],
)
def test_the_date_of_a_page_is_found(html: str, published: str | None) -> None:
    assert read(html).published == published


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<article>one</article><div><article>two</article></div><aside>three</aside>", "one two"),
        ("<p>before<article>one</article><p>after", "one"),
        ("<p>before<div role=main>one</div><p>after", "one"),
        ("<p>before<main><script>fill()</script></main><p>after", "before after"),
        ("<nav>menu</nav><p>one<footer>imprint</footer>", "one"),
    ],
)
def test_the_main_text_is_what_the_page_is_about(html: str, text: str) -> None:
    assert read(html).text == text


# Letters


@pytest.mark.parametrize(
    ("html", "charset"),
    [
        ("<title>é</title>".encode(), ""),
        ("<title>é</title>".encode("latin-1"), ""),
        ("<title>é</title>".encode("latin-1"), "iso-8859-1"),
        ("<title>é</title>".encode(), "no-such-charset"),
        ("\ufeff<title>é</title>".encode(), "iso-8859-1"),
        ("\ufeff<title>é</title>".encode("utf-16-le"), ""),
        ("\ufeff<title>é</title>".encode("utf-16-be"), "utf-8"),
        ('<meta http-equiv="content-type" content="text/html; charset=utf-16le"><title>é</title>'.encode(), ""),
        ('<meta charset="cp850"><title>é</title>'.encode("cp850"), ""),
        ("<!-- <meta charset=koi8-r> --><title>é</title>".encode(), ""),
        ('<?xml version="1.0" encoding="iso-8859-15"?><title>é</title>'.encode("iso-8859-15"), ""),
        ("<title>é</title>".encode(), '"UTF8"'),
    ],
)
def test_a_page_is_read_in_the_letters_it_was_written_in(html: bytes, charset: str) -> None:
    assert read(html, f"text/html; charset={charset}").title == "é"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5, "cp1251"),
        ("いろはにほへと ちりぬるを わかよたれそ つねならむ。" * 5, "shift_jis"),
        ("Où est l'été, où sont les garçons français et les élèves zélés de l'école? " * 5, "cp1252"),
    ],
)
def test_letters_that_nobody_names_are_guessed(text: str, codec: str) -> None:
    assert read(f"<p>{text}".encode(codec), "text/html").text == one_line(text, 10_000)


@pytest.mark.parametrize("charset", ["unicode_escape", "base64", "zip", "utf-7", "idna", "\x00", "x" * 10_000])
def test_a_charset_that_is_none_does_no_harm(charset: str) -> None:
    assert read(b"<title>\\ud800 ok</title>", f"text/html; charset={charset}").title.endswith("ok")
    assert read(f"<meta charset='{charset}'><title>ok</title>", "text/html").title in ("ok", "")


# Other kinds

RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>http://a.example/</link>
<item><title>One &amp; only</title><link>/one</link></item><item><guid>http://a.example/two</guid></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>One</title>
<link rel="self" href="/self"/><link href="/one"/><content><title>no</title></content></entry></feed>"""
SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc> http://a.example/one </loc>
<lastmod>2024-01-01</lastmod></url></urlset>"""


@pytest.mark.parametrize(
    ("xml", "title", "found"),
    [
        (RSS, "News", [("http://a.example/one", "One & only"), ("http://a.example/two", "")]),
        (ATOM, "News", [("http://a.example/one", "One")]),
        (SITEMAP, "", [("http://a.example/one", "")]),
        (RSS[:-60], "News", [("http://a.example/one", "One & only")]),
        ("<svg><a href='x'/></svg>", "", []),
    ],
)
def test_entries_of_feeds_and_sitemaps_are_links(xml: str, title: str, found: list[tuple[str, str]]) -> None:
    page = read(xml, "application/xml")
    assert (page.title, [(link.url, link.anchor) for link in page.links]) == (title, found)


def test_entities_of_a_feed_are_not_expanded() -> None:
    bomb = '<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><rss><channel><title>&b;</title></channel></rss>'
    assert read(bomb, "text/xml").title == ""


def test_plain_text_is_text() -> None:
    assert read("<b>not\n html</b>", "text/plain") == Page(text="<b>not html</b>")


@pytest.mark.parametrize(
    ("body", "title"),
    [("<title>x</title>", "x"), ("\n<!doctype html><title>x</title>", "x"), ("\x00<title>x</title>", "")],
)
def test_without_a_type_the_first_bytes_decide(body: str, title: str) -> None:
    assert parse(Fetched(URL, 200, body=body.encode()), "crawlguide").title == title


@pytest.mark.parametrize("content_type", ["image/png", "application/zip", "video/mp4", "nonsense"])
def test_of_anything_else_only_the_type_counts(content_type: str) -> None:
    assert read("<a href=x>x</a>", content_type) == Page()


def test_xhtml_that_is_called_xml_is_html() -> None:
    assert read('<?xml version="1.0"?><html><title>x</title></html>', "text/xml").title == "x"


def pdf(pages: int = 1) -> bytes:
    file, out = PdfWriter(), io.BytesIO()
    for _ in range(pages):
        file.add_blank_page(100, 100)
    link = file.add_annotation(0, PdfLink(rect=(0, 0, 9, 9), url="/more"))
    assert isinstance(link, DictionaryObject)
    file.add_metadata({NameObject("/Title"): TextStringObject("A paper")})
    file.write(out)
    return out.getvalue()


def test_a_pdf_has_a_title_and_links() -> None:
    page = read(pdf(), "application/pdf")
    assert (page.title, page.links, page.problem) == ("A paper", (Link("http://a.example/more", "", "", 0),), "")


def raw_pdf(map_to: bytes = b"0041", annotations: bytes = b"[]", information: bytes = b"<<>>") -> bytes:
    """Of one page, as no writer would write it."""
    mapping = b"1 begincodespacerange <0000><FFFF> endcodespacerange 1 beginbfchar <0001> <%s> endbfchar" % map_to
    shown = b"BT /F 12 Tf <0001> Tj ET"
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<<>>]>>"
    page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>/Annots %s>>" % annotations
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page]
    objects += [b"<</Length %d>>stream\n%s\nendstream" % (len(shown), shown), font]
    objects += [b"<</Length %d>>stream\n%s\nendstream" % (len(mapping), mapping), information]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, one) for number, one in enumerate(objects, 1))
    return b"%PDF-1.7\n" + body + b"trailer<</Size 8/Root 1 0 R/Info 7 0 R>>\nstartxref\n0\n%%EOF"


def test_half_a_letter_in_a_pdf_ends_no_reader(capfd: pytest.CaptureFixture[str]) -> None:
    page = read(raw_pdf(map_to=b"D83D"), "application/pdf")
    assert (page.text, page.problem, capfd.readouterr().err) == ("?", "", "")


@pytest.mark.parametrize("bad", [b"<</A null>>", b"17", b"null", b"<</A 99 0 R>>", b"<</A<</URI 17>>>>"])
def test_a_bad_annotation_of_a_pdf_costs_neither_its_text_nor_other_links(bad: bytes) -> None:
    page = read(raw_pdf(annotations=b"[%s <</A<</URI(http://b.example/)>>>>]" % bad), "application/pdf")
    assert (page.text, page.links[-1].url, page.problem) == ("A", "http://b.example/", "")


@pytest.mark.parametrize("options", [{"annotations": b"17"}, {"annotations": b"99 0 R"}, {"information": b"17"}])
def test_what_is_no_list_of_annotations_or_no_title_costs_no_text(options: dict[str, bytes]) -> None:
    page = read(raw_pdf(**options), "application/pdf")
    assert (page.title, page.text, page.problem) == ("", "A", "")


@pytest.mark.parametrize("body", [b"", b"%PDF-1.7", b"%PDF-1.7\n" + b"obj " * 10_000, pdf()[:300]])
def test_a_broken_pdf_is_a_problem_of_its_own(body: bytes) -> None:
    page = read(body, "application/pdf")
    assert page.links == ()
    assert "cannot be read as pdf" in page.problem


# HTML that breaks parsers


def cases() -> list[tuple[str, bytes, list[list[str]]]]:
    if not CORPUS.exists():
        pytest.skip(f"the corpus {CORPUS.name} is not here")
    rows = [json.loads(line) for line in CORPUS.read_text().splitlines()]
    return [(row["file"], row["input"].encode(), row["tokens"]) for row in rows if not row["double_escaped"]]


def test_nothing_that_breaks_parsers_breaks_this_one() -> None:
    for _, html, _ in cases():
        page = read(b"<title>t</title><a href=before>x</a>" + html)
        assert (page.problem, page.title, page.links[0].url) == ("", "t", "http://a.example/d/before"), html


def test_characters_are_what_the_standard_says_they_are() -> None:
    files = ("namedEntities.test", "numericEntities.test", "entities.test", "unicodeChars.test")
    told = [(html, tokens) for file, html, tokens in cases() if file in files]
    plain = [(html, tokens) for html, tokens in told if all(token[0] == "Character" for token in tokens)]
    assert len(plain) > 2_500
    for html, tokens in plain:
        assert read(html).text == one_line("".join(token[1] for token in tokens)), html


@settings(max_examples=300, deadline=None)
@given(
    some.binary(max_size=300), some.sampled_from(["text/html", "text/xml", "text/plain", "text/html; charset=big5", ""])
)
def test_any_bytes_are_read_or_have_a_problem(body: bytes, content_type: str) -> None:
    page = read(body, content_type)
    json.dumps([page.title, page.text, [link.url for link in page.links]], ensure_ascii=False).encode()


SNIPPETS = [
    *("<a href=x>", "</a>", "<b id=1>", "<p>", "</p>", "<table>", "</table>", "<tr>", "<td>", "<svg>", "<!--", "-->"),
    *("<h1>", "x", "<template>", "<select>", "<script>", "</script>", "<base href=/y/>", "<nav>", "<main>"),
]


@settings(max_examples=300, deadline=None)
@given(some.lists(some.sampled_from(SNIPPETS), max_size=60))
def test_any_soup_of_tags_is_read(snippets: list[str]) -> None:
    assert read("".join(snippets)).problem == ""


# Large and hostile: ten megabytes at most, as the fetcher lets through


LARGE = {
    "deep": b"<div>" * (2 * MIB),
    "deep and closed": b"<div></x>" * MIB,
    "reconstructed": b"".join(b"<p><b id=%d>x" % number for number in range(100_000)),
    "attributes": b"<p " + b" ".join(b"a%d=1" % number for number in range(1_000_000)) + b">x",
    "attributes of many tags": (b"<p " + b" ".join(b"a%d" % number for number in range(800)) + b">x") * 2_000,
    "links in links": b"<a href=x><table>" * (MIB // 2),
    "text in links": b"<a href=x><object>" * 1_000 + b"y>" * (4 * MIB),
    "entities": b"&amp;" * (2 * MIB),
    "openings": b"<" * (10 * MIB),
    "comments": b"<!--" * (2 * MIB),
    "title": b"<title>" + b"x" * (10 * MIB),
    "no letters": b"\xff" * (10 * MIB),
}
SMALL = {
    "deep": b"<div>" * 1_500,
    "reconstructed": b"".join(b"<p><b id=%d>x" % number for number in range(749)),
    "attributes": b"<p " + b" ".join(b"a%d" % number for number in range(4_500)) + b">x",
    "text in links": b"<a href=x><object>" * 740 + b"y>" * 480_000,
    "closings of what is not open": b"<span>" * 1_490 + b"</x>" * 3_400,
}


DEEP = "<div>" * 20_000
HIDDEN = {  # no "<" to be counted, or a ">" that ends no tag
    "EBCDIC": ("cp037", DEEP.encode("cp037")),
    "EBCDIC as the page says": ("", b"<meta charset=cp500>" + DEEP.encode("cp500")),
    "UTF-16": ("utf-16le", DEEP.encode("utf-16le")),
    "UTF-16 by its mark": ("", DEEP.encode("utf-16")),
    "letters that hold a >": ("iso-2022-jp", b"<p" + b" \x1b$B>>\x1b(B" * 40_000 + b">"),
    "a Korean letter that holds a >": ("cp1361", b"<p" + b" \xda>" * 40_000 + b">"),
    "values in quotes": ("", b"<p " + b" ".join(b'a%d=">"' % number for number in range(40_000)) + b">x"),
    "long values": ("", b"<p " + b" ".join(b"a%d = '>>\">'" % number for number in range(40_000)) + b">x"),
}


@pytest.fixture(scope="module")
def impatient() -> Iterator[Reader]:
    reader = Reader(limit_s=0.4)
    yield reader
    reader.close()


@pytest.mark.parametrize("name", LARGE)
def test_what_is_large_is_read_in_its_time_or_given_up(impatient: Reader, name: str) -> None:
    document = Document(HTML, LARGE[name], URL, "", "crawlguide")
    assert not is_quick(document)
    problem = impatient.read(document).problem
    assert problem == "" or problem.startswith("cannot be read as html")


@pytest.mark.parametrize("name", HIDDEN)
def test_what_may_hide_how_much_there_is_to_read_is_large(name: str) -> None:
    charset, body = HIDDEN[name]
    assert not is_quick(Document(HTML, body, URL, charset, "crawlguide"))


@pytest.mark.parametrize(
    "part", [b'<a href="?q=" title=">">x</a>', b'<b class=\'>\'>a="1</b><i title="">', b"<a href=x>'</a>"]
)
@pytest.mark.parametrize("charset", ["", "windows-1252", "shift_jis", "gb18030", "big5"])
def test_a_page_of_ordinary_tags_is_read_here(part: bytes, charset: str) -> None:
    assert is_quick(Document(HTML, (part + b"words " * 20) * 500, URL, charset, "crawlguide"))


@pytest.mark.parametrize("name", SMALL)
def test_what_is_small_cannot_take_long(name: str) -> None:
    document = Document(HTML, SMALL[name], URL, "", "crawlguide")
    assert is_quick(document)
    began = time.process_time()
    assert read(document.body).problem == ""
    assert time.process_time() - began < 2 * LIMIT_S


def test_a_document_that_takes_too_long_ends_its_reader_and_no_other(impatient: Reader) -> None:
    slow = impatient.read(Document(HTML, LARGE["deep"], URL, "", "crawlguide"))
    quick = impatient.read(Document(HTML, b"<title>ok</title>", URL, "", "crawlguide"))
    assert (slow.problem, quick.title) == ("cannot be read as html within 0.4 s", "ok")


def test_a_document_that_takes_too_much_memory_is_given_up() -> None:
    reader = Reader(limit_s=60.0, memory_bytes=200 * MIB)
    try:
        page = reader.read(Document(HTML, b"<p>x" * (2 * MIB), URL, "", "crawlguide"))
    finally:
        reader.close()
    assert page.problem.startswith("cannot be read as html")


def test_a_large_page_is_read_as_a_small_one() -> None:
    part = PAGE.partition("<h2>")
    page = read(part[0] + "<p>more</p>" * 6_000 + "".join(part[1:]))
    assert (page.title, len(page.links), page.language, page.problem) == ("A page", 2, "en", "")
    assert page.links[1].anchor == "to the next"


def told(body: bytes) -> bytes:
    return (robots_text(200, body) or "").encode()


def test_of_an_error_page_in_place_of_a_robots_txt_nothing_is_told() -> None:
    for status in (None, 301, 404, 503):
        assert robots_text(status, b"User-agent: *") is None
    assert robots_text(200, b"") == ""


@pytest.mark.parametrize("size", [200_000, READ_ROBOTS - 40])
def test_a_robots_txt_is_told_as_far_as_its_rules_are_read(size: int) -> None:
    body = b"User-agent: *\n" + b"#" * size + b"\nDisallow: /private\n"
    assert not allowed(told(body), "crawlguide", "http://a.example/private")


def test_the_last_line_of_a_robots_txt_that_is_cut_off_is_no_rule() -> None:
    start, end = b"User-agent: *\n", b"\nDisallow: /pr"
    body = start + b"#" * (READ_ROBOTS - len(start) - len(end)) + end + b"ivate\n"
    assert allowed(told(body), "crawlguide", "http://a.example/prices")
