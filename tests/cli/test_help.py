"""Help comes at once and names what there is; a typo gets the word that was meant."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.text import Text

from crawlguide.cli.common import ORDER
from tests.cli.conftest import Ended, commands, done, refused

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command-line.md").read_text()
CPU_S = 1.0


def test_help_takes_less_than_a_second_and_loads_nothing_heavy() -> None:
    program = (
        "import sys, time, atexit\n"
        "from crawlguide.cli import main\n"
        "heavy = ('numba', 'numpy', 'httpx', 'rocksdict', 'uvicorn')\n"
        "said = lambda: print(time.process_time(), [m for m in heavy if m in sys.modules], file=sys.stderr)\n"
        "atexit.register(said)\n"
        "sys.argv = ['crawlguide', '--help']\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    seconds, loaded = ended.stderr.split(" ", 1)
    assert "doctor" in ended.stdout
    assert loaded == "[]\n"
    assert float(seconds) < CPU_S


@pytest.mark.parametrize("name", ["", "config", *commands()])
def test_every_help_is_printed_without_colours(here: Callable[..., Ended], name: str) -> None:
    printed = done(here(*name.split(), "--help"))
    assert "Usage: " in printed


@pytest.mark.parametrize("words", [(), ("crawl",), ("config", "show")])
def test_help_is_a_command_as_well(here: Callable[..., Ended], words: tuple[str, ...]) -> None:
    assert done(here("help", *words)) == done(here(*words, "--help"))


@pytest.mark.parametrize("name", commands())
def test_every_command_says_what_it_does_and_gives_an_example(name: str) -> None:
    lines = commands()[name].help.splitlines()
    assert lines[0].endswith(".")
    assert f"Example: crawlguide {name}" in commands()[name].help


@pytest.mark.parametrize("name", commands())
def test_nothing_in_brackets_is_lost_from_a_help(name: str) -> None:
    for option in commands()[name].params:
        words = getattr(option, "help", None) or ""
        assert Text.from_markup(words).plain == words.replace("\\[", "[")


def test_the_order_of_commands_names_those_that_are_there(here: Callable[..., Ended]) -> None:
    assert set(ORDER) <= {name.split()[0] for name in commands()}
    shown = re.findall(r"^│ ([a-z]+) ", done(here("--help")).partition("─ Commands")[2], re.MULTILINE)
    assert shown[: len(ORDER)] == list(ORDER)  # others come last


def test_the_page_names_every_command() -> None:
    table = PAGE.partition("A first session")[0]
    assert set(re.findall(r"`([a-z]+(?: [a-z-]+)?)`", table)) >= set(commands())


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("statsu", "status"),
        ("help statsu", "status"),
        ("explian https://example.com/", "explain"),
        ("config shwo", "show"),
        ("status --crwl books", "--crawl"),
        ("next --crawler me --urls 3 --sed https://example.com/", "--seed"),
        ("next", "--crawler"),
        ("report https://example.com/ --error slow", "timeout"),
    ],
)
def test_a_mistyped_command_or_option_is_told_what_was_meant(
    here: Callable[..., Ended], typed: str, meant: str
) -> None:
    ended = here(*typed.split())
    assert done(ended, 2) == ""
    assert meant in ended.stderr.partition("Error")[2]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("server.prot", "server.port"),
        ("port", "server.port"),
        ("CRAWLGUIDE_SERVER_PORT", "server.port"),
        ("crawls", "crawls.auto_create, crawls.max_auto_created, crawls.max_loaded, crawls.plugins"),
        ("zzzzzzzz", "config show"),
    ],
)
def test_a_mistyped_key_is_told_what_was_meant(here: Callable[..., Ended], typed: str, meant: str) -> None:
    ended = here("config", "explain", typed)
    assert done(ended, 2) == ""
    assert ended.stderr.startswith(f"crawlguide: unknown key '{typed}'; ")
    assert meant in ended.stderr


def test_a_bench_that_could_not_write_its_figures_does_not_begin(here: Callable[..., Ended]) -> None:
    refused(here("bench", "--json", "no-such-folder/bench.json"), 2, "--json", "no-such-folder/bench.json")
