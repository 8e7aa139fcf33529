"""Every command that is offered works: each target of the Makefile and each script is run here in a short form.

A new target or script fails these tests until it has one. `make TARGET QUICK=1` is the short form of a target.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.docs.blocks import PAGES, ROOT
from tests.lab.test_build import SITE
from tests.making import environment, make, make_command
from tests.training.test_risk import write_labelled

if TYPE_CHECKING:
    from collections.abc import Callable

MAKEFILE = (ROOT / "Makefile").read_text()
PYTHON = r"(?:\.venv/bin/)?python3? (?:-m )?((?:bench|scripts|demo|examples|tests)[/.][\w./]+)"

QUICK = {  # target: what its short form prints
    "help": "make crash QUICK=1",
    "setup": "",
    "wheel": "-linux_x86_64.whl",
    "bench": "| crawlguide | 10,000 |",
    "crash": "16 acks, 0 early",
    "faults": " passed",
    "machine": " passed",
    "tenants": " passed",
    "overload": "of the peak",
    "holds": "| release 10,000 leases |",
    "fuzz": " requests with seed 1: ",
    "crawling": "| crawlguide crawl | 60 |",
    "lab": "Harvest rate",
    "freshness": "Freshness on poisson",
    "hard": "| news | 1 |",
    "stopping": "| 95% |",
    "harvest": "without  ratio",
    "walls": "rank 2,000 ids, ms",
    "doors": "| WebSocket, MessagePack | 2 |",
    "frontier": "GetURLs 10x10 + PutURLs(done)",
    "bus": "; 0 lost or doubled",
}
ELSEWHERE = {  # target: who runs it
    "demo": "tests/docs/test_demo.py",
    "politeness": "tests/politeness/test_politeness.py",
    "serve": "below",
    "clean": "below",
    "test": "this is it",
    "kernels": "`make test` begins with it",
    "check": ".ci/run",
    "style": "`make check` is these three",
    "types": "`make check` is these three",
    "docs": "`make check` is these three",
}
SCRIPTS = {  # script: the options that make it short
    "bench/door_parts.py": "--urls 2000 --rounds 1 --asks 8 --doors HTTP gRPC",
    "bench/embedding.py": "--webs {web} --pages 9 --links 9",
    "bench/filters.py": "",
    "bench/relational.py": "--web {web} --tasks 1 --budget 9",
    "bench/relevance.py": "--webs {web} --pages 9",
    "bench/risk.py": "--labelled {labelled}",
    "bench/robots.py": "--files 50",
    "bench/rules.py": "--tries 3",
    "bench/sockets.py": "--urls 2000 --idle 2 --busy 2 --rounds 2 --asks 4",
    "bench/strategies.py": "--strategies layered --urls 1000 --rounds 3",
    "scripts/column_costs.py": "--urls 1000 --loops 1 --show",
    "scripts/columns.py": "--check",
    "scripts/parts.py": "--check",
    "scripts/reference.py": "--check",
    "scripts/trace.py": "",
}
BY_A_TARGET = {  # script: the target that runs it
    "bench/crawling.py": "crawling",
    "bench/doors.py": "doors",
    "bench/hard.py": "hard",
    "bench/holds.py": "holds",
    "bench/integrations_harvest.py": "harvest",
    "bench/overload.py": "overload",
    "bench/peers/run.py": "bench",
    "bench/stopping.py": "stopping",
    "bench/urlfrontier.py": "frontier",
    "bench/scrapy_harvest.py": "harvest",
    "bench/walls/measure_redis.py": "walls",
    "demo/run.py": "demo",
    "scripts/debian-packages.sh": "test",
    "scripts/kernels.py": "kernels",
    "scripts/quietly.py": "hard",
    "scripts/wheel.py": "wheel",
    "tests/crash/kill.py": "crash",
    "tests/crash/ordering.py": "crash",
    "tests/fuzz/run.py": "fuzz",
    "tests/gateway/bus/trial.py": "bus",
    "tests/politeness/trial.py": "politeness",
}
BY_A_TEST = {"examples/crawler.py": "tests/docs/test_examples.py"}


def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


def scripts() -> set[str]:
    """What can be run: shell scripts, and modules that do something when they are called by name."""
    files = [file for folder in ("bench", "scripts", "demo", "examples") for file in (ROOT / folder).rglob("*.*")]
    runnable = [file for file in files if file.suffix == ".sh" or _has_a_command(file)]
    return {str(file.relative_to(ROOT)) for file in runnable}


def _has_a_command(file: Path) -> bool:
    return file.suffix == ".py" and '__name__ == "__main__"' in file.read_text() and "peers/c" not in str(file)


# nothing is forgotten


def test_every_target_has_a_short_form_that_is_run() -> None:
    assert targets() == QUICK.keys() | ELSEWHERE.keys()
    assert "make setup\n" in (ci := (ROOT / ".ci" / "run").read_text())
    assert re.search(r"^make .*\bcheck\b", ci, re.MULTILINE)
    assert re.search(r"^check: style types docs ", MAKEFILE, re.MULTILINE)


def test_every_script_has_a_short_form_that_is_run() -> None:
    peers = {name for name in scripts() if name.startswith("bench/peers/") and name != "bench/peers/run.py"}
    assert scripts() - peers - BY_A_TEST.keys() == SCRIPTS.keys() | {
        name for name in BY_A_TARGET if not name.startswith("tests/")
    }
    assert set(BY_A_TARGET.values()) <= targets()


# each of them works


@pytest.mark.timeout(400)
@pytest.mark.parametrize("target", QUICK)
def test_a_target_works_in_its_short_form(target: str, tmp_path: Path) -> None:
    assert QUICK[target] in make(target, "QUICK=1", f"OUT={tmp_path}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small recorded web, and a few labelled URLs."""
    from crawlguide.lab.build import build

    folder = tmp_path_factory.mktemp("made")
    for name, html in SITE.items():
        (file := folder / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_text(html)
    build(folder / "web", [f"{folder / 'site'}=https://docs.example/"], ["sql=sql|join", "other=regex|python"])
    return {"web": folder / "web", "labelled": write_labelled(folder / "urls.parquet")}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_works_in_its_short_form(script: str, made: dict[str, Path]) -> None:
    module = script.removesuffix(".py").replace("/", ".")
    command = [sys.executable, "-m", module, *SCRIPTS[script].format(**made).split()]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout or "--check" in command


def test_make_serve_answers_until_ctrl_c(tmp_path: Path) -> None:
    from tests.cli.test_crawling import free_port

    port = free_port()
    command = make_command("serve", f"PORT={port}", f"DATA={tmp_path / 'data'}")
    with subprocess.Popen(command, cwd=ROOT, env=environment(), start_new_session=True) as process:
        until = time.monotonic() + 90
        while not _ready(port) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        assert _ready(port)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
    assert not _ready(port)


@pytest.mark.parametrize("when", ["it imports", "it works"])
def test_ctrl_c_ends_a_program_of_make_quietly(when: str) -> None:
    """While it works, other processes take part."""
    command = make_command("--silent", "hard", "QUICK=1")
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        _until(lambda: _children(process.pid))
        (program,) = _children(process.pid)
        if when == "it imports":
            _until(lambda: "numpy" in Path(f"/proc/{program}/maps").read_text())
        else:
            _until(lambda: _children(program))
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    assert "Error 130" in said or process.returncode == -signal.SIGINT


def _until(holds: Callable[[], object]) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)


def _children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def test_make_clean_removes_what_was_made_and_nothing_else(tmp_path: Path) -> None:
    for name in ("site", ".venv", ".mypy_cache", "src"):
        (tmp_path / name).mkdir()
    command = ["make", f"--directory={tmp_path}", f"--file={ROOT / 'Makefile'}", "clean"]
    subprocess.run(command, env=environment(), capture_output=True, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["src"]


# what the pages say about them


def pages() -> str:
    return "\n".join(page.read_text() for page in PAGES if page.name != "CHANGELOG.md")


def test_the_pages_name_targets_and_amounts_that_exist() -> None:
    named = re.findall(r"(?:`|^ *(?:\$ )?)make ([a-z]+)((?: [A-Z]+=\S+)*)", pages(), re.MULTILINE)
    assert len(named) > 10
    assert {target for target, _ in named} <= targets()
    amounts = {name for _, words in named for name in re.findall(r"([A-Z]+)=", words)}
    assert amounts <= {"QUICK", *re.findall(r"^([A-Z]+) +\?=", MAKEFILE, re.MULTILINE)}


def test_the_pages_name_scripts_and_options_that_exist() -> None:
    named = re.findall(PYTHON + r"([^`\n]*)", pages())
    assert len(named) > 8
    for name, words in named:
        file = name if name.endswith(".py") else name.replace(".", "/") + ".py"
        assert file in SCRIPTS | BY_A_TARGET | BY_A_TEST, name
        source = (ROOT / file).read_text() + (ROOT / "src/crawlguide/training/risk.py").read_text()
        assert [option for option in re.findall(r"--[a-z-]+", words) if f'"{option}"' not in source] == []
