"""A crawl of one's own, replayed with other strategies: a web, a guide and a crawler in processes and over sockets, and
then the commands of docs/lab-webs.md as anybody types them."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from crawlguide import Client, lab
from crawlguide.core.errors import ConfigError
from crawlguide.lab.build import build
from crawlguide.lab.build.html import read_html
from crawlguide.lab.results import read_json
from tests.gateway.conftest import SCRIPT, serving
from tests.lab.test_build import archive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.lab.pages import Task, Web

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lab-webs.md").read_text()
WEB = "synthetic:seed=4,pages=400,hosts=6,topics=4"
FETCHES = 200


@contextmanager
def served() -> Iterator[str]:
    """`crawlguide lab serve`, as the address of a proxy."""
    command = [str(SCRIPT), "lab", "serve", "--web", WEB, "--port", "0", "--slowest-s", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
            assert port is not None
            yield f"http://127.0.0.1:{port[1]}"
        finally:
            process.kill()


def crawled(guide: Client, web: Web, task: Task, proxy: str) -> dict[str, httpx.Response]:
    """What a crawler got that goes by a guide and says how good each page was."""
    me = {"mcp_version": "2025-11", "crawler_id": "me", "crawl_id": "books"}
    policy = {"default_delay_s": 0, "robots": "ignore", "max_per_host": 0, "traps": False}
    guide.define("books", {"goal": {"topic": task.name}, "strategy": {"kind": "breadth-first"}, "policy": policy})
    guide.seed("books", task.seeds["portal"])
    got: dict[str, httpx.Response] = {}
    with httpx.Client(proxy=proxy, timeout=30) as client:
        while len(got) < FETCHES:
            for one in guide.ask({**me, "budget": {"max_urls": 10}})["assigned_urls"]:
                got[one["url"]] = client.get(one["url"])
                guide.tell({**me, "fetches": [told(got[one["url"]], one["url"], web.is_relevant(task, one["url"]))]})
    return got


def told(answer: httpx.Response, url: str, relevant: bool) -> dict[str, Any]:
    page, moved = read_html(answer.content, url), answer.headers.get("location")
    links = [{"url": moved}] if moved else [{"url": link.url, "anchor": link.anchor} for link in page.links]
    return {"url": url, "status": answer.status_code, "outlinks": links, "relevance": float(relevant)}


def archived(got: dict[str, httpx.Response]) -> bytes:
    """The same as a crawler that keeps an archive would have it."""
    return archive(
        [
            (
                url,
                f"{answer.status_code} x",
                "\r\n".join(f"{name}: {value}" for name, value in answer.headers.items()),
                answer.content,
            )
            for url, answer in got.items()
        ]
    )


def crawlguide(*words: str, ends: int = 0) -> str:
    done = subprocess.run([str(SCRIPT), *words], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == ends, done.stderr
    return done.stdout + done.stderr


def of_the_page(verbs: str, *more: str) -> str:
    """A command of docs/lab-webs.md, with less to do."""
    (line,) = re.findall(rf"^crawlguide ({verbs}.*)$", PAGE, re.MULTILINE)
    return crawlguide(*shlex.split(line), *more)


def test_a_crawl_is_replayed_with_other_strategies_in_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    web, less = lab.web.open(WEB), ("--budget", "100", "--repeat", "1", "--json", "out.json")
    task = web.tasks()[0]
    with served() as proxy, serving(tmp_path) as server, Client(server.url) as guide:
        got = crawled(guide, web, task, proxy)
        of_the_page("export", "--url", server.url)
    found = {url for url, answer in got.items() if answer.status_code == 200 and url in task.relevant}
    assert "Harvest rate on books" in of_the_page("lab run --web books.ndjson", *less)
    runs = {run.policy: run for run in read_json(Path("out.json")).runs}
    assert {(run.web, run.task, run.targets, run.seeds_from) for run in runs.values()} == {
        ("books", task.name, len(found), "portal")
    }
    assert len(runs["relational"].relevant) == 100
    assert sum(runs["relational"].relevant) > sum(runs["breadth-first"].relevant)
    assert sum(runs["oracle-full"].relevant) >= sum(runs["relational"].relevant)
    again = lab.web.open("books.ndjson")
    assert {url: again.fetch(url).status for url in got} == {url: answer.status_code for url, answer in got.items()}
    Path("books.warc.gz").write_bytes(archived(got))
    assert f"{task.name}: {len(found)} relevant pages" in of_the_page("lab build mine")
    of_the_page("lab run --web mine", *less)
    (feedback,) = {run.feedback for run in read_json(Path("out.json")).runs}
    assert feedback == "text"


def test_an_archive_of_the_same_crawl_brings_the_texts(tmp_path: Path) -> None:
    """The archive saw more hosts; the crawl says where it began and what was good."""
    html = "Content-Type: text/html"
    answers = [
        ("http://b.example/", "200 OK", html, b"<title>Shop</title>all of them"),
        ("http://a.example/", "200 OK", html, b'<title>Home</title>words <a href="/cats">cats</a>'),
        ("http://a.example/cats", "200 OK", html, b"<title>Cats</title>they sleep"),
    ]
    (tmp_path / "cats.warc.gz").write_bytes(archive(answers))
    lines = [
        {"crawl": "cats", "definition": {"goal": {"topic": "cats"}}},
        {"url": "http://a.example/", "state": "done", "status": 200, "relevance": 0.1},
        {"url": "http://a.example/cats", "state": "done", "status": 200, "relevance": 0.9, "depth": 1},
        {"page": "http://a.example/", "links": [{"url": "http://a.example/cats", "anchor": "cats"}]},
    ]
    (tmp_path / "cats.ndjson").write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    build(tmp_path / "web", [str(tmp_path / name) for name in ("cats.ndjson", "cats.warc.gz")])
    web = lab.web.open(tmp_path / "web")
    (task,) = web.tasks()
    assert task.relevant == {"http://a.example/cats"}
    assert task.seeds["portal"] == ("http://a.example/",)
    assert [(page.title, page.text) for page in map(web.fetch, sorted(task.relevant))] == [("Cats", "they sleep")]


@pytest.mark.parametrize("name", ["crawl.zip", "crawl.ndjson"])
def test_a_file_that_is_no_crawl_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"nothing": 1}\n')
    with pytest.raises(ConfigError, match=re.escape(name)):
        lab.web.open(tmp_path / name)


def test_a_crawl_that_nobody_judged_has_nothing_to_look_for(tmp_path: Path) -> None:
    file = tmp_path / "books.ndjson"
    file.write_text('{"url":"http://a.example/","state":"done","status":200}\n')
    assert "books has nothing to look for" in crawlguide("lab", "run", "--web", str(file), ends=2)
