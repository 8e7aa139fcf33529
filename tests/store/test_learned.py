"""Killed and started again, a strategy goes on as if nothing had been: the same notebook, and the same choices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from crawlguide.core import faults
from crawlguide.core.clock import ManualClock
from crawlguide.core.notebook import Notebook
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.memory import MemoryStore

from .builders import ids
from .crawling import MAIN, WEB, Crawler
from .learning_child import LOG_AT_LEAST, QUOTA, STEPS
from .plain import known

if TYPE_CHECKING:
    from pathlib import Path

IDS = ids(*WEB)
COMMITS = ("before_write:5", "before_write:14", "after_write:8", "after_write:21", "after_sync:4", "after_sync:9")


async def twin() -> Crawler:
    """The same crawl without any interruption."""
    crawler = Crawler(MemoryStore(QUOTA), ManualClock())
    await crawler.begin()
    for _ in range(STEPS):
        await crawler.step()
    return crawler


async def gone_on(folder: Path, said: list[list[str]]) -> Crawler:
    """Begin where the killed one stopped: whatever had no answer is asked and told again, with the same ids."""
    done, clock = max(len(said) - 1, 0), ManualClock()
    clock.advance(float(done))
    crawler = Crawler(EmbeddedStore(folder, QUOTA), clock, given=said[1:], calls=done)
    if not said:
        await crawler.begin()
    while crawler.calls < STEPS:
        await crawler.step()
    return crawler


def killed(folder: Path, point: str, steps: int | None = None) -> list[list[str]]:
    """What a child said before it died at a point, or was killed after some steps."""
    command = [sys.executable, "-m", "tests.store.learning_child", str(folder)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, faults.VARIABLE: point})
    assert child.stdout is not None
    said = []
    for line in child.stdout:
        said.append(json.loads(line))
        if steps is not None and len(said) > steps:
            child.kill()
            break
    child.stdout.close()
    assert child.wait() == (faults.KILLED if steps is None else -9)
    return said


async def check(folder: Path, said: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", LOG_AT_LEAST)
    expected, crawler = await twin(), await gone_on(folder, said)
    assert crawler.given == expected.given
    assert await known(crawler.store, MAIN, IDS) == await known(expected.store, MAIN, IDS)
    await crawler.store.close()


async def test_without_its_notebook_the_choices_are_others() -> None:
    """Else the rest would say little."""
    store = MemoryStore(QUOTA)
    crawler = Crawler(store, ManualClock())
    await crawler.begin()
    for step in range(STEPS):
        if step == STEPS // 2:
            store.data(MAIN).notebook = Notebook()
            crawler.go_on_with(store)
        await crawler.step()
    assert crawler.given != (await twin()).given


@pytest.mark.parametrize("steps", [0, 7])
async def test_killed_between_two_steps(tmp_path: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    await check(tmp_path, killed(tmp_path, "", steps), monkeypatch)


@pytest.mark.parametrize("point", COMMITS)
async def test_killed_in_the_midst_of_a_commit(tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await check(tmp_path, killed(tmp_path, point), monkeypatch)


@pytest.mark.parametrize("point", faults.POINTS[3:])
async def test_killed_in_the_midst_of_a_snapshot(tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await check(tmp_path, killed(tmp_path, point), monkeypatch)
