"""Every example runs as it stands in the help and on the page, in the order in which a person would come to it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from crawlguide.cli.common import ORDER
from tests.cli.conftest import Ended, commands, done
from tests.cli.test_crawling import free_port
from tests.docs.blocks import blocks
from tests.gateway.conftest import ENDS_WITHIN_S, READY_WITHIN_S, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command-line.md").read_text()
REPORT = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
USUAL_PORT = "8080"
LONG = ("bench", "crawl", "lab", "train")  # tests/training and tests/crawler run `train` and `crawl`
TO_A_SERVER = ("next", "report", "explain", "status")
WITHOUT_A_SERVER = ("restore", "export", "import")  # these open the folder that the server had


def examples() -> list[str]:
    """Without the word `crawlguide`, in the order of the commands."""
    found = [line for command in commands().values() for line in re.findall(r"Example: crawlguide (.*)", command.help)]
    return sorted(found, key=lambda line: [*ORDER, line.split()[0]].index(line.split()[0]))


def on_the_page() -> list[str]:
    block = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    return re.findall(r"^crawlguide (.*)$", block, re.MULTILINE)


class Session:
    """A person with a second window for what goes on until Ctrl-C."""

    def __init__(self, here: Callable[..., Ended], port: int) -> None:
        self._here = here
        self._port = str(port)
        self.went_on: dict[str, subprocess.Popen[str]] = {}

    def run(self, line: str, stdin: str = "") -> str:
        if line.startswith("keys revoke"):  # the name of a key is random
            line = line.replace("4f1c09ab77d2", json.loads(self.run("keys list --data data --json"))[0]["name"])
        words, _, file = line.replace(USUAL_PORT, self._port).partition(" < ")
        return done(self._here(*shlex.split(words), stdin=Path(file).read_text() if file else stdin))

    def run_freely(self, line: str) -> None:
        """With a place for what is written, and with pipes."""
        words = line.split()
        if words[0] in {"backup", "restore"}:
            shutil.rmtree(words[1] if words[0] == "backup" else words[-1], ignore_errors=True)
        printed = ""
        for part in line.split(" | "):
            printed = self.run(part, printed)

    def start(self, line: str) -> subprocess.Popen[str]:
        words = shlex.split(line.replace(USUAL_PORT, self._port))
        pipes = subprocess.PIPE
        self.went_on[line] = subprocess.Popen([str(SCRIPT), *words], stdout=pipes, stderr=pipes, text=True)
        return self.went_on[line]

    def interrupt(self, line: str, code: int) -> None:
        process = self.went_on.pop(line)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=ENDS_WITHIN_S)
        assert process.returncode == code, said
        assert "Traceback" not in said

    def end(self) -> None:
        for process in self.went_on.values():
            process.kill()
            process.communicate()

    def wait(self) -> None:
        """Until the server answers."""
        until = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until:
            try:
                httpx.get(f"http://127.0.0.1:{self._port}/healthz", trust_env=False)
            except httpx.ConnectError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the server does not answer")


@pytest.fixture
def session(here: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    port = free_port()
    monkeypatch.setenv("CRAWLGUIDE_SERVER_PORT", str(port))  # what is 8080 for everybody else
    Path("report.json").write_text(REPORT)
    Path("urls.txt").write_text("https://example.com/\n")
    person = Session(here, port)
    yield person
    person.end()


def test_every_example_runs(session: Session) -> None:
    waiting = [line for line in (*on_the_page(), *examples()) if line.split()[0] not in LONG]
    serve, watch = (next(line for line in waiting if word in line) for word in ("serve -", "--watch"))
    after = [line for line in waiting if line.split()[0] in WITHOUT_A_SERVER]
    session.start(serve)
    session.wait()
    for line in [line for line in waiting if line not in {serve, watch, *after}]:
        session.run(line)
    watched = session.start(watch).stdout
    assert watched is not None
    assert watched.readline().startswith("crawlguide ")
    session.interrupt(serve, 0)
    assert any("cannot be reached" in watched.readline() for _ in range(20))  # it waits for the server to come back
    session.interrupt(watch, 0)
    shutil.rmtree("crawlguide-data")  # and comes back out of the backup
    for line in after:
        session.run(line)
    assert Path("books.ndjson").read_text().count("https://example.com/") > 0


def on_other_pages() -> list[str]:
    shown = [block for block in blocks("") if block.text.startswith("crawlguide ") and "command-line" not in block.page]
    shown = [block for block in shown if "keys create" not in block.text]  # tests/gateway/access/test_fleet.py
    lines = [line.partition("#")[0].strip() for block in shown for line in block.text.splitlines()]
    known = dict.fromkeys(line.replace("crawlguide ", "") for line in lines if line.startswith("crawlguide "))
    return [line for line in known if line.split()[0] not in LONG]


def test_the_commands_of_the_other_pages_run(session: Session) -> None:
    """Those for a server first; then it ends, and those for a folder follow. What they write into is made free."""
    lines = on_other_pages()
    serve = next(line for line in lines if line.startswith("serve"))
    to_server = [line for line in lines if "--url" in line or line.split()[0] in TO_A_SERVER]
    to_folder = [line for line in lines if line not in {serve, *to_server}]
    assert (len(to_server), len(to_folder)) > (4, 4)
    session.start(serve)
    session.wait()
    for line in sorted(to_server, key=lambda line: line.split()[0] not in TO_A_SERVER):
        session.run_freely(line)
    session.interrupt(serve, 0)
    for line in to_folder:
        session.run_freely(line)


def test_the_examples_of_the_lab_run(session: Session) -> None:
    """Its runs with a smaller budget: to their end they take most of a minute."""
    run, explain, serve, build, freshness = (line for line in examples() if line.startswith("lab"))
    here = serve.replace("8090", "0")
    said = session.start(here).stderr
    assert said is not None
    assert "is served on http://127.0.0.1:" in said.readline()
    session.interrupt(here, 0)
    session.run("import urls.txt --data crawlguide-data")
    session.run("report https://example.com/ --status 200 --relevance 0.9 --link /next --data crawlguide-data")
    session.run("export --data crawlguide-data --output books.ndjson")
    session.run(build)
    session.run(f"{run} --budget 20")
    session.run(f"{explain} --budget 20")
    session.run(f"{freshness} --pages 60 --days 20")
    assert all(Path(name).exists() for name in ("lab.html", "errors.html", "freshness.html"))


def test_the_example_of_bench_begins_and_ends_with_ctrl_c(
    session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To its end it would run for most of a minute."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    bench = next(line for line in examples() if line.startswith("bench"))
    said = session.start(bench).stderr
    assert said is not None
    assert said.readline() == "100,000 URLs: filling a folder, asking and telling in process\n"
    until = time.monotonic() + READY_WITHIN_S
    while not list(scratch.rglob("frontier-*/CURRENT")) and time.monotonic() < until:
        time.sleep(0.02)  # it has begun to fill it
    session.interrupt(bench, 130)
    assert list(scratch.iterdir()) == []
