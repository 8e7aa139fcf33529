"""init and config: a file with every key, where each value comes from, what each means."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crawlguide.cli.config import MEANINGS, variable
from crawlguide.cli.init import document
from crawlguide.core.config import Config, keys, load
from crawlguide.core.type_words import in_words
from tests.cli.conftest import Ended, done, refused

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text()


def documented() -> dict[str, str]:
    """The meanings in docs/configuration.md, with links as their words alone."""
    table = PAGE.partition("## What a crawl")[0]
    found = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| `[^`]*` \| (.*) \|$", table, re.MULTILINE)
    return {key: re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", meaning) for key, meaning in found}


def test_meanings_are_those_of_the_documentation() -> None:
    assert documented() == MEANINGS


def test_every_key_has_a_meaning() -> None:
    assert sorted(MEANINGS) == sorted(keys())


def test_what_init_writes_changes_nothing(here: Callable[..., Ended]) -> None:
    assert "crawlguide reads it in this folder" in done(here("init"))
    assert load(Path("crawlguide.toml")) == Config()
    assert done(here("config", "check")) == "good: crawlguide.toml, 0 keys set\n"


def test_what_init_writes_holds_every_key_with_its_default(here: Callable[..., Ended]) -> None:
    told = json.loads(done(here("init", "all.toml", "--json")))
    text = Path("all.toml").read_text()
    assert told == {"path": "all.toml", "bytes": len(text.encode())}
    bare = re.sub(r"^#([a-z_]+ = )", r"\1", text, flags=re.MULTILINE)
    Path("all.toml").write_text(bare)
    assert load(Path("all.toml")) == Config()
    shown = json.loads(done(here("config", "show", "--config", "all.toml", "--json")))
    assert {one["source"] for one in shown.values()} == {"file all.toml"}


@pytest.mark.parametrize("key", keys())
def test_what_init_writes_says_what_a_key_means(key: str) -> None:
    option = key.partition(".")[2]
    assert f"\n# {MEANINGS[key]}\n#{option} = " in document()


def test_init_writes_over_nothing_unless_told_to(here: Callable[..., Ended]) -> None:
    Path("crawlguide.toml").write_text("[server]\nport = 9090\n")
    refused(here("init"), 2, "crawlguide.toml", "--force")
    assert load(Path("crawlguide.toml")).server.port == 9090
    done(here("init", "--force"))
    assert load(Path("crawlguide.toml")) == Config()


def test_init_says_what_cannot_be_written(here: Callable[..., Ended]) -> None:
    refused(here("init", "no/such/folder.toml"), 2, "no/such/folder.toml", "No such file")


def test_show_says_where_each_value_comes_from(here: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("crawlguide.toml").write_text(
        "[server]\nport = 9090\nhost = '::1'\ndrain_s = 10\n[crawls]\nauto_create = false\n"
    )
    monkeypatch.setenv("CRAWLGUIDE_SERVER_HOST", "localhost")
    monkeypatch.setenv("CRAWLGUIDE_GUIDE_FILTERS", "seen,budget")
    shown = json.loads(done(here("config", "show", "--port", "7070", "--json")))
    assert list(shown) == list(keys())
    assert shown["server.port"] == {"value": 7070, "source": "flag"}
    assert shown["server.host"] == {"value": "localhost", "source": "environment CRAWLGUIDE_SERVER_HOST"}
    assert shown["guide.filters"] == {"value": ["seen", "budget"], "source": "environment CRAWLGUIDE_GUIDE_FILTERS"}
    assert shown["server.drain_s"] == {"value": 10, "source": "file crawlguide.toml"}
    assert shown["store.data"] == {"value": "crawlguide-data", "source": "default"}
    table = done(here("config", "show", "--port", "7070"))
    assert re.search(r"^server\.port +7070 +flag$", table, re.MULTILINE)
    assert re.search(r"^crawls\.auto_create +false +file crawlguide\.toml$", table, re.MULTILINE)


def test_check_counts_what_is_set(here: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWLGUIDE_SERVER_PORT", "9090")
    assert done(here("config", "check")) == "good: no file, 1 key set\n"
    assert json.loads(done(here("config", "check", "--data", "x", "--json"))) == {"good": True, "file": None, "set": 2}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("[server]\nprot = 1\n", "did you mean 'server.port'?"),
        ("[server]\nport = 'x'\n", "server.port"),
        ("[server]\nport = 70000\n", "to 65535"),
        ("[server]\nhost = '0.0.0.0'\n", "no credential is configured"),
        ("[server]\ngrpc = true\ngrpc_port = 8080\n", "server.grpc_port: expected another port than server.port"),
        ("[guide]\nfilters = ['seen', 'sene']\n", "expected one of"),
        ("port = [\n", "not TOML"),
    ],
)
def test_check_refuses_what_a_server_would_refuse(here: Callable[..., Ended], content: str, named: str) -> None:
    Path("bad.toml").write_text(content)
    refused(here("config", "check", "--config", "bad.toml"), 2, named)
    ended = here("config", "check", "--config", "bad.toml", "--json")
    assert named in json.loads(done(ended, 2))["message"]


def test_a_file_that_is_named_has_to_be_there(here: Callable[..., Ended]) -> None:
    refused(here("config", "show", "--config", "no.toml"), 2, "no.toml: no such file")


@pytest.mark.parametrize("key", keys())
def test_explain_says_what_a_key_means_and_takes(here: Callable[..., Ended], key: str) -> None:
    told = json.loads(done(here("config", "explain", key, "--json")))
    default = keys()[key][1]
    assert told == {
        "key": key,
        "meaning": documented()[key],
        "type": in_words(keys()[key][0]),
        "default": list(default) if isinstance(default, tuple) else default,
        "environment": variable(key),
    }


def test_the_variable_that_explain_names_sets_the_key(here: Callable[..., Ended]) -> None:
    assert load(None, {variable("server.port"): "9090"}).server.port == 9090
    assert "environment  CRAWLGUIDE_SERVER_PORT\n" in done(here("config", "explain", "server.port"))


def test_kinds_are_said_in_words() -> None:
    kinds = {key: in_words(kind) for key, (kind, _) in keys().items()}
    assert kinds["server.port"] == "an integer from 0 to 65535"
    assert kinds["guide.slow_ms"] == "a number above 0"
    assert kinds["crawls.auto_create"] == "true or false"
    assert kinds["guide.filters"] == "a list, each text"
    assert kinds["select.unreliable_threshold"] == 'a number from 0 to 1 or "auto"'
