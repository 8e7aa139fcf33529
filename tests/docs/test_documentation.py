"""The documentation is true: its examples run, and it names every key."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import crawlguide
from crawlguide.core import config

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text()
PACKAGE = ROOT / "src" / "crawlguide"
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """What `make serve` starts, on a free port."""
    ready = tmp_path_factory.mktemp("serve") / "ready.json"
    program = str(Path(sys.executable).with_name("crawlguide"))
    process = subprocess.Popen([program, "serve", "--data", ":memory:", "--port", "0", "--ready-file", str(ready)])
    deadline = time.monotonic() + 90
    while not ready.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    try:
        yield json.loads(ready.read_text())["port"]
    finally:
        process.terminate()
        assert process.wait(20) == 0


def console_steps() -> list[tuple[str, str]]:
    """Each `$ command` of the README with the line that it prints."""
    lines = [line for block in blocks(README, "console") for line in block.splitlines()]
    return [(line[2:], lines[number + 1]) for number, line in enumerate(lines) if line.startswith("$ ")]


def test_the_readme_shows_commands() -> None:
    assert len(console_steps()) >= 4


def test_the_service_answers_the_lines_of_the_readme_word_for_word(service: int) -> None:
    for command, expected in console_steps():
        words = [word.replace("localhost:8080", f"127.0.0.1:{service}") for word in shlex.split(command)]
        printed = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
        pattern = ".+?".join(re.escape(part) for part in expected.split("…"))
        assert re.fullmatch(pattern, printed), f"{command}\nprinted  {printed}\nexpected {expected}"


def test_the_python_of_the_readme_runs_and_counts_what_it_told() -> None:
    for example in blocks(README, "python"):
        if "guided_sync" in example or "ADDONS" in example:
            continue  # tests/integrations runs these
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(example, "README.md", "exec"), {})
        assert "'accepted': 1, 'discovered': 1" in said.getvalue()


def test_the_configuration_example_loads(tmp_path: Path) -> None:
    for example in blocks(CONFIGURATION, "toml"):
        path = tmp_path / "crawlguide.toml"
        path.write_text(example)
        loaded = msgspec.to_builtins(config.load(path))
        for section, options in tomllib.loads(example).items():
            assert options.items() <= loaded[section].items()


def documented_keys() -> dict[str, str]:
    table = CONFIGURATION.partition("## What a crawl")[0]
    return dict(re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| `([^`]*)` \|", table, re.MULTILINE))


@pytest.mark.parametrize("key", sorted(config.keys()))
def test_every_key_is_documented_with_its_default(key: str) -> None:
    default: Any = config.keys()[key][1]
    assert json.loads(documented_keys()[key]) == (list(default) if isinstance(default, tuple) else default)


def test_no_key_is_documented_that_does_not_exist() -> None:
    assert documented_keys().keys() == config.keys().keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def files_named_in(text: str) -> list[Path]:
    """Paths in a page stand below the package, or below the root of the repository."""
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|html))`", text)
    return [next((path for path in (PACKAGE / name, ROOT / name) if path.exists()), Path(name)) for name in named]


@pytest.mark.parametrize("page", ["house.md", "changing.md"])
def test_the_pages_about_the_code_name_files_that_exist(page: str) -> None:
    named = files_named_in((ROOT / "docs" / page).read_text())
    assert len(named) > 20
    assert [str(path) for path in named if not path.exists()] == []


def walked() -> list[tuple[str, str]]:
    """Each row of the two walks in changing.md that names functions: its files, and the functions in them."""
    tables = (ROOT / "docs" / "changing.md").read_text().partition("## The walk of one ask")[2]
    rows = re.findall(r"^\| [^|]* \| ([^|]*\.py[^|]*) \| ([^|]*`[^|]*) \|$", tables, re.MULTILINE)
    return [(files, functions) for files, functions in rows]


@pytest.mark.parametrize(("files", "functions"), walked())
def test_the_functions_of_a_walk_are_where_the_page_says(files: str, functions: str) -> None:
    code = "".join(path.read_text() for path in files_named_in(files))
    names = [name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", functions)]
    assert [name for name in names if not re.search(rf"\b(?:def|class) {name}\b|^{name} = ", code, re.MULTILINE)] == []


def test_the_make_targets_of_the_readme_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`?make ([a-z]+)`?", README)) <= set(targets)


def test_importing_crawlguide_or_asking_for_help_loads_nothing_heavy() -> None:
    program = (
        "import sys, crawlguide, crawlguide.cli; print([m for m in ('numba', 'numpy', 'uvicorn') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert printed.stdout.strip() == "[]"


def test_the_changelog_speaks_of_this_version_or_of_what_is_coming() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## Unreleased" in changelog or f"## {crawlguide.__version__}" in changelog


def test_a_port_that_is_taken_is_said_before_anything_is_loaded() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        program = str(Path(sys.executable).with_name("crawlguide"))
        command = [program, "serve", "--port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert str(port) in ended.stderr
