"""Random histories of a fleet, with what must hold at every step of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, StoreOptions
from crawlguide.testing import ManualClock
from tests.support import ask, fetched, tell

HOSTS, PAGES, STEPS = 12, 40, 350
DELAYS = (0.0, 0.5, 3.0)
KINDS = ("layered", "relational", "best-first", "breadth-first", "depth-first", "random")
FATES: tuple[dict[str, Any], ...] = (
    {"status": 200}, {"status": 200}, {"status": 200}, {"status": 404}, {"status": 429, "retry_after_s": 7},
    {"status": 500}, {"error": "timeout"}, {"error": "dns"}, {"error": "tls"}, {"error": "released"},
)  # fmt: skip


def page(chance: Random) -> str:
    return f"https://h{chance.randrange(HOSTS)}.example{chance.randrange(4)}.org/{chance.randrange(PAGES)}"


@dataclass
class Fleet:
    """Some crawlers, some of them careless, and what each was promised."""

    guide: Guide
    clock: ManualClock
    chance: Random
    delay_s: float
    known: set[str] = field(default_factory=set)
    held: dict[str, tuple[str, float]] = field(default_factory=dict)  # by whom, until when
    starts: dict[str, list[float]] = field(default_factory=dict)

    def step(self) -> None:
        acts = (self.ask, self.ask, self.tell, self.tell, self.tell, self.wait, self.seed, self.stray)
        self.chance.choice(acts)()
        self.check_numbers()

    def ask(self) -> None:
        crawler, wanted = f"c-{self.chance.randrange(4)}", self.chance.randint(1, 12)
        answer = ask(self.guide, crawler, wanted, timeout_ms=20_000)
        assert len(answer["assigned_urls"]) <= wanted
        scores = [given["score"] for given in answer["assigned_urls"]]
        assert scores == sorted(scores, reverse=True)
        for given in answer["assigned_urls"]:
            self.check_given(given, crawler)

    def check_given(self, given: dict[str, Any], crawler: str) -> None:
        url, now = given["url"], self.clock.now()
        assert url in self.known
        assert self.held.get(url, ("", 0.0))[1] <= now, "given out while another holds it"
        self.held[url] = (crawler, now + 25.0)
        self.starts.setdefault(url.split("/")[2], []).append(now + given["not_before_ms"] / 1_000)
        assert sum(given["terms"].values()) == pytest.approx(given["score"], abs=0.001)

    def tell(self) -> None:
        mine = [url for url, (_, until) in self.held.items() if until > self.clock.now()]
        for url in self.chance.sample(mine, min(len(mine), 3)):
            crawler, _ = self.held.pop(url)
            fate = dict(self.chance.choice(FATES))
            links = [page(self.chance) for _ in range(self.chance.randrange(8))] if fate.get("status") == 200 else []
            more = {"redirected_to": page(self.chance)} if self.chance.random() < 0.1 and links else {}
            told = fetched(url, *links, relevance=self.chance.random(), elapsed_ms=30, **fate | more)
            result = tell(self.guide, told, crawler_id=crawler)
            assert [item["status"] for item in result["results"]] == ["ok"]
            self.known |= {*links, *more.values()}
            self.held.pop(more.get("redirected_to", ""), None)

    def stray(self) -> None:
        """A report of something nobody was asked for, or late, by somebody else."""
        url = page(self.chance)
        if url not in self.held:
            tell(self.guide, fetched(url, status=self.chance.choice((200, 503))), crawler_id="c-stray")
            self.known.add(url)

    def seed(self) -> None:
        urls = [page(self.chance) for _ in range(3)]
        self.guide.seed("default", urls)
        self.known |= set(urls)

    def wait(self) -> None:
        self.clock.advance(self.chance.choice((0.1, 1.0, 10.0, 40.0)))

    def check_numbers(self) -> None:
        stats = self.guide.stats()["crawls"]["default"]
        now = self.clock.now()
        assert stats["leased"] == sum(until > now for _, until in self.held.values())
        states = stats["queued"] + stats["leased"] + stats["done"] + sum(stats["dropped"].values())
        assert states + stats["evicted"] == stats["discovered"]

    def check_pace(self) -> None:
        for starts in self.starts.values():
            gaps = [later - earlier for earlier, later in zip(sorted(starts), sorted(starts)[1:], strict=False)]
            assert min(gaps, default=self.delay_s) >= self.delay_s - 1e-4


@pytest.mark.parametrize("quota", [1_000_000, 60])
@pytest.mark.parametrize("seed", range(9))
def test_no_history_breaks_a_promise(seed: int, quota: int) -> None:
    chance, clock = Random(seed), ManualClock()
    delay_s = chance.choice(DELAYS)
    policy = {"robots": "ignore", "default_delay_s": delay_s, "max_per_host": chance.choice((0, 2))}
    config = Config(store=StoreOptions(max_urls=quota, max_urls_per_host=max(quota // 2, 1)))
    with Guide.open(clock=clock, seed=seed, config=config) as guide:
        guide.define("default", {"strategy": {"kind": chance.choice(KINDS)}, "policy": policy})
        fleet = Fleet(guide, clock, chance, delay_s)
        fleet.seed()
        for _ in range(STEPS):
            fleet.step()
        fleet.check_pace()
        assert guide.stats()["crawls"]["default"]["fetches"] > 20


def test_one_seed_and_one_clock_give_one_history() -> None:
    def history() -> list[str]:
        chance, clock = Random(3), ManualClock()
        with Guide.open(clock=clock, seed=3) as guide:
            fleet = Fleet(guide, clock, chance, 1.0)
            fleet.seed()
            for _ in range(120):
                fleet.step()
            return [f"{host} {starts}" for host, starts in fleet.starts.items()]

    assert history() == history()
