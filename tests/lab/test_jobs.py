"""Runs of the lab: deterministic, resumable, the same in process and over the wire; and the command that makes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

import crawlguide
from crawlguide import Client
from crawlguide.core.errors import ConfigError
from crawlguide.core.messages import Fetch, Outlink
from crawlguide.gateway.client import patience
from crawlguide.lab import jobs, policy_names, synthetic
from crawlguide.lab import run as running
from crawlguide.lab.pages import Link, Page
from crawlguide.lab.results import encode, read_json
from crawlguide.lab.run import Settings, run
from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from crawlguide.lab.pages import Web

WHERE = "synthetic:seed=3,pages=300,hosts=6,topics=4"
WEB: Web = synthetic.parsed(WHERE)
TASK = WEB.tasks()[0]
SHORT = Settings(budget=100)
LAB = ["lab", "run", "--web", WHERE, "--budget", "60", "--quick"]
Lab = Callable[..., str]


@pytest.fixture
def lab(here: Callable[..., subprocess.CompletedProcess[str]]) -> Lab:
    """What the command prints."""

    def run(*words: str, ends: int = 0) -> str:
        done = here(*LAB, *words)
        assert done.returncode == ends, done.stderr
        return done.stdout + done.stderr

    return run


def test_a_run_leaves_one_place_for_every_fetch() -> None:
    done = run(WEB, TASK, "relational", 0, SHORT)
    assert len(done.relevant) == len(done.outcome) == len(done.host) == len(done.p) == 100
    assert 0 < sum(done.relevant) <= done.reachable <= done.targets
    assert done.host[0] == 0
    assert done.cpu_us_per_fetch > 0


@pytest.mark.parametrize("policy", ["random", "keyword", "tres-reconstruction", "layered"])
def test_two_runs_with_one_seed_are_the_same_but_for_their_times(policy: str) -> None:
    one, two = (msgspec.structs.replace(run(WEB, TASK, policy, 1, SHORT), seconds=0, cpu_us_per_fetch=0) for _ in "ab")
    assert one == two


def test_another_repeat_is_another_history() -> None:
    assert run(WEB, TASK, "random", 0, SHORT).host != run(WEB, TASK, "random", 1, SHORT).host


def test_several_crawlers_share_one_budget() -> None:
    done = run(WEB, TASK, "relational", 0, Settings(budget=95, batch=4, crawlers=3))
    assert len(done.relevant) == 95


def test_a_policy_that_picks_goes_on_while_others_hold_what_it_gave() -> None:
    done = run(WEB, TASK, "arms", 0, Settings(budget=95, batch=4, crawlers=3))
    assert len(done.relevant) == 95


def test_a_run_ends_when_nothing_is_left() -> None:
    done = run(synthetic.make(1, pages=40, hosts=2, topics=2, traps=0.0), TASK_OF_TINY, "breadth-first", 0, SHORT)
    assert 0 < len(done.relevant) < 100


TASK_OF_TINY = synthetic.make(1, pages=40, hosts=2, topics=2, traps=0.0).tasks()[0]


def test_the_ceiling_is_all_that_can_be_found() -> None:
    done = run(WEB, TASK, "ceiling", 0, SHORT)
    assert sum(done.relevant) == min(done.reachable, 100)
    assert done.reference


def test_a_cap_bounds_the_pages_of_a_site() -> None:
    done = run(WEB, TASK, "breadth-first", 0, Settings(budget=60, batch=1, cap_per_host=5))
    good = [host for host, outcome in zip(done.host, done.outcome, strict=True) if outcome in "pu"]
    assert max(good.count(host) for host in set(good)) <= 5


def test_feedback_by_text_lets_the_guide_judge() -> None:
    labelled = run(WEB, TASK, "relational", 0, SHORT)
    judged = run(WEB, TASK, "relational", 0, Settings(budget=100, feedback="text"))
    assert judged.feedback == "text"
    assert judged.host != labelled.host


def test_with_a_sample_of_labels_the_chance_is_not_that_of_a_judgement() -> None:
    judged, sampled = (run(WEB, TASK, "layered", 0, Settings(budget=300, feedback=one)) for one in ("text", "sample"))
    off = [
        abs(np.mean([one for one in done.p if one is not None]) - np.mean(done.relevant)) for done in (judged, sampled)
    ]
    assert off[1] < off[0]


def test_a_start_that_the_web_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--seeds-from: .* expected one of portal, near, far; got 'elsewhere'"):
        run(WEB, TASK, "random", 0, Settings(seeds_from="elsewhere"))


def test_a_redirect_is_a_page_with_one_link() -> None:
    page = Page("https://a.example/", 301, redirected_to="https://a.example/b")
    assert running.outlinks(page) == [Outlink("https://a.example/b")]


def test_at_most_two_thousand_links_of_a_page_are_told() -> None:
    page = Page("https://a.example/", 200, links=tuple(Link(f"/{n}", "", n) for n in range(2_500)))
    assert [link.position for link in running.outlinks(page)] == list(range(2_000))


def test_what_is_too_much_for_one_message_goes_into_several() -> None:
    heavy = Fetch("https://a.example/", 200, outlinks=[Outlink("x" * 940)] * 2_000)
    assert [len(part) for part in running.parts([heavy, heavy, heavy])] == [1, 1, 1]
    light = Fetch("https://a.example/", 200)
    assert [len(part) for part in running.parts([light] * 50)] == [50]


@pytest.mark.parametrize("policy", ["keyword", "relational"])
def test_a_served_guide_finds_what_one_in_this_process_finds(policy: str, tmp_path: Path) -> None:
    (tmp_path / "crawlguide.toml").write_text(f"[crawls]\nplugins = {list(policy_names.plugins())}\n")
    web = synthetic.make(4, pages=200, hosts=4, topics=3, failing=0.0)
    task = web.tasks()[0]
    here = run(web, task, policy, 0, SHORT)
    with serving(tmp_path) as server:
        elsewhere = msgspec.structs.replace(SHORT, via=server.url)
        there = run(web, task, policy, 0, elsewhere)
        again = run(web, task, policy, 0, elsewhere)
        with Client(server.url) as client:
            assert client.stats()["crawls"] == {}  # nothing is left there
    assert (here.relevant, here.host) == (there.relevant, there.host) == (again.relevant, again.host)


def test_finished_runs_are_not_made_again(tmp_path: Path) -> None:
    todo = jobs.jobs(WHERE, [TASK.name], ["random", "breadth-first"], 1, SHORT)
    first = list(jobs.completed(todo[:1], tmp_path, workers=1))
    again = list(jobs.completed(todo, tmp_path, workers=1))
    assert again[0] == first[0]  # its times too
    assert [one.policy for one in again] == ["random", "breadth-first"]


def test_a_run_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    (job,) = jobs.jobs(WHERE, [TASK.name], ["random"], 1, SHORT)
    (tmp_path / job.file_name).write_bytes(b'{"web"')
    (done,) = jobs.completed([job], tmp_path, workers=1)
    assert len(done.relevant) == 100


def test_other_settings_are_another_run() -> None:
    one, other = (jobs.jobs(WHERE, ["a"], ["random"], 1, Settings(budget=budget))[0] for budget in (1, 2))
    assert one.file_name != other.file_name


def test_runs_of_other_code_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the package stands for the one that is installed; one source changes."""
    (copy := tmp_path / "crawlguide").mkdir()
    (copy / "__init__.py").write_text("")
    (copy / "scoring.py").write_text("WEIGHT = 1\n")
    monkeypatch.setattr(crawlguide, "__file__", str(copy / "__init__.py"))
    (job,) = jobs.jobs(WHERE, [TASK.name], ["random"], 1, SHORT)
    before = list(jobs.completed([job], tmp_path / "kept", workers=1))
    assert jobs.count_kept([job], tmp_path / "kept") == 1
    (copy / "scoring.py").write_text("WEIGHT = 2\n")
    jobs.code_hash.cache_clear()  # as a new process does
    assert jobs.count_kept([job], tmp_path / "kept") == 0
    after = list(jobs.completed([job], tmp_path / "kept", workers=1))
    assert [one.relevant for one in after] == [one.relevant for one in before]
    jobs.code_hash.cache_clear()


@pytest.mark.parametrize("changed", ["policy.py", "helper.py"])
def test_runs_of_a_policy_whose_package_has_changed_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "policy.py").touch()
    names = []
    for text in ("# one", "# two"):
        (tmp_path / "mine" / changed).write_text(text)
        names.append(jobs.jobs(WHERE, [TASK.name], ["mine.policy"], 1, SHORT)[0].file_name)
        jobs.code_hash.cache_clear()  # as a new process does
    assert names[0] != names[1]


def test_processes_side_by_side_make_the_same_runs(tmp_path: Path) -> None:
    todo = jobs.jobs(WHERE, [TASK.name], ["random", "keyword"], 1, SHORT)
    spread = sorted(jobs.completed(todo, None, workers=2), key=lambda one: one.policy)
    here = sorted(jobs.completed(todo, None, workers=1), key=lambda one: one.policy)
    assert [one.relevant for one in spread] == [one.relevant for one in here]


def test_tasks_that_the_web_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError, match="--tasks: expected all or some of"):
        jobs.tasks_named(WEB, ["nothing"])
    with pytest.raises(ConfigError, match="--task: expected one of"):
        jobs.task_named(WEB, "all")


def test_the_command_prints_a_table_and_writes_what_it_found(lab: Lab, tmp_path: Path) -> None:
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    printed = lab("--policies", "random,relational,oracle", "--json", str(out), "--html", str(page))
    assert "relational" in printed
    found = read_json(out)
    assert len(found.runs) == 4 * 5  # quick: four tasks, once
    assert {one.policy for one in found.runs if one.reference} == {"oracle-one-hop", "oracle-full", "ceiling"}
    assert found.command[:3] == ["crawlguide", "lab", "run"]
    assert "<html" in page.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "out.json"]  # nothing else is left


def test_the_command_gives_the_same_document_twice_but_for_times(lab: Lab, tmp_path: Path) -> None:
    documents = []
    for name in ("one.json", "two.json"):  # wherever they are written
        lab("--policies", "random,keyword", "--json", str(tmp_path / name), f"--html={tmp_path / name}.html")
        documents.append(encode(read_json(tmp_path / name), times=False))
    assert documents[0] == documents[1]


@pytest.mark.parametrize(
    "words",
    [
        ["--json", "nowhere/out.json"],
        ["--html", "."],
        ["--resume", "file"],
        ["--json", "file/out.json"],
        ["--via", "nonsense"],
        ["--web", "nowhere"],
    ],
)
def test_what_cannot_work_is_said_before_anything_runs(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("something")
    said = lab("--policies", "random", *words, ends=2)
    assert "expected" in said
    assert "Harvest" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_guide_that_does_not_answer_is_named(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST_WAIT_S", 0.01)
    said = lab("--policies", "random", "--tasks", TASK.name, "--via", "http://127.0.0.1:9", ends=1)
    assert "http://127.0.0.1:9 cannot be reached" in said
    assert "Traceback" not in said


def test_runs_on_another_web_of_the_same_name_are_other_runs(tmp_path: Path) -> None:
    names = []
    for age in (1, 2):
        file = tmp_path / "books.ndjson"
        file.touch()
        os.utime(file, (age, age))
        names.append(jobs.jobs(str(file), ["a"], ["random"], 1, SHORT)[0].file_name)
    assert names[0] != names[1]


@pytest.mark.parametrize("words", [["--policies", "nobody"], ["--tasks", "nothing"], ["--seeds-from", "far,near"]])
def test_wrong_words_are_wrong_usage(lab: Lab, words: list[str]) -> None:
    said = lab(*words, ends=2)
    assert "expected" in said or "Invalid value" in said


def test_an_interrupted_command_goes_on_where_it_was(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    command = [
        sys.executable,
        "-m",
        "crawlguide",
        *LAB[:-3],
        "--budget",
        "200",
        "--policies",
        "random,tres-reconstruction,ache",
        "--resume",
        str(kept),
    ]
    started = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    until = time.monotonic() + 60
    while not list(kept.glob("*.json")) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)  # as Ctrl-C does
    _, said = started.communicate(timeout=30)
    assert started.returncode == 130
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert list(kept.glob("*.json"))
