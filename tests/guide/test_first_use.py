"""A strategy that no crawl has named yet is compiled by another process, and other crawls are served meanwhile."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio
import sys

import msgspec

from crawlguide.core import compiling, kernels
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition
from crawlguide.core.messages import DEFAULT_TENANT, AskMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import open_guide

NEW, OTHER = Crawl(DEFAULT_TENANT, "new"), Crawl(DEFAULT_TENANT, "other")
compiling.all_compiled = lambda modules: False  # though everything may have been compiled before
made, compiled = [], kernels._compiled
kernels._compiled = lambda *words: made.append(compiled(*words)) or made[-1]


def ask(crawl):
    return msgspec.convert(
        {"mcp_version": "2025-11", "crawler_id": "me", "crawl_id": crawl.name, "budget": {"max_urls": 1}}, AskMessage
    )


async def crawled():
    guide = open_guide(":memory:", Config())
    print("loaded" if "crawlguide.strategies.opic" in sys.modules else "not loaded")
    ignoring = msgspec.convert({"policy": {"robots": "ignore"}}, Definition)
    await guide.define(OTHER, ignoring)
    await guide.seed(OTHER, SeedsMessage([f"https://example.com/{number}" for number in range(9)]))
    begun = len(made)
    defining = asyncio.ensure_future(guide.define(NEW, msgspec.structs.replace(ignoring, strategy={"kind": "opic"})))
    await asyncio.sleep(0)
    print(len((await guide.ask(ask(OTHER))).assigned_urls), defining.done())
    await defining
    new = made[begun:]
    print(bool(new), all(one.stats.cache_hits for one in new))
    await guide.seed(NEW, SeedsMessage(["https://example.org/"]))
    print(len((await guide.ask(ask(NEW))).assigned_urls))
    await guide.define(Crawl(DEFAULT_TENANT, "next"), msgspec.structs.replace(ignoring, strategy={"kind": "opic"}))


asyncio.run(crawled())
"""


@pytest.mark.timeout(600)
def test_a_new_strategy_is_compiled_by_another_process_while_others_are_served() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["not loaded", "1 False", "True True", "1"]
