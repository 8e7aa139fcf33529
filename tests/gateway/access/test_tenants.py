"""Two tenants behind one door, on hosts of their own: each sees what it would see alone, byte for byte.

Histories are random. Every answer of the shared server is compared with that of a server that has one tenant only. No
text of one tenant's may hold the other's name, which stands in all its hosts, crawlers and words. `make tenants` runs
10,000 operations.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import AccessOptions, Config, GuideOptions, StoreOptions
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.http import Door
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = int(os.environ.get("TENANT_EXAMPLES", "2"))
STEPS = 50 if EXAMPLES > 2 else 15
TENANTS = ("qann", "qbob")  # no word of ours holds one of them
FILTERS = tuple(name for name in GuideOptions().filters if name != "robots")
WHO, CRAWLS = st.sampled_from(TENANTS), st.sampled_from(["books", "news"])
KINDS = ("layered", "bandit", "groups", "tres", "opic", "random")
PAGES = st.builds("{}/{}".format, st.integers(0, 3), st.integers(0, 9))


class Server:
    """One guide behind its door, with a client for each tenant."""

    def __init__(self, folder: Path, clock: ManualClock, tenants: tuple[str, ...], stack: AsyncExitStack) -> None:
        keys = folder / f"{'-'.join(tenants)}.json"
        config = Config(
            access=AccessOptions(keys=str(keys), requests_per_s=0, address_requests_per_s=0),
            guide=GuideOptions(filters=FILTERS),
            store=StoreOptions(data=":memory:"),
        )
        tokens = {name: api_keys.create(keys, grants_of(["admin", "robots:override"]), name)[0] for name in tenants}
        self.guide = open_guide(":memory:", config, clock, 7)
        service = Service(self.guide, config)
        self.guide.listen(service.metrics)
        app = httpx.ASGITransport(Door(service).app())
        self.clients = {
            name: httpx.AsyncClient(transport=app, base_url="http://here", headers={"authorization": f"Bearer {token}"})
            for name, token in tokens.items()
        }
        for client in self.clients.values():
            stack.push_async_callback(client.aclose)
        stack.push_async_callback(self.guide.close)


class Tenants(RuleBasedStateMachine):
    """Random operations of two tenants, each done twice: beside the other tenant, and alone."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock, self.stack = ManualClock(), AsyncExitStack()
        self.shared = Server(self.folder, self.clock, TENANTS, self.stack)
        self.alone = {name: Server(self.folder, self.clock, (name,), self.stack) for name in TENANTS}

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    def both(self, tenant: str, method: str, path: str, **more: Any) -> httpx.Response:
        """One request to both servers; their answers are equal, and show nothing of the other tenant."""
        beside = self.runner.run(self.shared.clients[tenant].request(method, path, **more))
        alone = self.runner.run(self.alone[tenant].clients[tenant].request(method, path, **more))
        assert (beside.status_code, beside.content) == (alone.status_code, alone.content), path
        assert beside.status_code < 500
        self.check_no_trace(tenant, beside.content)
        return beside

    def check_no_trace(self, tenant: str, content: bytes) -> None:
        other = next(name for name in TENANTS if name != tenant)
        assert other.encode() not in content

    @initialize(kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
    def begin(self, kinds: tuple[str, str]) -> None:
        for tenant, kind in zip(TENANTS, kinds, strict=True):
            self.define(tenant, "books", kind, delay_s=0.0)
            self.seed(tenant, "books", ["0/0", "1/1"])

    @rule(tenant=WHO, crawl=CRAWLS, kind=st.sampled_from(KINDS), delay_s=st.sampled_from([0.0, 1.0]))
    def define(self, tenant: str, crawl: str, kind: str, delay_s: float) -> None:
        policy = {"robots": "ignore", "default_delay_s": delay_s, "allow_domains": []}
        new = {"strategy": {"kind": kind}, "policy": policy, "goal": {"topic": f"{tenant} likes databases"}}
        self.both(tenant, "PUT", f"/v1/crawls/{crawl}", json=new)

    @rule(tenant=WHO, crawl=CRAWLS, pages=st.lists(PAGES, min_size=1, max_size=5))
    def seed(self, tenant: str, crawl: str, pages: list[str]) -> None:
        self.both(tenant, "POST", f"/v1/crawls/{crawl}/seeds", json={"urls": [url(tenant, page) for page in pages]})

    @rule(
        tenant=WHO,
        crawl=CRAWLS,
        most=st.integers(1, 8),
        request=st.sampled_from([None, "r-1", "r-2"]),
        tells=st.booleans(),
        links=st.lists(PAGES, max_size=6),
        relevance=st.sampled_from([None, 0.0, 1.0]),
    )
    def crawl_some(
        self,
        tenant: str,
        crawl: str,
        most: int,
        request: str | None,
        tells: bool,
        links: list[str],
        relevance: float | None,
    ) -> None:
        """Ask, and tell what came of it."""
        me = {"mcp_version": "2025-11", "crawler_id": f"{tenant}-1", "crawl_id": crawl}
        answer = self.both(tenant, "POST", "/v1/next", json={**me, "budget": {"max_urls": most}, "request_id": request})
        if not tells or answer.status_code != 200:
            return
        outlinks = [{"url": url(tenant, page), "anchor": f"{tenant} says more"} for page in links]
        page = {"status": 200, "title": f"a page of {tenant}", "relevance": relevance, "outlinks": outlinks}
        fetches = [{"url": one["url"], **page} for one in answer.json()["assigned_urls"]]
        self.both(tenant, "POST", "/v1/report", json={**me, "fetches": fetches, "report_id": request})

    @rule(tenant=WHO, crawl=CRAWLS, what=st.sampled_from(["pause", "resume"]))
    def pause(self, tenant: str, crawl: str, what: str) -> None:
        self.both(tenant, "POST", f"/v1/crawls/{crawl}/{what}")

    @rule(tenant=WHO, crawl=CRAWLS)
    def release(self, tenant: str, crawl: str) -> None:
        self.both(tenant, "POST", f"/v1/crawls/{crawl}/release", json={"crawler_id": f"{tenant}-1"})

    @rule(tenant=WHO, crawl=CRAWLS)
    def delete(self, tenant: str, crawl: str) -> None:
        self.both(tenant, "DELETE", f"/v1/crawls/{crawl}")

    @rule(tenant=WHO, crawl=CRAWLS, page=PAGES)
    def look(self, tenant: str, crawl: str, page: str) -> None:
        self.both(tenant, "GET", "/v1/crawls")
        self.both(tenant, "GET", f"/v1/crawls/{crawl}/export")
        self.both(tenant, "GET", f"/v1/crawls/{crawl}x")  # the hint of a name that is almost right
        self.both(tenant, "GET", "/v1/urls", params={"crawl_id": crawl})
        self.both(tenant, "GET", "/v1/explain", params={"crawl_id": crawl, "url": url(tenant, page)})
        self.both(tenant, "GET", "/metrics")
        self.both(tenant, "GET", "/", headers={"accept": "text/html"})
        self.both(tenant, "GET", f"/crawls/{crawl}", headers={"accept": "text/html"})
        self.both(tenant, "POST", "/v1/backups")

    @rule(seconds=st.sampled_from([0.5, 5.0, 300.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for server in (self.shared, *self.alone.values()):
            self.runner.run(server.guide.upkeep())

    @invariant()
    def statistics_are_those_of_a_tenant_alone(self) -> None:
        for tenant in TENANTS:
            self.both(tenant, "GET", "/v1/stats")


def url(tenant: str, page: str) -> str:
    host, _, path = page.partition("/")
    return f"https://h{host}.{tenant}.example/{path}"


@pytest.mark.timeout(3_600)
def test_each_tenant_sees_what_it_would_see_alone(tmp_path: Path) -> None:
    Tenants.folder = tmp_path
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    case = Tenants.TestCase
    case.settings = settings(
        max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=quiet, print_blob=True
    )
    case().runTest()
