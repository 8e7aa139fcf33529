"""People look at a crawl without changing it, and asks that run at the same time do not mix."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from httpx import ASGITransport, AsyncClient

from crawlguide.core import urls
from crawlguide.core.config import Config, GuideOptions
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage, SeedsMessage
from crawlguide.core.patterns import Patterns
from crawlguide.core.types import Ask, Budget
from crawlguide.gateway.dashboard import views
from crawlguide.gateway.http import Door
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service
from crawlguide.guide.explain import explain
from crawlguide.policy.traps import Traps
from crawlguide.testing import ManualClock
from tests.support import CRAWL, NOW, batch, question

if TYPE_CHECKING:
    from crawlguide.core.messages import Advice
    from crawlguide.guide.local import LocalGuide

FREE = {"robots": "ignore", "default_delay_s": 0.0, "max_per_host": 0}
A, B = "https://a.org/", "https://b.org/"
HEAD = "package crawlguide\nimport rego.v1\n"
PRIVATE = HEAD + 'deny contains one.url if { some one in input.urls; startswith(one.path, "/private/") }\n'
EACH_ITS_HOST = HEAD + (
    'deny contains one.url if { some one in input.urls; input.crawler_id == "c-a"; one.host != "a.org" }\n'
    'deny contains one.url if { some one in input.urls; input.crawler_id == "c-b"; one.host != "b.org" }\n'
)


async def ruled(folder: Path, rules: str) -> LocalGuide:
    """A guide with the operator's rules in Rego."""
    pytest.importorskip("regopy", reason="rules in Rego need the extra rego")
    (folder / "rules.rego").write_text(rules)
    options = GuideOptions(rules=str(folder / "rules.rego"), rules_timeout_ms=2_000)
    guide = open_guide(":memory:", Config(guide=options), ManualClock())
    await guide.define(CRAWL, Definition(policy=Policy(**FREE)))  # type: ignore[arg-type]
    return guide


async def ask(guide: LocalGuide, crawler_id: str = "c-1", max_urls: int = 10) -> Advice:
    return await guide.ask(AskMessage(VERSION, crawler_id, BudgetMessage(max_urls)))


# asks that run at the same time


async def test_the_operators_rules_answer_each_of_two_asks_for_itself(tmp_path: Path) -> None:
    guide = await ruled(tmp_path, EACH_ITS_HOST)
    await guide.seed(CRAWL, SeedsMessage([f"{host}{number}" for number in range(3) for host in (A, B)]))
    first, second = await asyncio.gather(ask(guide, "c-a"), ask(guide, "c-b"))
    assert {one.url for one in first.assigned_urls} == {f"{A}{number}" for number in range(3)}
    assert {one.url for one in second.assigned_urls} <= {f"{B}{number}" for number in range(3)}
    await guide.close()


# looks


async def test_the_status_page_shows_what_the_operators_rules_deny_and_nothing_else(tmp_path: Path) -> None:
    guide = await ruled(tmp_path, PRIVATE)
    await guide.seed(CRAWL, SeedsMessage([f"{A}private/1", f"{A}1", f"{B}1"]))
    shown = await views.upcoming(guide, CRAWL, guide.crawls.known[CRAWL])
    assert {choice.url: choice.refused for choice in shown} == {
        f"{A}1": "", f"{B}1": "", f"{A}private/1": "denied by the operator's rules",
    }  # fmt: skip
    await guide.close()


async def test_an_explanation_leases_no_sitemap_and_wants_no_robots_txt() -> None:
    guide = open_guide(":memory:", Config(), ManualClock())
    guide.robots.cache.fetched = True
    await guide.define(CRAWL, Definition(policy=Policy(sitemaps=True)))
    await guide.seed(CRAWL, SeedsMessage([f"{A}sitemap.xml"]))
    (waiting,) = [one for one in (await explain(guide, CRAWL, f"{A}sitemap.xml")).filters if one.name == "robots"]
    assert (waiting.verdict, guide.robots.idle) == ("defer", True)
    robots = Fetch(f"{A}robots.txt", 200, text="User-agent: *\nCrawl-delay: 9\nDisallow: /private\n")
    await guide.tell(ReportMessage(VERSION, "c-1", [robots]))
    told = await explain(guide, CRAWL, f"{A}sitemap.xml")
    assert (told.state, guide.robots.sitemaps.empty()) == ("queued", True)
    assert {one.verdict for one in told.filters if one.name == "robots"} == {"keep"}
    assert {one.verdict for one in (await explain(guide, CRAWL, f"{A}sitemap.xml")).filters} == {"keep"}


async def crawled(folder: Path, kind: str) -> LocalGuide:
    """A crawl in which something was learned, with pages, files and robots.txt among what waits."""
    guide = open_guide(folder, Config(), ManualClock(), seed=3)
    definition = Definition(strategy={"kind": kind}, policy=Policy(default_delay_s=0.0, max_per_host=3))
    await guide.define(CRAWL, definition)
    await guide.seed(CRAWL, SeedsMessage([A, B]))
    for number in range(6):
        hosts = (A, B, f"https://h{number}.net/")
        links = [Outlink(f"{host}{number}/{part}") for host in hosts for part in ("x", "y.pdf", "z?a=1")]
        page = Fetch(f"{A}{number}", 200, title=f"page {number}", relevance=number / 6, outlinks=links)
        robots = [Fetch(f"{host}robots.txt", 200, text="Disallow: /5") for host in (A, B)]
        await guide.tell(ReportMessage(VERSION, "c-1", [page, *robots]))
        await ask(guide, max_urls=2)
    return guide


@pytest.mark.parametrize("kind", ["layered", "bandit", "tres"])
async def test_a_thousand_looks_change_neither_numbers_nor_state_nor_the_next_answer(tmp_path: Path, kind: str) -> None:
    watched, alone = await crawled(tmp_path / "watched", kind), await crawled(tmp_path / "alone", kind)
    active, before = watched.crawls.known[CRAWL], watched.store.state_hash()  # type: ignore[attr-defined]
    numbers = await watched.store.stats(CRAWL)
    ids = np.array([urls.identity(f"{A}5/x")], np.uint64)
    for number in range(1_000):
        looker = Ask(CRAWL, "looker", watched.clock.now(), Budget(20))
        await watched.pipeline.look(active, looker, ids if number % 2 else None)
    await explain(watched, CRAWL, f"{A}5/x")
    await views.detail(watched, CRAWL)
    assert await watched.store.stats(CRAWL) == numbers
    assert watched.store.state_hash() == before  # type: ignore[attr-defined]
    first, second = await ask(watched), await ask(alone)
    assert [(one.url, one.score) for one in first.assigned_urls] == [
        (one.url, one.score) for one in second.assigned_urls
    ]
    assert first.metadata.dropped == second.metadata.dropped
    await watched.close()
    await alone.close()


async def test_a_look_ends_no_lease_and_leaves_nothing_to_write(tmp_path: Path) -> None:
    guide = await crawled(tmp_path / "data", "layered")
    given = await ask(guide, "c-2", 2)
    await guide.tell(ReportMessage(VERSION, "c-2", [Fetch(one.url, 200) for one in given.assigned_urls]))
    guide.clock.advance(86_400.0)  # type: ignore[attr-defined]
    before, written = await guide.store.stats(CRAWL), guide.store.state_hash()  # type: ignore[attr-defined]
    pages = ASGITransport(Door(Service(guide, Config())).app())
    async with AsyncClient(transport=pages, base_url="http://here") as person:
        assert [(await person.get(path)).status_code for path in ("/", f"/crawls/{CRAWL.name}")] == [200, 200]
    (shown,) = await views.overviews(guide, [CRAWL])
    await explain(guide, CRAWL, f"{A}5/x")
    assert shown.stats.leased == before["leased"] > 0
    assert (await guide.store.stats(CRAWL), guide.store.state_hash()) == (before, written)  # type: ignore[attr-defined]
    assert not guide.store._writer._is_ahead()  # type: ignore[attr-defined]
    await guide.close()


def test_a_look_at_templates_that_rest_counts_no_probe() -> None:
    rule, found = Traps(Patterns([], "policy.trap_patterns")), [f"{A}browse/{number}" for number in range(5)]
    number = int(rule.memory.accounts(rule.memory.scan(found[:1]))[0])
    rule.memory.novelty.record_page(number, 100.0, 0.0)
    looking = rule.keep(batch(found), question(NOW, looking=True))
    assert not rule.memory.probes
    assert rule.keep(batch(found), question(NOW)).tolist() == looking.tolist()
    assert len(rule.memory.probes) == np.count_nonzero(looking) > 0


def test_a_look_at_few_urls_copies_few_accounts_and_opens_none() -> None:
    rule = Traps(Patterns([], "policy.trap_patterns"))
    budgets, found = rule.memory.novelty, [f"https://h{number}.org/a/b?sort={number}" for number in range(500)]
    number = int(rule.memory.accounts(rule.memory.scan(found))[0])
    budgets.record_page(number, 9.0, 1.0)
    seen = [found[0], "https://h0.org/c/d?sort=1"]
    keys, before = rule.memory.scan(seen).budget_keys, (budgets.sheet.rows.tobytes(), int(budgets._last[0]))
    excerpt = budgets.excerpt(keys)
    assert excerpt.sheet.used <= 9
    assert excerpt.explained(int(excerpt.numbers(keys, np.ones(2))[0])) == budgets.explained(number)
    looking = question(NOW, looking=True)
    kept = rule.keep(batch(seen), looking).tolist()
    assert rule.why(batch(seen[:1]), looking)
    assert (budgets.sheet.rows.tobytes(), int(budgets._last[0])) == before
    assert rule.keep(batch(seen), question(NOW)).tolist() == kept
