"""docs/lab-webs.md is true: its programs and commands run, and it names every option."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import msgspec
import pytest
from typer.testing import CliRunner

from crawlguide.cli.lab import webs
from crawlguide.lab import web
from crawlguide.lab.synthetic import Options
from tests.lab.test_build import SITE, archive

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lab-webs.md").read_text()
SERVER = "from crawlguide.cli.lab import webs; webs()"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def command(verb: str, part: str) -> list[str]:
    """The words of a command of the page after `crawlguide lab`."""
    lines = [line for block in blocks("sh") for line in block.replace("\\\n", "").splitlines()]
    (found,) = [line for line in lines if line.startswith(f"crawlguide lab {verb} ") and part in line]
    return shlex.split(found)[2:]


def run(words: list[str]) -> str:
    ended = CliRunner().invoke(webs, words)
    assert ended.exit_code == 0, ended.output
    return ended.output


def printed(block: str) -> list[str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block, "lab-webs.md", "exec"), {})
    return said.getvalue().splitlines()


def test_the_programs_run() -> None:
    known, served = map(printed, blocks("python"))
    assert known[0].split()[0] == "garden-plants"
    assert known[0].endswith("200 True")
    assert known[1] == "True trap 200"
    assert served == [
        "200 text/html; charset=utf-8",
        "200 text/html; charset=utf-8",
        "['http://www.harbour-review.example/', 'http://news.harbour-review.example/']",
    ]


def test_every_option_is_named_with_its_default() -> None:
    table = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE, re.MULTILINE))
    assert {name: float(value) for name, value in table.items()} == msgspec.structs.asdict(Options())


def test_documentation_packages_become_a_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = command("build", "sqlite3")
    missing = [
        word.partition("=")[0] for word in words if word.startswith("/") and not Path(word.split("=")[0]).exists()
    ]
    if missing:
        pytest.skip(f"the Debian packages of the page are not installed: there is no {missing[0]}")
    monkeypatch.chdir(tmp_path)
    said = run(words)
    shape = re.sub(r"\d+", r"\\d+", blocks("text")[0])  # other versions have other numbers
    assert re.fullmatch(shape, said)
    assert {task.name for task in web.open(tmp_path / "docs").tasks()} == {"transactions", "regex"}


def test_an_archive_becomes_a_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = ("http://a.example/", "200 OK", "Content-Type: text/html", b"<title>SQL</title>")
    Path("crawl.warc.gz").write_bytes(archive([page]))
    assert "databases: 1 relevant pages" in run(command("build", "crawl.warc.gz"))


def test_a_crawl_becomes_a_web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = '{"url":"http://a.example/","state":"done","status":200,"relevance":0.9}\n'
    Path("books.ndjson").write_text('{"crawl":"books","definition":{}}\n' + known)
    assert "books: 1 relevant pages" in run(["build", "mine", "books.ndjson"])


def test_a_web_without_anything_to_look_for_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("site").mkdir()
    Path("site/index.html").write_text(SITE["index.html"])
    assert "nothing to look for" in run(["build", "web", "site=https://a.example/"])


def test_a_web_is_served_until_ctrl_c() -> None:
    words = [word if word != "8090" else "0" for word in command("serve", "pages=500")]
    process = subprocess.Popen([sys.executable, "-c", SERVER, *words], stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        port = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert port is not None
        (curl,) = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("curl")]
        answer = httpx.get(shlex.split(curl)[-1], proxy=f"http://127.0.0.1:{port[1]}")
        assert answer.text.startswith("User-agent: *")
        process.send_signal(signal.SIGINT)
        assert "1 requests were answered" in process.stderr.read()
