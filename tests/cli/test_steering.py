"""release and rules: a crawl steered by hand, against a real server and a real folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Ended, done, refused
from tests.gateway.conftest import Served

if TYPE_CHECKING:
    from collections.abc import Callable

A, B = "https://a.example/x", "https://b.example/y"


@pytest.fixture(params=["server", "folder"])
def about(request: pytest.FixtureRequest, served: Served, crawl: str, here: Callable[..., Ended]) -> list[str]:
    """A crawl with two URLs that a crawler holds, and the options that say which and where."""
    where = ["--url", served.url] if request.param == "server" else ["--data", "folder"]
    options = ["--crawl", crawl, *where]
    done(here("next", "--crawler", "me", "--seed", A, "--seed", B, *options))
    return options


def test_what_a_crawler_holds_is_released(here: Callable[..., Ended], about: list[str]) -> None:
    assert done(here("release", "--crawler", "me", *about)).startswith("2 URLs of me wait again in crawl 'crawl-")
    assert json.loads(done(here("release", "--crawler", "me", "--json", *about))) == {"released": 0}


def test_rules_are_shown_and_changed(here: Callable[..., Ended], about: list[str]) -> None:
    assert done(here("rules", *about)) == "nothing is banned or weighted\n"
    edits = ["--ban-host", "a.example", "--ban-pattern", "/old/", "--ban-url", "https://c.example/?a=b"]
    weights = ["--url-priority", B + "?a=b=0.9", "--host-factor", "b.example=0.5", "--pattern-factor", "x=y=2"]
    shown = done(here("rules", *edits, *weights, *about))
    assert [line.split() for line in shown.splitlines()] == [
        ["rule", "of", "what", "is"],
        ["banned", "url", "https://c.example/?a=b"],
        ["banned", "host", "a.example"],
        ["banned", "pattern", "/old/"],
        ["priority", "url", B + "?a=b", "0.9"],
        ["factor", "host", "b.example", "0.5"],
        ["factor", "pattern", "x=y", "2"],
    ]
    lifted = ["--unban-host", "a.example", "--unban-pattern", "/old/", "--unban-url", "https://c.example/?a=b"]
    rules = json.loads(done(here("rules", *lifted, "--json", *about)))
    assert rules["ban"] == {"urls": [], "hosts": [], "patterns": []}
    edit = {"priority": {"urls": {B + "?a=b": None}, "hosts": {"b.example": None}, "patterns": {"x=y": None}}}
    assert done(here("rules", "--edit", "-", *about, stdin=json.dumps(edit))) == "nothing is banned or weighted\n"


def test_explain_says_which_rule_bans(here: Callable[..., Ended], about: list[str]) -> None:
    done(here("release", "--crawler", "me", *about))
    done(here("rules", "--ban-host", "a.example", *about))
    assert "rules.ban.hosts names a.example" in done(here("explain", A, *about))


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["--ban-pattern", "("], 1, ["ban.patterns[0]", "RE2"]),
        (["--host-factor", "b.example"], 2, ["after the last =", "b.example"]),
        (["--host-factor", "b.example=200"], 1, ["priority.hosts", "0 to 100"]),
        (["--edit", "file.json"], 2, ["--edit", "file.json"]),
        (["--edit", "-", "--ban-host", "a.example"], 2, ["--edit", "ban"]),
        (["--edit", "-"], 2, ["--edit", "JSON"]),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    here: Callable[..., Ended], about: list[str], words: list[str], code: int, named: list[str]
) -> None:
    refused(here("rules", *words, *about), code, *named)


@pytest.mark.parametrize("command", [["release", "--crawler", "me"], ["rules"], ["rules", "--ban-host", "a.example"]])
def test_a_crawl_that_is_not_there_is_named(here: Callable[..., Ended], served: Served, command: list[str]) -> None:
    refused(here(*command, "--crawl", "nobody", "--url", served.url), 1, "nobody")
