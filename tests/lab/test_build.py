"""Webs out of folders of HTML, WARC files and crawls, opened again."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from crawlguide import AsyncGuide, lab
from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.lab.build import build
from crawlguide.lab.build.html import read_html
from crawlguide.lab.build.writing import cut

if TYPE_CHECKING:
    from crawlguide.lab.serving import Served
    from crawlguide.lab.synthetic import SyntheticWeb

SITE = {
    "index.html": '<title>Home</title><a href="sql/joins.html">Joins</a> <a href="cats.html">Cats</a>',
    "cats.html": '<title>Cats</title><a href="index.html">home</a> <a href="./index.html#top">home again</a>'
    '<a href="cats.html">me</a> <a href="https://elsewhere.example/x">away</a> <a href="mailto:a@b.example">me</a>',
    "sql/joins.html": '<html lang="en-GB"><title>A join</title><body><nav>Menu</nav><main>One\n two</main>'
    '<script>no()</script><a href="../sql/">up</a> <a href="views and more.html">views</a>',
    "sql/views and more.html": "<title>Views</title><main>sql, SQL and again sql</main>",
    "sql/index.htm": "<title>Old</title>",
    "picture.png": "none",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, html in SITE.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(html)
    return tmp_path / "site"


def test_a_folder_of_html_is_the_web_it_was(site: Path, tmp_path: Path) -> None:
    made = build(tmp_path / "web", [f"{site}=https://docs.example/v1"], [r"databases=\bsql\b"])
    assert (made.pages, made.hosts, made.links, made.outside, made.tasks) == (5, 1, 4, 2, {"databases": 3})
    web = lab.web.open(tmp_path / "web")
    home = web.fetch("https://docs.example/v1/")
    assert (home.title, home.status, [link.anchor for link in home.links]) == ("Home", 200, ["Joins", "Cats"])
    joins = web.fetch(home.links[0].url)
    assert (joins.text, joins.language, joins.size) == ("One two", "en", len(SITE["sql/joins.html"]))
    assert web.fetch(joins.links[1].url).title == "Views"
    assert [link.url for link in web.fetch("https://docs.example/v1/cats.html").links] == [
        "https://docs.example/v1/",
        "https://elsewhere.example/x",
    ]
    assert web.waste("https://elsewhere.example/x") == "dead"


def test_rules_look_at_title_address_and_text(site: Path, tmp_path: Path) -> None:
    """A word in passing is not enough: of two pages that say `two` or `sql` only in their text, one says it thrice."""
    build(tmp_path / "web", [f"{site}=https://docs.example/"], ["a=join", "b=cats", "c=two", "d=and again"])
    found = {task.name: sorted(task.relevant) for task in lab.web.open(tmp_path / "web").tasks()}
    assert found == {
        "a": ["https://docs.example/sql/joins.html"],
        "b": ["https://docs.example/cats.html"],
    }


def test_seeds_are_homes_relevant_pages_and_others(site: Path, tmp_path: Path) -> None:
    build(tmp_path / "web", [f"{site}=https://docs.example/"], ["cats=cats"])
    (task,) = lab.web.open(tmp_path / "web").tasks()
    assert task.seeds["portal"] == ("https://docs.example/",)
    assert task.seeds["near"] == ("https://docs.example/cats.html",)
    assert set(task.seeds["far"]) == {"https://docs.example/", "https://docs.example/sql/joins.html"}


def test_folders_link_to_each_other_as_packages_do(tmp_path: Path) -> None:
    pages = {
        "a/html/index.html": '<a href="../../b/html/two.html">two</a> <a href="../../c/none.html">none</a>',
        "b/html/two.html": f'<a href="file://{tmp_path}/a/html/index.html">one</a> <a href="file:///etc/x.html">x</a>',
    }
    for name, html in pages.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(html)
    (tmp_path / "linked").symlink_to(tmp_path / "a" / "html")
    (tmp_path / "b/html/round").symlink_to(tmp_path / "b" / "html")
    made = build(
        tmp_path / "web", [f"{tmp_path}/linked=http://a.example/docs/v/", f"{tmp_path}/b/html=http://b.example/"]
    )
    assert (made.pages, made.hosts, made.links, made.outside) == (2, 2, 2, 1)
    assert lab.web.open(tmp_path / "web").fetch("http://b.example/two.html").links[0].url == "http://a.example/docs/v/"


def archive(answers: list[tuple[str, str, str, bytes]]) -> bytes:
    """A WARC file by the letter: each record compressed for itself, after one that says who wrote the file."""
    records = [b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n"]
    for url, status, header, body in answers:
        http = f"HTTP/1.1 {status}\r\n{header}\r\n\r\n".encode() + body
        head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Length: {len(http)}\r\n"
        kind = b"Content-Type: application/http; msgtype=response\r\n\r\n"
        records.append(head.encode() + kind + http + b"\r\n\r\n")
    return b"".join(map(gzip.compress, records))


def test_a_warc_file_is_the_web_that_was_crawled(tmp_path: Path) -> None:
    html = "Content-Type: text/html; charset=latin-1"
    page = '<title>Café</title><a href="/old">old</a><a href="/gone">gone</a><a href="/new">new</a>'
    answers = [
        ("http://a.example/", "200 OK", html, page.encode("latin-1")),
        ("http://a.example/old", "301 Moved", "Location: /new", b""),
        ("http://a.example/new", "200 OK", html, b"<title>New cats</title>"),
        ("http://a.example/new", "200 OK", html, b"<title>fetched again</title>"),
        ("http://a.example/gone", "410 Gone", html, b""),
        ("http://a.example/broken", "500 Oh", html, b""),
        ("http://a.example/cat.png", "200 OK", "Content-Type: image/png", b"\x89PNG"),
    ]
    (tmp_path / "crawl.warc.gz").write_bytes(archive(answers))
    made = build(tmp_path / "web", [str(tmp_path / "crawl.warc.gz")], ["cats=cats"])
    assert (made.pages, made.tasks) == (5, {"cats": 1})
    web = lab.web.open(tmp_path / "web")
    assert web.fetch("http://a.example/").title == "Café"
    assert web.fetch("http://a.example/old").redirected_to == "http://a.example/new"
    assert web.fetch("http://a.example/old").status == 301
    assert web.fetch("http://a.example/new").title == "New cats"
    wasted = {path: web.waste(f"http://a.example/{path}") for path in ("", "old", "gone", "broken", "cat.png")}
    assert wasted == {"": None, "old": None, "gone": "dead", "broken": "error", "cat.png": "dead"}
    assert web.reachable(["http://a.example/old"]) == {"http://a.example/old", "http://a.example/new"}


ME = {"mcp_version": "2025-11", "crawler_id": "me", "crawl_id": "cats"}


async def crawl(guide: AsyncGuide, web: SyntheticWeb, served: Served, budget: int) -> None:
    """Our own client over HTTP: ask, fetch through the proxy, read, tell; redirects are links."""
    task = web.tasks()[0]
    await guide.define("cats", {
        "goal": {"topic": task.name}, "strategy": {"kind": "breadth-first"},
        "policy": {"default_delay_s": 0, "robots": "ignore", "max_per_host": 0},
    })  # fmt: skip
    await guide.seed("cats", task.seeds["portal"])
    async with httpx.AsyncClient(proxy=f"http://127.0.0.1:{served.port}", timeout=30) as client:
        for _ in range(budget // 10):
            advice: Any = await guide.ask({**ME, "budget": {"max_urls": 10}})
            told = [await fetched(client, web, one["url"]) for one in advice["assigned_urls"]]
            if told:
                await guide.tell({**ME, "fetches": told})


async def fetched(client: httpx.AsyncClient, web: SyntheticWeb, url: str) -> dict[str, Any]:
    answer = await client.get(url)
    page = read_html(answer.content, url)
    moved = answer.headers.get("location")
    links = [{"url": moved}] if moved else [{"url": link.url, "anchor": link.anchor} for link in page.links]
    return {
        "url": url, "status": answer.status_code, "title": page.title, "text": page.text, "outlinks": links,
        "relevance": float(web.is_relevant(web.tasks()[0], url)),
    }  # fmt: skip


async def test_a_crawl_of_ones_own_is_a_web_to_crawl_again(tmp_path: Path) -> None:
    web = lab.synthetic.make(2, pages=120, hosts=4, topics=3, hubs=2, traps=0.1, redirects=0.3, failing=0)
    with lab.served(web, slowest_s=0) as served:
        async with AsyncGuide.open(":memory:") as guide:
            await crawl(guide, web, served, 150)
            (tmp_path / "cats.ndjson").write_bytes(b"\n".join([line async for line in guide.export("cats")]))
        got = {request.url: request.status for request in served.log}
    task = web.tasks()[0]
    found = {url for url, status in got.items() if url in task.relevant and status == 200}
    made = build(tmp_path / "web", [str(tmp_path / "cats.ndjson")])
    assert made.pages == len(got)
    assert made.tasks == {task.name: len(found)}
    again = lab.web.open(tmp_path / "web")
    assert again.tasks()[0].relevant == found
    assert {url: again.fetch(url).status for url in got} == got
    for url in found:
        before, now = ({(link.url, link.anchor) for link in its.fetch(url).links} for its in (web, again))
        assert now == {link for link in before if link[0] != url}
    moved = [url for url, status in got.items() if status == 301]
    assert moved
    assert all(again.fetch(url).redirected_to == web.fetch(url).redirected_to for url in moved)


@pytest.mark.parametrize(
    ("sources", "rules", "wrong"),
    [
        (["nowhere=https://a.example/"], [], "there is no folder nowhere"),
        ([".=a.example"], [], "expected DIR=URL: not a URL: 'a.example'"),
        (["file.zip"], [], "expected DIR=URL, or a file that ends in .warc, .warc.gz, .ndjson, .jsonl"),
        (["none.warc"], [], "there is no such file"),
        (["bad.warc"], [], "bad.warc: expected a WARC file"),
        (["bad.ndjson"], [], "bad.ndjson: line 1: expected a line of crawlguide export"),
        ([".=https://a.example/"], [], "expected pages, got none"),
        ([".=https://a.example/"], ["cats"], "topic: expected NAME=REGEX, got 'cats'"),
        ([".=https://a.example/"], ["cats=("], "topic: cats: expected a regular expression"),
    ],
)
def test_what_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: list[str], rules: list[str], wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.warc").write_bytes(b"this is no archive at all\n")
    Path("bad.ndjson").write_text('{"nothing": 1}\n')
    with pytest.raises(ConfigError) as caught:
        build(Path("web"), sources, rules)
    assert wrong in caught.value.message
    assert not Path("web").exists()


@pytest.mark.parametrize("out", ["file", "file/web"])
def test_a_place_that_is_no_folder_is_named_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("something")
    with pytest.raises(ConfigError, match=f"{out}: expected a"):
        build(Path(out), ["nowhere.warc"])


def test_a_disk_that_cannot_be_written_is_named(site: Path) -> None:
    with pytest.raises(CrawlGuideError, match="the web cannot be written: No such file"):
        build(Path("/proc/web"), [f"{site}=https://docs.example/"])


def test_a_folder_that_is_in_use_is_not_overwritten(site: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a new or an empty folder"):
        build(site, [f"{site}=https://docs.example/"])
    assert (site / "index.html").read_text() == SITE["index.html"]
    assert not (tmp_path / "nodes.parquet").exists()


@pytest.mark.parametrize(
    ("html", "links"),
    [
        ('<a href="b">x</a>', ["http://a.example/d/b"]),
        ('<base href="/other/"><a href="b">x</a>', ["http://a.example/other/b"]),
        ('<meta http-equiv="Refresh" content="0; url=\'there\'">', ["http://a.example/d/there"]),
        ('<map><area href="/c" alt="see"></map>', ["http://a.example/c"]),
        (
            '<a href="javascript:void(0)">x</a><a name="y">y</a><a href="http://[">z</a><a href>w</a>',
            ["http://a.example/d/p"],
        ),
        ("", []),
    ],
)
def test_links_are_read_as_a_browser_reads_them(html: str, links: list[str]) -> None:
    assert [link.url for link in read_html(html.encode(), "http://a.example/d/p").links] == links


@pytest.mark.parametrize(
    ("html", "charset"),
    [
        ("<title>é</title>".encode(), ""),
        ("<title>é</title>".encode("latin-1"), ""),
        ("<title>é</title>".encode("latin-1"), "iso-8859-1"),
        ("<title>é</title>".encode(), "no-such-charset"),
        ('<meta http-equiv="content-type" content="text/html; charset=utf-16le"><title>é</title>'.encode(), "utf-8"),
        ('<meta charset="cp850"><title>é</title>'.encode("cp850"), ""),
    ],
)
def test_a_page_is_read_in_the_letters_it_was_written_in(html: bytes, charset: str) -> None:
    assert read_html(html, "http://a.example/", charset=charset).title == "é"


def test_a_picture_speaks_for_its_link() -> None:
    html = b'<a href="a"><img alt="Home  page"></a><a href="b"><img>words</a><a href="c"><img></a>'
    assert [link.anchor for link in read_html(html, "http://a.example/").links] == [
        "Home page",
        "words",
        "",
    ]


def test_a_text_is_never_cut_within_a_letter() -> None:
    assert cut("aéb", 2) == "a"
    assert cut("aéb", 3) == "aé"
    assert cut("\ud800", 3) == "?"
