"""docs/lab-freshness.md is true: its commands and its program run, and it names everything; the report is a page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import typer

from crawlguide.cli.lab import webs
from crawlguide.lab.freshness import experiment, policies, results
from crawlguide.lab.freshness.recorded import Line
from crawlguide.lab.freshness.synthetic import KINDS
from crawlguide.lab.report import freshness as report
from tests.browsing import in_browser
from tests.lab.test_report import HOSTILE, look

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lab-freshness.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crawlguide", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the documented file of histories lies."""
    made = tmp_path_factory.mktemp("freshness")
    (example,) = blocks("json")
    (made / "mine.ndjson").write_text(example)
    return made


def test_its_commands_run(folder: Path) -> None:
    for block in blocks("sh"):
        done = run([*shlex.split(block)[1:], "--pages", "60"], folder)
        assert done.returncode == 0, done.stderr
        assert "Freshness on" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 80
    assert {"freshness.html", "freshness.json"} <= {path.name for path in folder.iterdir()}


def test_its_program_runs(folder: Path) -> None:
    todo = experiment.jobs(
        [experiment.Web(name="poisson", file=None, pages=50, days=4)], ["crawlguide", "fixed"], [0.2], 1, 0
    )
    document = results.Results(command=[], versions={}, runs=list(experiment.completed(todo, 1)))
    results.write_json(document, folder / "freshness.json")
    (program,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("crawlguide 0."), done.stderr


def test_its_histories_are_lines() -> None:
    (example,) = blocks("json")
    assert [msgspec.json.decode(line, type=Line).importance for line in example.splitlines()] == [1.0, 2.5]
    assert set(re.findall(r"^\| `([a-z]+)` \| .*$", PAGE, re.MULTILINE)) >= set(Line.__struct_fields__)


def test_it_names_every_web_policy_and_option() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)`", PAGE, re.MULTILINE)) >= {
        *KINDS, *policies.BUILDERS, *policies.REFERENCES
    }  # fmt: skip
    command: Any = typer.main.get_command(webs)
    options = {option for parameter in command.commands["freshness"].params for option in parameter.opts}
    assert set(re.findall(r"`(--[a-z-]+)", PAGE)) == options - {"--help"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budgets", "0"], "--budgets: expected per cent of the pages"),
        (["--budgets", "many"], "--budgets: expected per cent of the pages"),
        (["--webs", "quiet"], "--webs: expected all, none or some of poisson"),
        (["--webs", "none"], "--webs: expected some where there are no --histories"),
        (["--policies", "best"], "--policies: expected all or some of crawlguide"),
        (["--histories", "missing.parquet"], "--histories: expected a file"),
        (["--html", "missing/out.html"], "--html: expected a file in a folder"),
    ],
)
def test_wrong_options_are_named(words: list[str], said: str, tmp_path: Path) -> None:
    done = run(["lab", "freshness", "--quick", *words], tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


@in_browser
@pytest.mark.parametrize("width", [1100, 400])
def test_the_page_needs_no_network_no_scripts_and_no_wide_screen(browser: Browser, folder: Path, width: int) -> None:
    run([*shlex.split(blocks("sh")[0])[1:], "--pages", "60"], folder)
    seen = look(browser, folder / "freshness.html", viewport={"width": width, "height": 800})
    assert (seen["scripts"], seen["foreign"], seen["handlers"], seen["outside"]) == (0, 0, 0, [])
    assert seen["wide"] == width
    assert "Whose copies are fresher" in seen["text"]


@in_browser
def test_whatever_a_web_is_called_stays_text(browser: Browser, tmp_path: Path) -> None:
    runs = [made(web, policy) for web in HOSTILE for policy in ("crawlguide", "uniform")]
    document = results.Results(command=["crawlguide", *HOSTILE], versions={}, runs=runs)
    report.write_html(document, tmp_path / "page.html")
    seen = look(browser, tmp_path / "page.html", viewport={"width": 1100, "height": 800})
    assert (seen["scripts"], seen["foreign"], seen["handlers"]) == (0, 0, 0)


def made(web: str, policy: str) -> results.Run:
    return results.Run(
        web=web, share=0.2, policy=policy, repeat=0, reference=False, pages=3, days=2, weight=[3.0, 3.0],
        freshness=[1.0, 0.5], age=[0.0, 0.1], requests=[1, 1], for_nothing=[0, 1], expected=None, optimum=None,
        seconds=0.1,
    )  # fmt: skip
