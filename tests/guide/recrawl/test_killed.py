"""A process that is killed loses no schedule: what it was told and what it took goes on as if nothing had been."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.guide.recrawl.killed_child import URLS
from tests.guide.recrawl.web import DAY_S, ChangingWeb, crawl, known

if TYPE_CHECKING:
    from pathlib import Path


def killed(folder: Path, start: float, days: float) -> dict[str, Any]:
    """What a process knew that was killed after so many days."""
    command = [sys.executable, "-m", "tests.guide.recrawl.killed_child", str(folder), str(start), str(days)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        said: dict[str, Any] = json.loads(child.stdout.readline())
        child.kill()
    return said


def test_what_was_told_is_known_after_a_kill(tmp_path: Path) -> None:
    before = killed(tmp_path, 1e9, 12)
    with Guide.open(tmp_path, clock=ManualClock(before["at"])) as guide:
        assert known(guide, URLS) == before["known"]


def test_every_page_is_fetched_again_however_often_it_was_killed(tmp_path: Path) -> None:
    """Each ask takes what is due out of the schedule; whatever of that is on the disk, no page is lost."""
    at = 1e9
    for _ in range(3):
        at = killed(tmp_path, at, 2)["at"]
    clock = ManualClock(at)
    web = ChangingWeb(URLS, np.full(len(URLS), 1.0), clock)
    with Guide.open(tmp_path, clock=clock) as guide:
        crawl(guide, web, 40, 40, DAY_S / 4)
    assert all(web.fetched[url] for url in URLS)
