"""Crawl4AI has an environment of its own: it brings 900 MB that nothing else here needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.peers import environments

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 400


@pytest.mark.timeout(LIMIT_S + 100)
def test_a_real_crawl4ai_is_guided(tmp_path: Path) -> None:
    python = environments.python("crawl4ai", beside_ours=True)
    own = {"CRAWL4_AI_BASE_DIRECTORY": str(tmp_path), "CRAWL4AI_NO_CLOUD_NOTICE": "1"}
    command = [str(python), "-m", "pytest", "-W", "default", "tests/integrations/in_crawl4ai.py"]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert ended.returncode == 0, ended.stdout[-8_000:]


def test_a_missing_extra_is_named() -> None:
    program = "import crawlguide.integrations.crawl4ai"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install '.[crawl4ai]'" in ended.stderr.splitlines()[-1]
