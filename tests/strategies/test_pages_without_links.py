"""Reports of pages that nobody knew and that link nowhere: whatever a strategy keeps of them has to have room."""

from __future__ import annotations

import subprocess
import sys

import pytest

TOLD = """
from crawlguide import Guide

me = {{"mcp_version": "2025-11", "crawler_id": "c"}}
with Guide.open(":memory:") as guide:
    guide.define("default", {{"strategy": {{"kind": "{kind}"}}, "policy": {{"robots": "ignore"}}}})
    for count in (1, 10, 100, 1_000, 3_000):
        pages = [{{"url": f"https://h.example/{{count}}/{{n}}", "status": 200, "relevance": 0.5}} for n in range(count)]
        guide.tell(me | {{"fetches": pages}})
"""


@pytest.mark.parametrize("kind", ["bandit", "groups", "tres", "relational", "layered"])
def test_pages_without_links_need_no_more_room_than_there_is(kind: str) -> None:
    """In a process of its own: kernels check no bounds, and what is written beyond them ends it."""
    ended = subprocess.run([sys.executable, "-c", TOLD.format(kind=kind)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
