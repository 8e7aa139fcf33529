"""What the operator's rules in Rego cost: a question about 100 URLs, and an ask whose rules never end.

    python bench/rules.py [--tries 300]

A question is asked of the process in which rules are evaluated, as a guide asks it; `cpu` is what that process spends.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.config import Config, GuideOptions
from crawlguide.core.types import Ask, Batch, Budget, Crawl, Seed
from crawlguide.guide.tell.intake import IntakeRules, seeded
from crawlguide.policy.rules import Rules
from crawlguide.policy.rules.engine import Engine
from crawlguide.policy.rules.process import used_s
from crawlguide.store import memory

CRAWL, NOW = Crawl("bench", "bench"), 1_794_000_000.0
HEAD = "package crawlguide\nimport rego.v1\n"
KINDS = {
    "one rule": 'deny contains one.url if { some one in input.urls; startswith(one.path, "/private/") }\n',
    "three rules": 'deny[one.url] := "private" if { some one in input.urls; startswith(one.path, "/private/") }\n'
    'deny[one.url] := "deep" if { some one in input.urls; one.depth > 5; one.host_pages < 10 }\n'
    'deny[one.url] := "session" if { some one in input.urls; contains(one.query, "sid=") }\n',
}
ENDLESS = (
    "deny contains one.url if {\n  some one in input.urls\n  some a in numbers.range(1, 100000)\n"
    "  some b in numbers.range(1, 100000)\n  a * b == -1\n}\n"
)
RULES = IntakeRules(judge=lambda _: float("nan"), verdict=lambda _: None)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tries", type=int, default=300, help="questions of each kind; the median counts")
    tries = arguments.parse_args().tries
    with tempfile.TemporaryDirectory() as folder:
        for name, text in KINDS.items():
            file = Path(folder) / "rules.rego"
            file.write_text(HEAD + text)
            for count in (100, 200):
                wall, cpu = asyncio.run(asked(file, count, tries))
                print(f"{name}, {count} URLs: {wall:.2f} ms, cpu {cpu:.2f} ms ({100 * cpu / count:.2f} ms per 100)")
        file.write_text(HEAD + KINDS["one rule"])
        endless(file)


async def asked(file: Path, count: int, tries: int) -> tuple[float, float]:
    """The usual time of a question, and what it takes of a processor, in milliseconds."""
    engine, batch = Engine(file, 10.0), await candidates(count)
    rule, ask, spent = Rules(engine), Ask(CRAWL, "bench", NOW, Budget(30)), []
    rule = await rule.prepared(batch, ask)
    worker = engine._worker
    assert worker is not None
    before = used_s(worker._process.pid)
    for _ in range(tries):
        began = time.perf_counter()
        rule = await rule.prepared(batch, ask)
        spent.append(time.perf_counter() - began)
    cpu = (used_s(worker._process.pid) - before) / tries
    await engine.close()
    return 1e3 * median(spent), 1e3 * cpu


async def candidates(count: int) -> Batch:
    store = memory.build(Config().store)
    await store.crawl_put(CRAWL, b"", NOW)
    found = [
        f"https://host{n % 40}.example/{'private' if n % 10 == 0 else 'part'}/story-{n}?a={n}" for n in range(count)
    ]
    await store.discover(CRAWL, seeded([Seed(url) for url in found], RULES), None, NOW)
    return await store.look(CRAWL, np.array([urls.identity(url) for url in found], np.uint64))


def endless(file: Path) -> None:
    """Rules that answered at first and then never end."""
    with Guide.open(":memory:", config=Config(guide=GuideOptions(rules=str(file)))) as guide:
        guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}})
        guide.seed("default", [f"https://a{n}.org/" for n in range(100)])
        for text in ("good", "endless"):
            if text == "endless":
                file.write_text(HEAD + ENDLESS)
                time.sleep(1.1)
            began = time.perf_counter()
            answer = guide.ask({"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 10}})
            took, degraded = time.perf_counter() - began, answer["metadata"]["degraded"]
            print(
                f"an ask, {text} rules: {1e3 * took:.0f} ms, {len(answer['assigned_urls'])} URLs, degraded {degraded}"
            )


if __name__ == "__main__":
    main()
