"""What tests of several rooms have in common."""

from __future__ import annotations

import gc
import io
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from crawlguide import Guide
from crawlguide.cli import main
from crawlguide.testing import ManualClock
from tests.browsing import CHROMIUM

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from playwright.sync_api import Browser

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs behind a shell is deaf to Ctrl-C


def pytest_collection_finish() -> None:
    """What was loaded stays, as in a server: the collector, which every closing of a folder calls, passes it by."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged may hold what is no UTF-8, and goes as UTF-8 to the process that collects all reports."""
    report = yield
    report.sections = [(name, said.encode(errors="backslashreplace").decode()) for name, said in report.sections]
    return report


@pytest.fixture
def here(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command to its end, in this process: one of its own would only cost the time to load.

    `stdin` is what it reads.
    """

    def run(*words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr("sys.argv", ["crawlguide", *map(str, words)])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin.encode()))))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = int(ended.value.code or 0)
        return subprocess.CompletedProcess(list(map(str, words)), code, *capfd.readouterr())

    return run


@pytest.fixture
def clock() -> ManualClock:
    """One that we move."""
    return ManualClock()


@pytest.fixture
def guide(clock: ManualClock) -> Iterator[Guide]:
    with Guide.open(":memory:", clock=clock) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one file of tests: while it is open, no other event loop runs in this thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM)
        yield chromium
        chromium.close()
