"""How long does one request keep all others waiting?

    .venv/bin/python -m bench.holds [--urls 200000] [--only ask]

The largest legal request of each kind goes to a server with a data folder, while another connection asks for /healthz
again and again. Printed is the longest that it had to wait, as far as the server worked meanwhile: the machine may be
busy with other things. The aim is 50 ms.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import msgspec
from tests.gateway.waiting import others_wait

from crawlguide.core.messages import VERSION
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.gateway.urlfrontier.urlfrontier_pb2_grpc import URLFrontierStub
from crawlguide.lab.speed.server import Server, serving

ANSWERED_WITHIN_S = 300
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
FILLED_AT_ONCE = 20_000
SETTLES_S = 0.3  # what the preparing left behind is not what is measured
Body = dict[str, Any]


class Client:
    """Sends bytes that were made before, so that it is not itself what is measured."""

    def __init__(self, server: Server) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWERED_WITHIN_S)

    def send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> bytes:
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        self._line.request(method, path, data, {"content-type": kind} if data is not None else {})
        answer = self._line.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {said[:300]!r}")
        return said

    def define(self, crawl: str, **definition: Any) -> None:
        self.send("PUT", f"/v1/crawls/{crawl}", definition)

    def fill(self, crawl: str, urls: int, hosts: int = 2_000) -> None:
        """Links that were found on pages, so that strategies know them."""
        for first in range(0, urls, FILLED_AT_ONCE):
            numbers = range(first, min(first + FILLED_AT_ONCE, urls))
            fetches = [
                {"url": f"https://s{start % hosts}.example/{crawl}/{start}", "status": 200,
                 "relevance": (start % 7) / 7, "title": f"page {start}",
                 "outlinks": [{"url": address(number, hosts), "anchor": f"word{number % 50}"} for number in
                              range(start, min(start + 50, urls))]}
                for start in range(numbers.start, numbers.stop, 50)
            ]  # fmt: skip
            self.send("POST", "/v1/report", tell(crawl, fetches))


def address(number: int, hosts: int = 2_000) -> str:
    return f"https://h{number % hosts}.example/docs/section-{number % 97}/page-{number}.html"


def tell(crawl: str, fetches: list[Body], **more: Any) -> Body:
    return {"mcp_version": VERSION, "crawler_id": "c", "crawl_id": crawl, "fetches": fetches} | more


def ask(crawl: str, urls: int, crawler: str = "c", **more: Any) -> Body:
    return {"mcp_version": VERSION, "crawler_id": crawler, "crawl_id": crawl, "budget": {"max_urls": urls}} | more


def pages(count: int, links: int, **more: Any) -> list[Body]:
    return [
        {"url": f"https://p{page % 500}.example/{page}", "status": 200, "outlinks": [
            {"url": f"https://t{(page * links + link) % 3_000}.example/{page}/{link}", "anchor": f"w{link % 40}"}
            for link in range(links)]} | more
        for page in range(count)
    ]  # fmt: skip


Act = Callable[[], Any]
Prepare = Callable[[Client, int], Act]
CASES: dict[str, Prepare] = {}


def case(name: str) -> Callable[[Prepare], None]:
    """Registers a function that prepares a kind of request and returns what is to be measured."""

    def register(prepare: Prepare) -> None:
        CASES[name] = prepare

    return register


def posting(client: Client, path: str, body: Body) -> Act:
    data = msgspec.json.encode(body)
    return lambda: client.send("POST", path, data)


def asking(name: str, policy: Body, strategy: str | None = None, **more: Any) -> None:
    @case(f"ask for 10,000, {name}")
    def _(client: Client, urls: int) -> Act:
        crawl = "ask-" + name.replace(" ", "-")
        client.define(crawl, policy=policy, **({"strategy": {"kind": strategy}} if strategy else {}))
        client.fill(crawl, urls)
        return posting(client, "/v1/next", ask(crawl, 10_000, **more))


asking("robots ignored", {"robots": "ignore"})
asking("no filter", FREE)
asking("robots obeyed", {})
asking("best first", {"robots": "ignore"}, "best-first")
asking("all given", FREE, budget={"max_urls": 10_000, "timeout_ms": 3_600_000})
asking("all given with a request id", FREE, budget={"max_urls": 10_000, "timeout_ms": 3_600_000}, request_id="r-1")


@case("release 10,000 leases")
def _(client: Client, _: int) -> Act:
    client.define("held", policy=FREE)
    client.fill("held", 20_000)
    client.send("POST", "/v1/next", ask("held", 10_000))
    return lambda: client.send("POST", "/v1/crawls/held/release", {"crawler_id": "c"})


@case("report that gives 10,000 back")
def _(client: Client, _: int) -> Act:
    client.define("returned", policy=FREE)
    client.fill("returned", 20_000)
    given = msgspec.json.decode(client.send("POST", "/v1/next", ask("returned", 10_000)))["assigned_urls"]
    back = [{"url": one["url"], "error": "released"} for one in given]
    return posting(client, "/v1/report", tell("returned", back))


def reporting(name: str, fetches: Callable[[], list[Body]], **definition: Any) -> None:
    @case(f"report of {name}")
    def _(client: Client, _: int) -> Act:
        crawl = "report-" + "".join(letter if letter.isalnum() else "-" for letter in name)
        client.define(crawl, **{"policy": {"robots": "ignore"}, **definition})
        client.fill(crawl, 2_000)
        return posting(client, "/v1/report", tell(crawl, fetches(), report_id="r-1"))


reporting("400 pages x 25 links", lambda: pages(400, 25, relevance=0.5))
reporting("1 page x 9,900 links", lambda: pages(1, 9_900, relevance=0.5))
reporting("4 pages x 9,900 links", lambda: pages(4, 9_900, relevance=0.5))
reporting("60,000 tiny fetches", lambda: [{"url": f"https://h.example/{n}", "status": 200} for n in range(60_000)])
reporting(
    "300 pages with 10 KB of text to judge",
    lambda: pages(300, 1, title="a title", text="some words about databases and gardens " * 250),
    goal={"topic": "database internals", "keywords": ["sql", "index"]},
)


@case("a page of 9,900 links again")
def _(client: Client, _: int) -> Act:
    client.define("again", policy=FREE)
    client.send("POST", "/v1/report", tell("again", pages(1, 9_900, relevance=0.5)))
    return posting(client, "/v1/report", tell("again", pages(1, 9_900, relevance=0.9)))


@case("history of 400 pages in an ask for 1,000")
def _(client: Client, _: int) -> Act:
    client.define("history", policy=FREE)
    return posting(client, "/v1/next", ask("history", 1_000, context={"recent_history": pages(400, 25)}))


@case("40,000 seeds")
def _(client: Client, _: int) -> Act:
    seeds = [f"https://s{number}.example/some/path/{number}" for number in range(40_000)]
    return posting(client, "/v1/crawls/seeded/seeds", {"urls": seeds})


@case("40,000 seeds and features in an ask")
def _(client: Client, _: int) -> Act:
    seeds = [f"https://s{number}.example/{number}" for number in range(40_000)]
    features = {url: {"pagerank": 0.5} for url in seeds[:30_000]}
    return posting(client, "/v1/next", ask("seeding", 100, context={"seed_urls": seeds, "external_features": features}))


@case("export of 9,900 links a page")
def _(client: Client, _: int) -> Act:
    client.define("exported", policy=FREE)
    for number in range(10):
        page = {"url": f"https://p.example/{number}", "status": 200, "outlinks": [
            {"url": f"https://t{link}.example/x", "anchor": f"w{link}"} for link in range(9_900)]}  # fmt: skip
        client.send("POST", "/v1/report", tell("exported", [page]))
    return lambda: client.send("GET", "/v1/crawls/exported/export")


@case("export of 60,000 URLs, read and imported")
def _(client: Client, _: int) -> Act:
    client.define("moved", policy=FREE)
    client.fill("moved", 60_000)
    lines = client.send("GET", "/v1/crawls/moved/export")
    part = lines[: 4 * 1024 * 1024 - 10].rpartition(b"\n")[0]
    return lambda: client.send("POST", "/v1/crawls/moved-here/import", part, "application/x-ndjson")


@case("import of a page with 9,900 links")
def _(client: Client, _: int) -> Act:
    client.define("exported-1", policy=FREE)
    client.send("POST", "/v1/report", tell("exported-1", pages(1, 9_900)))
    lines = client.send("GET", "/v1/crawls/exported-1/export")
    return lambda: client.send("POST", "/v1/crawls/imported-1/import", lines, "application/x-ndjson")


@case("delete a crawl of 300,000 URLs on 100,000 hosts")
def _(client: Client, urls: int) -> Act:
    client.define("gone", policy=FREE)
    client.fill("gone", urls * 3 // 2, hosts=urls // 2)
    client.send("POST", "/v1/next", ask("gone", 10_000))
    return lambda: client.send("DELETE", "/v1/crawls/gone")


@case("DELETE /v1/urls of all that wait")
def _(client: Client, urls: int) -> Act:
    client.define("purged", policy=FREE)
    client.fill("purged", urls // 2, hosts=urls // 4)
    return lambda: client.send("DELETE", "/v1/urls?crawl_id=purged&state=queued")


@case("DELETE /v1/urls of pages with 9,900 links")
def _(client: Client, _: int) -> Act:
    client.define("purged-2", policy=FREE)
    for number in range(20):
        page = {"url": f"https://p.example/{number}", "status": 200, "outlinks": [
            {"url": f"https://t{link}.example/x", "anchor": f"w{link}"} for link in range(9_900)]}  # fmt: skip
        client.send("POST", "/v1/report", tell("purged-2", [page]))
    return lambda: client.send("DELETE", "/v1/urls?crawl_id=purged-2&state=done")


@case("GET /v1/urls of 10,000")
def _(client: Client, urls: int) -> Act:
    client.define("listed", policy=FREE)
    client.fill("listed", urls // 2)
    return lambda: client.send("GET", "/v1/urls?crawl_id=listed&limit=10000")


@case("GET /v1/urls that finds nothing")
def _(client: Client, urls: int) -> Act:
    client.define("scanned", policy=FREE)
    client.fill("scanned", urls // 2)
    return lambda: client.send("GET", "/v1/urls?crawl_id=scanned&limit=10000&host=nowhere.example")


@case("explain")
def _(client: Client, urls: int) -> Act:
    client.define("explained", policy={"robots": "ignore"})
    client.fill("explained", urls // 2)
    return lambda: client.send("GET", f"/v1/explain?crawl_id=explained&url={address(77)}")


NAMES = [f"d{number}.example-{number % 1_000}.org" for number in range(100_000)]
LONG: dict[str, Body] = {
    "names": {"policy": {"allow_domains": NAMES}},
    "weights": {"policy": {"domain_weights": dict.fromkeys(NAMES, 1.5)}},
    "rules": {"rules": {"priority": {"hosts": dict.fromkeys(NAMES, 2)}}},
    "priorities of URLs": {"rules": {"priority": {"urls": {address(number): 0.5 for number in range(10_000)}}}},
    "patterns": {"policy": {"exclude_patterns": [rf"/x{number}/.*z$" for number in range(500)]}},
}


def defining(name: str, definition: Body) -> None:
    @case(f"PUT, PATCH, GET, use of a definition: {name}")
    def _(client: Client, _: int) -> Act:
        crawl = "long-" + name.replace(" ", "-")
        client.fill(crawl, 60_000)
        data = msgspec.json.encode(definition)

        def act() -> None:
            client.send("PUT", f"/v1/crawls/{crawl}", data)
            client.send("PATCH", f"/v1/crawls/{crawl}", {"limits": {"max_depth": 30}})
            client.send("GET", f"/v1/crawls/{crawl}")
            client.send("GET", "/v1/crawls")
            client.send("POST", "/v1/next", ask(crawl, 10))
            client.send("POST", "/v1/report", tell(crawl, pages(10, 20)))
            client.send("POST", f"/v1/crawls/{crawl}/rules", {"ban": {"hosts": ["b.example"]}})

        return act


for _name, _definition in LONG.items():
    defining(_name, _definition)


@case("redefine a crawl of many URLs")
def _(client: Client, urls: int) -> Act:
    client.define("redefined", policy=FREE)
    client.fill("redefined", urls // 2, hosts=urls // 8)
    return lambda: client.define("redefined", policy=FREE | {"deny_domains": ["h1.example"]}, limits={"max_depth": 1})


@case("stats, metrics, lists and pages of 2,000 crawls")
def _(client: Client, _: int) -> Act:
    for number in range(2_000):
        client.define(f"small-{number}")
    for number in range(0, 2_000, 20):
        client.send("POST", f"/v1/crawls/small-{number}/seeds", {"urls": [f"https://h{number}.example/"]})

    def act() -> None:
        for path in ("/v1/stats", "/metrics", "/v1/crawls?limit=2000", "/", "/v1/stats"):
            client.send("GET", path)

    return act


@case("YAML of 1 MiB")
def _(client: Client, _: int) -> Act:
    client.define("yaml", policy=FREE)
    client.fill("yaml", 20_000)
    lines = [f'mcp_version: "{VERSION}"', "crawler_id: c", "crawl_id: yaml", "fetches:"]
    for number in range(16_000):
        lines += [f"- url: https://y{number % 99}.example/{number}/and/some/longer/path", "  status: 200"]
    body = "\n".join(lines).encode()[:1_048_000].rpartition(b"\n- url")[0]
    return lambda: client.send("POST", "/v1/report", body, "application/yaml")


@case("JSON of 4 MiB that is wrong at its end")
def _(client: Client, _: int) -> Act:
    body = msgspec.json.encode(tell("wrong", [{"url": f"https://h.example/{n}", "status": 200} for n in range(70_000)]))

    def act() -> None:
        for wrong in (body[:-2] + b',{"url":3}]}', body[:-3], body[:-2] + b",[[[["):
            try:
                client.send("POST", "/v1/report", wrong)
            except RuntimeError:
                continue
            raise RuntimeError("it was taken")

    return act


PORTS: Body = {}  # of the other doors


def urlfrontier() -> URLFrontierStub:
    return URLFrontierStub(grpc.insecure_channel(f"127.0.0.1:{PORTS['frontier_port']}"))


def put(stub: URLFrontierStub, crawl: str, count: int, at_once: int) -> Act:
    infos = [
        wire.URLInfo(url=address(number), key=f"h{number % 2_000}.example", crawlID=crawl) for number in range(count)
    ]
    batches = [wire.DiscoveredBatch(items=infos[first : first + at_once]) for first in range(0, count, at_once)]
    return lambda: list(stub.PutDiscovered(iter(batches)))


@case("URLFrontier: PutDiscovered, batches of 10,000")
def _(_: Client, __: int) -> Act:
    return put(urlfrontier(), "uf", 40_000, 10_000)


@case("URLFrontier: GetURLs of 1,000 queues x 10")
def _(_: Client, __: int) -> Act:
    stub = urlfrontier()
    stub.SetDelay(wire.QueueDelayParams(delay_requestable=0))
    put(stub, "uf-2", 40_000, 1_000)()
    wanted = wire.GetParams(max_urls_per_queue=10, max_queues=1_000, delay_requestable=60, crawlID="uf-2")
    return lambda: list(stub.GetURLs(wanted))


@case("URLFrontier: ListURLs, DeleteCrawl")
def _(_: Client, __: int) -> Act:
    stub = urlfrontier()
    put(stub, "uf-3", 60_000, 1_000)()

    def act() -> None:
        list(stub.ListURLs(wire.ListUrlParams(start=0, size=20_000, crawlID="uf-3")))
        stub.DeleteCrawl(wire.DeleteCrawlMessage(value="uf-3"))

    return act


def measured(server: Server, prepare: Prepare, urls: int) -> tuple[float, float]:
    """The longest wait, and how long the whole request took, in ms."""
    act = prepare(Client(server), urls)
    gc.collect()
    time.sleep(SETTLES_S)
    with others_wait(server) as wait:
        began = time.perf_counter()
        act()
        took = time.perf_counter() - began
    return wait.longest_s * 1_000, took * 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=200_000, help="in the frontier that is asked")
    parser.add_argument("--only", default="", help="kinds with this in their name")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "data", Path(folder), "--frontier-port", "0") as server,
    ):
        PORTS.update(server.ready)
        print("| request | others waited, ms | it took, ms |\n|---|---|---|", flush=True)
        for name, prepare in CASES.items():
            if options.only in name:
                longest, took = measured(server, prepare, options.urls)
                print(f"| {name} | {longest:.0f} | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
