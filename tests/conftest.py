"""What tests of several rooms have in common."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.browsing import CHROMIUM

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from playwright.sync_api import Browser

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs behind a shell is deaf to Ctrl-C


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged may hold what is no UTF-8, and goes as UTF-8 to the process that collects all reports."""
    report = yield
    report.sections = [(name, said.encode(errors="backslashreplace").decode()) for name, said in report.sections]
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one file of tests: while it is open, no other event loop runs in this thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM)
        yield chromium
        chromium.close()
