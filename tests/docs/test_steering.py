"""The Python of docs/steering.md prints what it says it prints, and its bounds are those of the code."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from crawlguide.core import definition as definitions
from crawlguide.gateway.routes import ROUTES
from crawlguide.guide import local
from crawlguide.guide.ask import gathering, pipeline
from crawlguide.guide.crawl import crawls
from crawlguide.store import views

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "steering.md").read_text()


def test_the_python_of_the_page_prints_what_it_says() -> None:
    examples = "".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    expected = re.findall(r"^print\(.*\)  # (.*)$", examples, re.MULTILINE)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(examples, "steering.md", "exec"), {})
    assert len(expected) >= 6
    assert said.getvalue().splitlines() == expected


def test_the_page_names_requests_that_exist() -> None:
    named = re.findall(r"^\| `([A-Z]+) (/v1/[^`]*)` \|", PAGE, re.MULTILINE)
    assert len(named) == 4
    assert set(named) <= {(route.method, route.path) for route in ROUTES}


def test_the_bounds_of_the_page_are_those_of_the_code() -> None:
    assert crawls.RENEWED_AT_ONCE * crawls.PAGES_AT_ONCE == 10_000
    assert (local.RENEWED_BY_AN_ASK, max(pipeline.WIDER)) == (100, 16)
    assert (gathering.HOSTS_LOOKED_AT, gathering.HOSTS_TAKEN) == (1_000, 20)
    assert gathering.HOSTS_LOOKED_AT // gathering.PAGE * views.HOSTS_AT_ONCE == 40_000
    assert (definitions.MOST_URLS, definitions.MOST_PATTERNS) == (10_000, 1_000)
