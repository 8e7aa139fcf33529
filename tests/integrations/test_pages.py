"""The programs of the pages "guide my crawler" run as they stand, over a web on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from bench.peers import environments

from tests.docs.blocks import Block, of_page
from tests.integrations.web import GARDEN, ROSES, requested

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.lab.serving import Served

PAGES = ("docs/guided-scripts.md", "docs/crawlee.md", "docs/crawl4ai.md")
OTHERS = ("README.md", "docs/recipes.md")  # with programs of other kinds, too
BLOCKS = [block for page in PAGES + OTHERS for block in of_page(page, "python") if "import guided" in block.text]
BLOCKS += [block for page in PAGES for block in of_page(page, "python") if block not in BLOCKS]
FEW = 4


def runs_with(block: Block) -> str:
    own = block.page == "docs/crawl4ai.md"
    return str(environments.python("crawl4ai", beside_ours=True)) if own else sys.executable


def as_here(program: str, proxy: str) -> str:
    """The same program: fewer pages, of a web on this machine."""
    shorter = re.sub(r"(max_pages|max_requests_per_crawl)=\d+", rf"\1={FEW}", program)
    there = shorter.replace('"https://example.com/"', f'"{GARDEN}"')
    return there.replace("CrawlerRunConfig(", f'CrawlerRunConfig(proxy_config={{"server": "{proxy}"}}, ').replace(
        "ImpitHttpClient(", f'ImpitHttpClient(proxy="{proxy}", '
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{BLOCKS.index(block)}")
def test_a_program_of_a_page_runs(block: Block, web: Served, proxy: str, tmp_path: Path) -> None:
    own = {"http_proxy": proxy, "CRAWL4_AI_BASE_DIRECTORY": str(tmp_path), "CRAWL4AI_NO_CLOUD_NOTICE": "1"}
    command = [runs_with(block), "-c", as_here(block.text, proxy)]
    env = os.environ | own | {"CRAWLEE_STORAGE_DIR": str(tmp_path)}
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    assert GARDEN + "robots.txt" in requested(web, robots=True)
    assert GARDEN in requested(web)
    if "print" in block.text and "quality" not in block.text:
        assert GARDEN in ended.stdout
    if "add_requests([])" not in block.text and block.page in PAGES:
        assert set(requested(web)) & set(ROSES)


def test_the_pages_have_programs() -> None:
    assert {block.page for block in BLOCKS} == {*PAGES, *OTHERS}
