"""A data folder that version 0.1.0 wrote, with a crawl of every strategy: it opens, and its crawls go on."""

from __future__ import annotations

import json
import tarfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent / "folder_of_before"
FACTS = json.loads((HERE / "facts.json").read_text())
CRAWLS: dict[str, dict[str, Any]] = FACTS["crawls"]


@contextmanager
def opened(folder: Path) -> Iterator[Guide]:
    with tarfile.open(HERE / "folder.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    with Guide.open(str(folder / "data"), clock=ManualClock(FACTS["at"] + 10), seed=3) as guide:
        yield guide


def asked(guide: Guide, crawl: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = guide.ask({"mcp_version": "2025-11", "crawl_id": crawl, **more})
    return found


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guide]:
    with opened(tmp_path_factory.mktemp("before")) as guide:
        yield guide


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Of every crawl the next answer. They share the politeness of their hosts, so the order counts."""
    with opened(tmp_path_factory.mktemp("before")) as guide:
        return {crawl: asked(guide, crawl, crawler_id="d", budget={"max_urls": 5}) for crawl in CRAWLS}


@pytest.mark.parametrize("crawl", CRAWLS)
def test_its_numbers_are_the_same(guide: Guide, crawl: str) -> None:
    now = guide.stats(crawl)["crawls"][crawl]
    assert {name: now.get(name) for name in CRAWLS[crawl]["stats"]} == CRAWLS[crawl]["stats"]


@pytest.mark.parametrize("crawl", CRAWLS)
def test_its_leases_hold(guide: Guide, crawl: str) -> None:
    request = {"crawler_id": "holder", "request_id": "kept", "budget": {"max_urls": 3, "timeout_ms": 3_600_000}}
    answer = asked(guide, crawl, **request)
    assert [one["url"] for one in answer["assigned_urls"]] == CRAWLS[crawl]["held"]


@pytest.mark.parametrize("crawl", CRAWLS)
def test_it_goes_on_with_what_it_has_learned(answers: dict[str, dict[str, Any]], crawl: str) -> None:
    assert answers[crawl]["metadata"]["degraded"] is None
    assert [one["url"] for one in answers[crawl]["assigned_urls"]] == CRAWLS[crawl]["next"]
