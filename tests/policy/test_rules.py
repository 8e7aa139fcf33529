"""Rules of the operator in Rego: what they deny, what they see, and what becomes of those that do not work."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, GuideOptions
from crawlguide.core.definition import Definition
from crawlguide.core.errors import ConfigError
from crawlguide.policy import rules
from crawlguide.policy.rules import engine as source
from crawlguide.policy.rules.engine import KEPT, MISSING, Engine
from crawlguide.policy.rules.process import RulesFailed, Worker
from crawlguide.testing import ManualClock
from tests.support import ask, batch, question, state_of, tell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("regopy", reason="rules in Rego need the extra rego")

A = "https://a.org/"
HEAD = "package crawlguide\nimport rego.v1\n"
PRIVATE = HEAD + 'deny contains one.url if { some one in input.urls; startswith(one.path, "/private/") }\n'
REASONED = HEAD + 'deny[one.url] := "too deep" if { some one in input.urls; one.depth > 0; one.host == "a.org" }\n'
ENDLESS = HEAD + (
    "deny contains one.url if {\n  some one in input.urls\n  some a in numbers.range(1, 100000)\n"
    "  some b in numbers.range(1, 100000)\n  a * b == -1\n}\n"
)
BROKEN = HEAD + "deny contains one.url if { some one in "


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    file = tmp_path / "rules.rego"
    file.write_text(PRIVATE)
    return file


def written(file: Path, text: str) -> None:
    """Changed, also for a clock that did not move."""
    file.write_text(text)
    state = file.stat()
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 1_000_000))


def guide_with(file: Path, limit_ms: float = 2_000) -> Guide:
    config = Config(guide=GuideOptions(rules=str(file), rules_timeout_ms=limit_ms))
    guide = Guide.open(":memory:", config=config, clock=ManualClock())
    guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False}})
    return guide


def given(answer: dict[str, Any]) -> list[str]:
    return [one["url"] for one in answer["assigned_urls"]]


# in a guide


def test_what_the_rules_deny_is_dropped_and_explained(bundle: Path) -> None:
    with guide_with(bundle) as guide:
        guide.seed("default", [f"{A}private/1", f"{A}open"])
        answer = ask(guide)
        assert given(answer) == [f"{A}open"]
        assert answer["metadata"]["dropped"] == {"rules": 1}
        assert "rules_ok" in answer["metadata"]["filters_applied"]
        assert answer["metadata"]["degraded"] is None
        told = guide.explain("default", f"{A}private/1")
        assert (told["state"], told["reason"]) == ("dropped", "rules")
        assert "the operator's rules deny it" in str(told["filters"])


def test_rules_may_say_why(tmp_path: Path) -> None:
    (tmp_path / "rules.rego").write_text(REASONED)
    with guide_with(tmp_path / "rules.rego") as guide:
        guide.seed("default", [A])
        assert given(ask(guide)) == [A]
        tell(guide, {"url": A, "status": 200, "outlinks": [{"url": f"{A}deeper"}]})
        assert given(ask(guide)) == []
        assert "too deep" in str(guide.explain("default", f"{A}deeper")["filters"])


def test_without_rules_there_is_no_such_filter() -> None:
    with Guide.open(":memory:") as guide:
        guide.define("default", {"policy": {"robots": "ignore"}})
        guide.seed("default", [A])
        assert "rules_ok" not in ask(guide)["metadata"]["filters_applied"]


def test_rules_that_loop_for_ever_are_stopped_and_nothing_is_given_out(tmp_path: Path) -> None:
    (tmp_path / "rules.rego").write_text(ENDLESS)
    with guide_with(tmp_path / "rules.rego", limit_ms=100) as guide:
        guide.seed("default", [f"{A}1"])
        before = time.monotonic()
        answer = ask(guide)
        assert time.monotonic() - before < 8
        assert (given(answer), answer["metadata"]["degraded"]) == ([], MISSING)
        assert state_of(guide, f"{A}1") == "queued"


def test_rules_that_cannot_be_read_give_nothing_out_and_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "rules.rego").write_text(BROKEN)
    with caplog.at_level(logging.ERROR, "crawlguide"), guide_with(tmp_path / "rules.rego") as guide:
        guide.seed("default", [f"{A}1"])
        answer = ask(guide)
        assert (given(answer), answer["metadata"]["degraded"]) == ([], MISSING)
    failed = [record.getMessage() for record in caplog.records if record.__dict__.get("event") == "rules_failed"]
    assert "unclosed" in failed[0]


def test_rules_that_are_not_there_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is nothing at"):
        guide_with(tmp_path / "missing.rego")


# the engine


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def asked_about(*paths: str) -> bytes:
    urls = ",".join(f'{{"url":"{A}{path}","path":"/{path}","host":"a.org","depth":0}}' for path in paths)
    return f'{{"urls":[{urls}]}}'.encode()


def test_a_new_bundle_takes_over_when_it_works(bundle: Path, loop: asyncio.AbstractEventLoop) -> None:
    async def story() -> None:
        engine = Engine(bundle, 2.0)
        assert await engine.denied(asked_about("private/1", "x"), 1) == {f"{A}private/1": ""}
        written(bundle, PRIVATE.replace("private", "secret"))
        await engine.reload()
        assert await engine.denied(asked_about("private/1", "secret/1"), 1) == {f"{A}secret/1": ""}
        assert engine.trouble is None
        await engine.close()

    loop.run_until_complete(story())


@pytest.mark.parametrize("worse", [BROKEN, ENDLESS, "package other\nx := 1\n", HEAD + "deny := 7\n"])
def test_one_that_does_not_work_leaves_the_last_good_one_in_service(
    bundle: Path, loop: asyncio.AbstractEventLoop, worse: str
) -> None:
    async def story() -> None:
        engine = Engine(bundle, 0.5)
        assert await engine.denied(asked_about("private/1"), 1) == {f"{A}private/1": ""}
        written(bundle, worse)
        await engine.reload()
        assert engine.trouble == KEPT
        assert await engine.denied(asked_about("private/1"), 1) == {f"{A}private/1": ""}
        written(bundle, PRIVATE)
        await engine.reload()
        assert engine.trouble is None
        await engine.close()

    loop.run_until_complete(story())


def test_the_last_good_one_is_started_anew_while_a_bad_one_lies_on_disk(
    bundle: Path, loop: asyncio.AbstractEventLoop
) -> None:
    async def story() -> None:
        engine = Engine(bundle, 2.0)
        await engine.reload()
        written(bundle, BROKEN)
        await engine.reload()
        assert engine._worker is not None
        engine._worker._process.kill()
        assert await engine.denied(asked_about("private/1"), 1) is None
        assert engine.trouble == MISSING
        assert engine._background is not None
        await engine._background
        assert engine.trouble == KEPT
        assert await engine.denied(asked_about("private/1"), 1) == {f"{A}private/1": ""}
        await engine.close()

    loop.run_until_complete(story())


def test_rules_that_stop_answering_are_started_anew(bundle: Path, loop: asyncio.AbstractEventLoop) -> None:
    async def story() -> None:
        engine = Engine(bundle, 2.0)
        await engine.reload()
        assert engine._worker is not None
        engine._worker._process.kill()
        assert await engine.denied(asked_about("private/1"), 1) is None
        assert engine.trouble == MISSING
        assert engine._background is not None
        await engine._background
        assert await engine.denied(asked_about("private/1"), 1) == {f"{A}private/1": ""}
        assert engine.trouble is None
        await engine.close()

    loop.run_until_complete(story())


# the process


def worker_of(text: str, *data: str) -> Worker:
    return Worker(source.Bundle({"rules.rego": text}, list(data)))


def denied_by(text: str, *data: str) -> list[str]:
    worker = worker_of(text, *data)
    try:
        return sorted(worker.ask(asked_about("x"), 5.0))
    finally:
        worker.close()


def test_rules_see_no_environment() -> None:
    seen = denied_by(HEAD + "deny contains name if { some name, _ in opa.runtime().env }\n")
    assert "HOME" not in seen
    assert "PATH" not in seen


def test_rules_reach_no_network() -> None:
    call = 'http.send({"method": "get", "url": "http://127.0.0.1:9/", "raise_error": false})'
    assert denied_by(HEAD + f"deny contains answer.status if {{ answer := {call} }}\n") == []


def test_rules_may_read_the_data_of_their_folder() -> None:
    text = HEAD + "deny contains one.url if { some one in input.urls; one.host in data.bad }\n"
    assert denied_by(text, '{"bad": ["a.org"]}') == [f"{A}x"]


def test_an_endless_question_ends_in_time() -> None:
    worker = worker_of(ENDLESS)
    before = time.monotonic()
    with pytest.raises(RulesFailed, match="no answer within 200 ms"):
        worker.ask(asked_about("x"), 0.2)
    assert time.monotonic() - before < 4
    assert worker._process.poll() is not None


def test_a_process_that_waits_uses_none_of_its_time() -> None:
    worker = worker_of(PRIVATE)
    os.kill(worker._process.pid, signal.SIGSTOP)
    before = time.monotonic()
    with pytest.raises(RulesFailed):
        worker.ask(asked_about("x"), 0.1)
    assert 0.9 <= time.monotonic() - before < 5


def test_many_urls_fit_into_one_question() -> None:
    worker = worker_of(PRIVATE)
    paths = [f"private/{number}-{'x' * 500}" for number in range(500)]
    assert len(worker.ask(asked_about(*paths), 10.0)) == 500
    worker.close()


# what rules see


def test_the_rules_of_the_page_deny_what_they_say() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
    worker = worker_of(page.partition("```rego\n")[2].partition("```")[0])
    deep = '{"url":"https://a.org/deep","path":"/deep","depth":6}'
    asked = f'{{"crawler_id":"c-902","urls":[{deep},{{"url":"{A}private/1","path":"/private/1","depth":0}}]}}'
    assert worker.ask(asked.encode(), 5.0) == {
        "https://a.org/deep": "too deep for this crawler", f"{A}private/1": "private pages",
    }  # fmt: skip
    worker.close()


def test_the_input_is_what_the_page_about_rules_says() -> None:
    candidates = batch([f"{A}private/1?q=2"], depth=[3.0], score=[0.5], value=[0.25], pages=[7.0], failures=[1.0])
    assert rules.question(candidates, candidates.url.tolist(), question(at=12.0)) == {
        "at": 12.0,
        "crawl": "default",
        "crawler_id": "c-1",
        "urls": [
            {
                "url": f"{A}private/1?q=2", "host": "a.org", "domain": "a.org", "path": "/private/1", "query": "q=2",
                "depth": 3, "score": 0.5, "value": 0.25, "parents": 1, "host_pages": 7, "host_failures": 1,
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    "rule",
    [
        "deny contains one.url if { some one in input.urls; one.depth == 3 }",
        "deny contains input.urls[i].url if { input.urls[i].depth == 3 }",
        'deny contains one.url if { some one in input.urls; one["depth"] == 3 }',
        'deny contains one.url if { some one in input.urls; field := concat("", ["de", "pth"]); one[field] == 3 }',
        "deny contains one.url if { some one in input.urls; some key, value in one; value == 3 }",
        'deny contains one.url if { some one in input.urls; object.get(one, concat("", ["de", "pth"]), 0) == 3 }',
        'deny contains one.url if { some one in input.urls; contains(sprintf("%v", [one]), "3") }',
        "deny contains one.url if { some one in input.urls; some name in data.fields; one[name] == 3 }",
    ],
)
def test_rules_see_every_field_however_they_name_it(tmp_path: Path, rule: str) -> None:
    (tmp_path / "a.rego").write_text(HEAD + rule)
    (tmp_path / "b.json").write_text('{"fields": ["depth"]}')
    worker = Worker(source.read_bundle(tmp_path))
    rows = [{"url": f"{A}{depth}", "depth": 3 if depth else 0, "path": "/"} for depth in (0, 1)]
    assert list(worker.ask(json.dumps({"urls": rows}).encode(), 2.0)) == [f"{A}1"]
    worker.close()


def test_without_an_engine_everything_stays() -> None:
    rule = rules.build(Definition())
    assert rule.keep(batch([A]), question()).tolist() == [True]
    assert rule.why(batch([A]), question()) == "the operator has no rules"


def test_a_folder_is_read_with_its_data(tmp_path: Path) -> None:
    (tmp_path / "a.rego").write_text(PRIVATE)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "list.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("not read")
    found = source.read_bundle(tmp_path)
    assert (list(found.modules), found.data) == ([str(tmp_path / "a.rego")], ["{}"])


def test_a_folder_without_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a \.rego file or a folder with one"):
        source.read_bundle(tmp_path)
