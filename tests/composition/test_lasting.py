"""What every stage has learned lasts: a guide that is closed or killed in mid-crawl goes on with the same choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from crawlguide import Guide
from crawlguide.core.clock import ManualClock
from crawlguide.core.types import Crawl
from crawlguide.store.embedded import EmbeddedStore
from crawlguide.store.memory import MemoryStore
from crawlguide.store.moves.rank import Quota
from tests import tally
from tests.composition.conftest import CONFIG, POLICY
from tests.store import files
from tests.store.crawling import DEFINITION, MAIN, Crawler
from tests.store.plain import learned
from tests.strategies.site import HOME, crawled, web

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.protocols import Store

QUOTA = Quota(urls=1_000, urls_per_host=1_000, links=1_000)
STRATEGIES: dict[str, dict[str, Any]] = {
    "cascade": {"kind": "cascade", "predict": [{"kind": "layered", "top": 30}, {"kind": "groups"}]},
    "blend": {"kind": "blend", "predict": [{"kind": "layered", "weight": 2}, {"kind": "bandit"}, {"kind": "ucb"}]},
    "fallback": {"kind": "fallback", "predict": [{"kind": "tres"}, {"kind": "layered"}]},
    "twins": {"kind": "cascade", "predict": [{"kind": tally.PLUG, "top": 20}, {"kind": tally.PLUG, "shy": True}]},
    "alike": {"kind": "blend", "predict": [{"kind": "groups"}, {"kind": "groups", "group_by": "host"}]},
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_urls_follow_with_a_restart_and_without(name: str, tmp_path: Path) -> None:
    def opened(folder: str) -> Guide:
        return Guide.open(tmp_path / folder, clock=ManualClock(), seed=1, config=CONFIG)

    definition = {"strategy": STRATEGIES[name], "policy": POLICY}
    with opened("a") as guide:
        guide.define("default", definition)
        guide.seed("default", [HOME])
        without = crawled(guide, web(), 120)
        told = guide.stats("default")["crawls"]["default"]["learner"]
    with opened("b") as guide:
        guide.define("default", definition)
        guide.seed("default", [HOME])
        before = crawled(guide, web(), 60)
    with opened("b") as guide:
        after = crawled(guide, web(), 120 - len(before))
        assert before + after == without
        assert guide.stats("default")["crawls"]["default"]["learner"] == pytest.approx(told)


@pytest.mark.parametrize("name", STRATEGIES)
async def test_a_crash_loses_nothing_of_what_any_stage_has_learned(name: str, tmp_path: Path) -> None:
    def crawling(store: Store) -> Crawler:
        definition = msgspec.structs.replace(DEFINITION, strategy=STRATEGIES[name])
        return Crawler(store, ManualClock(), definition=definition)

    twin, crawler = crawling(MemoryStore(QUOTA)), crawling(EmbeddedStore(tmp_path / "data", QUOTA))
    await twin.begin()
    await crawler.begin()
    for _ in range(12):
        await twin.step()
    for _ in range(5):
        await crawler.step()
    before = crawler.store
    assert isinstance(before, EmbeddedStore)
    after = EmbeddedStore(files.copy(before.folder, tmp_path / "copy", before), QUOTA)
    assert learned(await after.notebook(MAIN)) == learned(await before.notebook(MAIN))
    crawler.go_on_with(after)
    for _ in range(7):
        await crawler.step()
    assert crawler.given == twin.given
    for store in (before, after):
        await store.close()


def test_stages_of_one_kind_have_sheets_of_their_own() -> None:
    with Guide.open(":memory:", clock=ManualClock(), seed=1, config=CONFIG) as guide:
        guide.define("default", {"strategy": STRATEGIES["twins"], "policy": POLICY})
        notebook = guide._run(guide._guide._guide.store.notebook(Crawl("default", "default")))
        guide.seed("default", [HOME])
        crawled(guide, web(), 10)
        names = [name for name in notebook.in_use() if name.endswith(("hosts", "draws"))]
        assert names == [f"{tally.PLUG}#2/draws", f"{tally.PLUG}#2/hosts", f"{tally.PLUG}/draws", f"{tally.PLUG}/hosts"]
