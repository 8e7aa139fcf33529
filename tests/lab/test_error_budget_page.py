"""The page of `lab explain-run` in a real browser, in a file of its own: while that is open, no lab can run here."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.browsing import in_browser
from tests.lab.test_report import look

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

WEB = "synthetic:seed=4,pages=300,hosts=6,topics=4"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "errors.html"
    command = ["lab", "explain-run", "--web", WEB, "--budget", "60", "--html", str(made)]
    subprocess.run([sys.executable, "-m", "crawlguide", *command], check=True, capture_output=True)
    return made


@in_browser
@pytest.mark.parametrize("width", [1100, 400])
def test_the_page_needs_no_network_no_scripts_and_no_wide_screen(browser: Browser, page: Path, width: int) -> None:
    seen = look(browser, page, viewport={"width": width, "height": 800})
    assert (seen["scripts"], seen["foreign"], seen["handlers"], seen["outside"]) == (0, 0, 0, [])
    assert seen["wide"] == width
    assert "Where did the requests go?" in seen["text"]
