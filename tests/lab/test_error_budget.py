"""`lab explain-run`: every request has a cause, what is said of it is true, and watching changes nothing."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner

from crawlguide.cli import app
from crawlguide.core.urls import queue
from crawlguide.lab import error_budget, report, synthetic
from crawlguide.lab.error_budget import CAUSES, ErrorBudget, explain_run
from crawlguide.lab.pages import Link, Page, Task
from crawlguide.lab.report.error_budget import budget_html
from crawlguide.lab.run import Settings, run
from tests.lab.test_report import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

WEB = "synthetic:seed=4,pages=300,hosts=6,topics=4"


class Tiny:
    """A web that is written down; what it does not hold is a 404."""

    name = "tiny"

    def __init__(self, links: dict[str, str], relevant: str, seeds: str) -> None:
        self._links = {_url(page): [_url(to) for to in its.split()] for page, its in links.items()}
        self._task = Task("music", {"far": tuple(map(_url, seeds.split()))}, frozenset(map(_url, relevant.split())))

    def tasks(self) -> list[Task]:
        return [self._task]

    def fetch(self, url: str) -> Page:
        if url not in self._links:
            return Page(url, 404)
        links = tuple(Link(to, "a link", number) for number, to in enumerate(self._links[url]))
        return Page(url, 200, "a page", "some text", links=links)

    def is_relevant(self, task: Task, url: str) -> bool:
        return url in task.relevant

    def waste(self, url: str) -> str | None:
        return None if url in self._links else "dead"

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        return frozenset(seeds) | frozenset(self._links)


def _url(word: str) -> str:
    host, _, path = word.partition("/")
    return f"http://{host}.example/{path}"


def explained(web: Any, policy: str = "breadth-first", **settings: Any) -> ErrorBudget:
    given = Settings(**({"budget": 50, "batch": 1} | settings))
    return explain_run(web, web.tasks()[0], policy, given, ["crawlguide", "lab", "explain-run"])


@pytest.fixture(scope="module")
def sample() -> ErrorBudget:
    return explained(synthetic.parsed(WEB), "layered", budget=150, batch=10)


def test_every_request_has_one_cause(sample: ErrorBudget) -> None:
    assert len(sample.requests) == 150
    assert sum(sample.causes.values()) == 150
    assert [sum(block.values()) for block in sample.blocks] == [100, 50]
    assert {one.cause for one in sample.requests} <= {cause.name for cause in CAUSES}


def test_watching_changes_nothing(sample: ErrorBudget) -> None:
    web = synthetic.parsed(WEB)
    plain = run(web, web.tasks()[0], "layered", 0, Settings(budget=150))
    assert [int(one.cause == "hit") for one in sample.requests] == plain.relevant
    assert [one.p for one in sample.requests] == plain.p


def test_causes_are_what_happened() -> None:
    web = Tiny(
        {"a/": "a/1 a/2 a/gone b/gone a/good", "a/1": "", "a/2": "", "a/good": ""}, relevant="a/good", seeds="a/"
    )
    told = explained(web)
    assert {one.url: one.cause for one in told.requests} == {
        _url("a/"): "seed", _url("a/1"): "promised", _url("a/2"): "promised", _url("a/gone"): "dead link",
        _url("b/gone"): "dead host", _url("a/good"): "hit",
    }  # fmt: skip


def test_a_crawl_that_knows_no_relevant_page_has_run_dry() -> None:
    web = Tiny({"a/": "a/1", "a/1": "a/2", "a/2": "a/good a/3", "a/good": "", "a/3": ""}, "a/good", "a/")
    assert [one.cause for one in explained(web).requests] == ["seed", "ran dry", "ran dry", "hit", "ran dry"]


def test_what_better_was_known_is_said_with_its_chance_and_rank() -> None:
    web = Tiny({"a/": "a/1 a/good", "a/1": "", "a/good": ""}, "a/good", "a/")
    first = explained(web).requests[1]
    assert (first.url, first.better, first.waiting, first.better_rank) == (_url("a/1"), _url("a/good"), 1, 2)
    assert first.better_p is not None


def test_what_one_answer_gave_out_was_not_waiting() -> None:
    web = Tiny({"a/": "a/1 a/good", "a/1": "", "a/good": ""}, "a/good", "a/")
    assert [one.cause for one in explained(web, batch=10).requests] == ["seed", "ran dry", "hit"]


def test_regrets_are_counted_from_when_a_page_was_known() -> None:
    web = Tiny({"a/": "a/1 a/2 a/good", "a/1": "", "a/2": "", "a/good": ""}, "a/good", "a/")
    (regret,) = explained(web).regrets
    assert (regret.url, regret.known, regret.fetched, regret.wasted) == (_url("a/good"), 1, 4, 2)
    assert regret.found_on == _url("a/")


def test_a_page_that_was_never_fetched_is_regretted_to_the_end() -> None:
    web = Tiny({"a/": "a/1 a/2 a/good", "a/1": "", "a/2": "", "a/good": ""}, "a/good", "a/")
    told = explained(web, budget=3)
    assert [(one.fetched, one.wasted) for one in told.regrets] == [(None, 2)]
    assert [(row.host, row.wasted, row.left) for row in told.hosts] == [("a.example", 3, 1)]


def test_hubs_are_the_pages_that_led_there_first() -> None:
    web = Tiny(
        {"a/": "a/1 a/2", "a/1": "a/x a/y", "a/2": "a/x a/z", "a/x": "", "a/y": "", "a/z": ""}, "a/x a/y a/z", "a/"
    )
    assert [(one.url, one.opened) for one in explained(web).hubs] == [(_url("a/1"), 2), (_url("a/2"), 1)]


def test_hosts_add_up(sample: ErrorBudget) -> None:
    for row in sample.hosts:
        mine = [one.cause for one in sample.requests if queue(one.url) == row.host]
        assert (row.requests, row.hits) == (len(mine), mine.count("hit"))
        assert row.requests == row.hits + row.wasted


@pytest.mark.parametrize("policy", ["keyword", "oracle-one-hop", "random", "layered[without=draws]"])
def test_any_policy_can_be_explained(policy: str) -> None:
    assert len(explained(synthetic.parsed(WEB), policy, budget=30, batch=10).requests) == 30


def test_the_document_can_be_read_again(sample: ErrorBudget, tmp_path: Path) -> None:
    error_budget.write_json(sample, tmp_path / "errors.json")
    assert msgspec.json.decode((tmp_path / "errors.json").read_bytes(), type=ErrorBudget) == sample


def test_the_terminal_says_what_was_counted(sample: ErrorBudget) -> None:
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(report.budget_tables(sample))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert f"{sample.hits} found a relevant page" in " ".join(out.getvalue().split())
    for cause in CAUSES:
        assert cause.name in out.getvalue()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "ceiling"], "--policy: expected one policy"),
        (["--policy", "layerd"], "did you mean 'layered'?"),
        (["--task", "nothing"], "got 'nothing'"),
        (["--html", "/nowhere/errors.html"], "--html: expected a file"),
    ],
)
def test_what_cannot_be_explained_is_said(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["lab", "explain-run", "--web", WEB, "--budget", "5", *words])
    assert done.exit_code
    assert said in f"{done.output} {done.exception}"


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_things_are_called_stays_text(sample: ErrorBudget, name: str) -> None:
    page = budget_html(msgspec.structs.replace(sample, web=name, task=name, policy=name, command=[name]))
    assert "<script" not in page
    assert "<img" not in page


def test_a_crawl_of_ones_own_can_be_explained(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"crawl": "cats", "definition": {"goal": {"topic": "cats"}}},
        {"url": "http://a.example/", "state": "done", "status": 200, "relevance": 0.1},
        {"url": "http://a.example/cats", "state": "done", "status": 200, "relevance": 0.9, "depth": 1},
        {"page": "http://a.example/", "links": [{"url": "http://a.example/cats", "anchor": "cats"}]},
    ]
    (tmp_path / "cats.ndjson").write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    words = ["lab", "explain-run", "--web", str(tmp_path / "cats.ndjson"), "--json", str(tmp_path / "errors.json")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    told = msgspec.json.decode((tmp_path / "errors.json").read_bytes(), type=ErrorBudget)
    assert (told.task, [one.cause for one in told.requests]) == ("cats", ["seed", "hit"])
