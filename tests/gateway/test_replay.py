"""An outside harness that knows only PROTOCOL.md: it crawls recorded webs over HTTP and keeps the guide to its word."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import ada_url
import httpx
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.gateway.conftest import Served

WIKISPEEDIA = Path(__file__).resolve().parents[3] / "shared" / "data" / "webs" / "wikispeedia"
VERSION = "2025-11"
POLICY = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
SIZES = (1, 3, 10, 40)
MAX_BYTES, TIMEOUT_MS, CONCURRENCY = 2_000_000, 20_000, 1
MOST_ROUNDS = 5_000
NAMES = count()


def canonical(url: str, base: str | None = None) -> str:
    """WHATWG, without the fragment."""
    href: str = ada_url.normalize_url(url) if base is None else ada_url.join_url(base, url)
    return href.partition("#")[0]


# webs


@dataclass(frozen=True)
class Web:
    """What a crawler would have seen: links by page (as they are written there), redirects; all else is a 404."""

    seeds: list[str]
    links: dict[str, list[str]]
    redirects: dict[str, str] = field(default_factory=dict)

    def fetch(self, url: str) -> dict[str, Any]:
        """One fetch as a tell says it."""
        target = self.redirects.get(url, url)
        if target not in self.links:
            return {"url": url, "status": 404, "elapsed_ms": 20, "bytes": 300}
        outlinks = [{"url": link, "anchor": f"to {link}"} for link in self.links[target]]
        told = {"url": url, "status": 200, "elapsed_ms": 100, "bytes": 10_000, "outlinks": outlinks}
        return told if target == url else told | {"redirected_to": target}

    def found(self, url: str) -> list[str]:
        """Every URL that a fetch reveals, in its one form."""
        target = self.redirects.get(url, url)
        revealed = [] if target == url else [target]
        return revealed + [canonical(link, target) for link in self.links.get(target, ())]


def synthetic() -> Web:
    """240 pages on six hosts, with dead links, redirects, self links, and links written in every way."""
    random = Random(7)
    pages = [f"https://h{number % 6}.replay.example/p/{number}" for number in range(240)]
    links = {page: _written(page, random.sample(pages, 6), random) for page in pages}
    for number, page in enumerate(pages):
        links[page].append(pages[min(number + 1, 239)])  # so that all can be reached
    moved = {f"https://h{number % 6}.replay.example/old/{number}": pages[number] for number in range(0, 240, 8)}
    for number, old in enumerate(moved):
        links[pages[number * 3]].append(old)
    return Web([pages[0], pages[17], "https://gone.replay.example/"], links, moved)


def _written(page: str, targets: list[str], random: Random) -> list[str]:
    """Links as pages write them: relative, with a fragment, with a default port, in capitals, dead, to themselves."""
    ways = [
        lambda url: url,
        lambda url: url + "#part",
        lambda url: url.replace(".example/", ".example:443/"),
        lambda url: url.replace("https://h", "HTTPS://H"),
        lambda url: url.replace("/p/", "/p/x/../"),
    ]
    links = [random.choice(ways)(target) for target in targets]
    dead = f"/dead/{random.randrange(40)}"
    return [*links, page + "#top", dead, "mailto:nobody@replay.example", "javascript:void(0)"]


def wikispeedia() -> Web:
    urls = pq.read_table(WIKISPEEDIA / "nodes.parquet", columns=["url"])["url"].to_pylist()
    edges = pq.read_table(WIKISPEEDIA / "edges.parquet", columns=["src", "dst", "pos"]).to_pydict()
    links: dict[str, list[str]] = {url: [] for url in urls}
    for src, _, dst in sorted(zip(edges["src"], edges["pos"], edges["dst"], strict=True)):
        links[urls[src]].append(urls[dst])
    task = json.loads((WIKISPEEDIA / "tasks.json").read_text())[0]
    return Web([*task["seeds_far"], *task["seeds_near"]], links)


def reachable(web: Web) -> set[str]:
    """Every URL there is to know, starting from the seeds."""
    return set(first_in_first_out(web)[1])


def first_in_first_out(web: Web, most: int = 10**9) -> tuple[list[str], list[str]]:
    """A plain queue: the URLs in the order in which it fetches them, and all it came to know."""
    known = dict.fromkeys(url for seed in web.seeds if (url := canonical(seed)).startswith("http"))
    queue, order, over = deque(known), list[str](), set[str]()
    while queue and len(order) < most:
        url = queue.popleft()
        if url in over:
            continue
        order.append(url)
        over |= {url, web.redirects.get(url, url)}
        for link in web.found(url):
            if link.startswith("http") and link not in known:
                known[link] = None
                queue.append(link)
    return order, list(known)


# crawlers


@dataclass
class History:
    """All that was said, and what was noticed at the time."""

    web: Web
    crawl: str
    most: int
    exchanges: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    given: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    acks: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def asked(self, ask: dict[str, Any], answer: dict[str, Any]) -> list[str]:
        """Note an answer; the URLs to fetch."""
        urls = [one["url"] for one in answer["assigned_urls"]]
        with self.lock:
            self.exchanges.append((ask, answer))
            self.strangers += [url for url in urls if url not in self.known]
            given = set(self.given)
            self.twice += [url for url in urls if url in given]
            self.given += urls
        return urls

    def learned(self, urls: Iterable[str]) -> None:
        """Note what a crawler is about to tell."""
        with self.lock:
            for url in urls:
                self.told.append(url)
                self.known.update(link for link in self.web.found(url) if link.startswith("http"))

    @property
    def state(self) -> str:
        """What the last empty answer said."""
        return str(self.exchanges[-1][1]["metadata"]["crawl_state"])


@dataclass
class Crawler:
    """Asks, fetches from the recorded web, tells; until nothing is left or enough was fetched."""

    client: httpx.Client
    history: History
    number: int
    sizes: tuple[int, ...]

    def run(self) -> None:
        for turn in range(MOST_ROUNDS):
            if len(self.history.told) >= self.history.most:
                return
            answer = self._ask(turn)
            urls = [one["url"] for one in answer["assigned_urls"]]
            if urls:
                self._tell(urls)
            elif answer["metadata"]["crawl_state"] in {"exhausted", "finished", "paused"}:
                return
            else:
                time.sleep(min(answer["retry_after_ms"], 20) / 1_000)
        raise AssertionError(f"crawler {self.number} found no end in {MOST_ROUNDS} rounds")

    def _ask(self, turn: int) -> dict[str, Any]:
        ask = {
            "mcp_version": VERSION,
            "crawler_id": f"c-{self.number}",
            "request_id": f"{self.number}-{turn}",
            "crawl_id": self.history.crawl,
            "budget": {
                "max_urls": self.sizes[turn % len(self.sizes)], "max_bytes": MAX_BYTES, "timeout_ms": TIMEOUT_MS
            },
            "context": {"metadata": {"concurrency": CONCURRENCY}},
        }  # fmt: skip
        answer = self._post("/v1/next", ask)
        self.history.asked(ask, answer)
        return answer

    def _tell(self, urls: list[str]) -> None:
        fetches = [self.history.web.fetch(url) for url in urls]
        self.history.learned(urls)
        report = {"mcp_version": VERSION, "crawler_id": f"c-{self.number}", "crawl_id": self.history.crawl}
        self.history.acks.append(self._post("/v1/report", report | {"fetches": fetches}))

    def _post(self, path: str, message: dict[str, Any]) -> dict[str, Any]:
        answer = self.client.post(path, json=message)
        self.history.statuses.add(answer.status_code)
        answer.raise_for_status()
        reply: dict[str, Any] = answer.json()
        return reply


def crawled(
    url: str, web: Web, crawlers: int = 1, strategy: str = "layered", most: int = 10**9, sizes: tuple[int, ...] = SIZES
) -> History:
    """Crawl the web over HTTP and return all that was said."""
    history = History(web, f"replay-{next(NAMES)}", most)
    with httpx.Client(base_url=url, timeout=30.0, trust_env=False) as client:
        path = f"/v1/crawls/{history.crawl}"
        client.put(path, json={"strategy": {"kind": strategy}, "policy": POLICY}).raise_for_status()
        history.known.update(canonical(seed) for seed in web.seeds)
        client.post(path + "/seeds", json={"urls": web.seeds}).raise_for_status()
        fleet = [Crawler(client, history, number, sizes) for number in range(crawlers)]
        with ThreadPoolExecutor(crawlers) as pool:
            for ended in [pool.submit(one.run) for one in fleet]:
                ended.result(timeout=60)
        stats = client.get("/v1/stats", params={"crawl_id": history.crawl}).json()
        history.stats = stats["crawls"][history.crawl]
    return history


@pytest.fixture(scope="module", params=["synthetic", "wikispeedia"])
def web(request: pytest.FixtureRequest) -> Web:
    if request.param == "synthetic":
        return synthetic()
    if not WIKISPEEDIA.is_dir():
        pytest.skip(f"the recorded web is not here: {WIKISPEEDIA}")
    return wikispeedia()


@pytest.fixture(scope="module", params=[1, 8], ids=["1 crawler", "8 crawlers"])
def history(request: pytest.FixtureRequest, served: Served, web: Web) -> History:
    return crawled(served.url, web, crawlers=request.param, most=600)


def test_every_message_is_understood(history: History) -> None:
    assert history.statuses == {200}


def test_something_was_crawled(history: History) -> None:
    assert len(history.told) >= min(history.most, 240)


def test_no_url_is_given_out_that_nobody_discovered(history: History) -> None:
    assert history.strangers == []


def test_no_url_is_given_out_twice(history: History) -> None:
    assert history.twice == []


def test_never_more_urls_than_asked_for(history: History) -> None:
    assert all(len(answer["assigned_urls"]) <= ask["budget"]["max_urls"] for ask, answer in history.exchanges)


def test_the_estimated_bytes_stay_within_the_budget(history: History) -> None:
    sums = [sum(one["estimated_bytes"] for one in answer["assigned_urls"]) for _, answer in history.exchanges]
    assert 0 < max(sums) <= MAX_BYTES


def test_the_estimated_time_stays_within_the_budget(history: History) -> None:
    sums = [sum(one["estimated_fetch_ms"] for one in answer["assigned_urls"]) for _, answer in history.exchanges]
    assert 0 < max(sums) <= TIMEOUT_MS * CONCURRENCY


def test_answers_are_sorted_by_score(history: History) -> None:
    for _, answer in history.exchanges:
        scores = [one["score"] for one in answer["assigned_urls"]]
        assert scores == sorted(scores, reverse=True)


def test_the_terms_sum_to_the_score(history: History) -> None:
    given = [one for _, answer in history.exchanges for one in answer["assigned_urls"]]
    assert [one for one in given if abs(sum(one["terms"].values()) - one["score"]) > 0.001] == []


def test_every_told_fetch_is_accepted(history: History) -> None:
    assert sum(ack["accepted"] for ack in history.acks) == len(history.told)


def test_every_told_fetch_is_counted(history: History) -> None:
    assert history.stats["fetches"] == len(history.told)


def test_every_assignment_is_counted(history: History) -> None:
    assert history.stats["assigned"] == len(history.given)


def test_the_guide_knows_the_urls_that_were_told_and_no_others(history: History) -> None:
    assert history.stats["discovered"] == len(history.known)


def test_every_known_url_is_queued_leased_done_or_dropped(history: History) -> None:
    stats = history.stats
    places = stats["queued"] + stats["leased"] + stats["done"] + sum(stats["dropped"].values())
    assert places == stats["discovered"]


def test_what_was_told_is_no_longer_on_lease(history: History) -> None:
    assert history.stats["leased"] == len(set(history.given) - set(history.told))


@pytest.mark.parametrize("crawlers", [1, 8])
@pytest.mark.parametrize("strategy", ["layered", "breadth-first", "depth-first", "best-first", "random"])
def test_a_web_crawled_to_its_end_is_exhausted(served: Served, strategy: str, crawlers: int) -> None:
    assert crawled(served.url, synthetic(), crawlers, strategy).state == "exhausted"


@pytest.mark.parametrize("crawlers", [1, 8])
def test_a_web_crawled_to_its_end_was_crawled_whole(served: Served, crawlers: int) -> None:
    web = synthetic()
    history = crawled(served.url, web, crawlers)
    assert history.known == reachable(web)
    assert (history.stats["done"], history.stats["queued"]) == (len(history.known), 0)


@pytest.mark.parametrize("size", [1, 10])
def test_breadth_first_is_first_in_first_out(served: Served, web: Web, size: int) -> None:
    history = crawled(served.url, web, strategy="breadth-first", most=500, sizes=(size,))
    order, _ = first_in_first_out(web, len(history.told))
    assert history.told == order


@pytest.fixture
def hundred(client: httpx.Client, crawl: str) -> str:
    """A crawl that knows a hundred URLs of a hundred hosts."""
    client.put(f"/v1/crawls/{crawl}", json={"policy": POLICY}).raise_for_status()
    urls = [f"https://{crawl}-{number}.example/" for number in range(100)]
    client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": urls}).raise_for_status()
    return crawl


def given(client: httpx.Client, crawl: str, concurrency: int | None = None, **budget: int) -> list[dict[str, Any]]:
    context = {"metadata": {"concurrency": concurrency}} if concurrency else None
    ask = {"mcp_version": VERSION, "crawler_id": "c", "crawl_id": crawl, "budget": {"max_urls": 100} | budget}
    answer: list[dict[str, Any]] = client.post("/v1/next", json=ask | {"context": context}).json()["assigned_urls"]
    return answer


def test_a_small_byte_budget_is_filled_but_not_exceeded(client: httpx.Client, hundred: str) -> None:
    (one,) = given(client, hundred, max_urls=1)
    room = 7 * one["estimated_bytes"] + 1
    assert len(given(client, hundred, max_bytes=room)) == 7


def test_a_byte_budget_of_nothing_gives_nothing(client: httpx.Client, hundred: str) -> None:
    assert given(client, hundred, max_bytes=0) == []


@pytest.mark.parametrize(("concurrency", "workers"), [(None, 8), (1, 1), (3, 3)])
def test_a_time_budget_counts_for_every_worker(
    client: httpx.Client, hundred: str, concurrency: int | None, workers: int
) -> None:
    (one,) = given(client, hundred, max_urls=1)
    timeout_ms = 2 * one["estimated_fetch_ms"]
    assert len(given(client, hundred, concurrency, timeout_ms=timeout_ms)) == 2 * workers


def test_a_lease_that_ended_is_given_out_again(client: httpx.Client, hundred: str) -> None:
    first = {one["url"] for one in given(client, hundred, timeout_ms=400, concurrency=1_000)}
    time.sleep(0.4 * 1.25 + 0.1)
    assert {one["url"] for one in given(client, hundred)} == first


def test_a_lease_that_runs_is_given_to_nobody_else(client: httpx.Client, hundred: str) -> None:
    given(client, hundred, concurrency=1_000, timeout_ms=60_000)
    assert given(client, hundred) == []


def test_a_lease_lasts_for_the_timeout_and_a_quarter(client: httpx.Client, hundred: str) -> None:
    asked = datetime.now(UTC)
    (one,) = given(client, hundred, max_urls=1, timeout_ms=80_000)
    lasts = datetime.fromisoformat(one["lease_expires"]) - asked
    assert timedelta(seconds=98) < lasts < timedelta(seconds=105)


def test_one_request_sent_by_eight_at_once_is_answered_once(client: httpx.Client, hundred: str) -> None:
    ask = {"mcp_version": VERSION, "crawler_id": "c", "crawl_id": hundred, "budget": {"max_urls": 5}}
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: client.post("/v1/next", json=ask | {"request_id": "r"}).json(), range(8)))
    assert replies == [replies[0]] * 8
    assert client.get("/v1/stats", params={"crawl_id": hundred}).json()["crawls"][hundred]["assigned"] == 5
