"""How often somebody may come, and how much a tenant may have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.gateway.access.common import Guarded, guarding
from tests.gateway.http_door.common import ask, done, fetched, refused, tell
from websockets.sync.client import connect

from crawlguide.core.config import AccessOptions, Config, StoreOptions
from crawlguide.core.errors import RateLimited, Unauthenticated
from crawlguide.gateway.access import api_keys, rate_limits
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.access.entrance import Caller, Entrance
from crawlguide.gateway.access.rate_limits import RateLimit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURATION = """
[[tenant]]
name = "small"
max_crawls = 2
max_urls = 3

[[tenant]]
name = "slow"
requests_per_s = 2
"""


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("limited")
    (folder / "crawlguide.toml").write_text(CONFIGURATION)
    with guarding(folder, CRAWLGUIDE_ACCESS_REQUESTS_PER_S="5") as found:
        yield found


def test_a_bucket_fills_as_time_goes_by() -> None:
    now = [0.0]
    limit = RateLimit("you", 2.0, lambda: now[0])
    for _ in range(4):  # a burst of two seconds
        limit.take("a")
    with pytest.raises(RateLimited) as refusal:
        limit.take("a")
    assert refusal.value.retry_after_s == 0.5
    limit.take("b")
    now[0] = 0.5
    limit.take("a")
    with pytest.raises(RateLimited):
        limit.take("a")


def test_buckets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MOST_BUCKETS", 10)
    limit = RateLimit("you", 1.0)
    for number in range(1_000):
        limit.take(number)
    assert len(limit._buckets) <= 11


def test_a_credential_that_comes_too_often_waits_and_others_do_not(limited: Guarded) -> None:
    with limited.client(limited.key("read")) as often, limited.client(limited.key("read")) as seldom:
        answers = [often.get("/v1/stats") for _ in range(30)]
        late = [answer for answer in answers if answer.status_code == 429]
        assert late
        error = refused(late[0], 429, "rate_limited")
        assert 0 < error["retry_after_s"] <= 1
        assert int(late[0].headers["retry-after"]) >= 1
        done(seldom.get("/v1/stats"))


def test_messages_of_a_socket_count_too(limited: Guarded) -> None:
    headers = {"authorization": f"Bearer {limited.key('ask')}"}
    with connect(limited.server.url.replace("http", "ws") + "/ws", additional_headers=headers, proxy=None) as line:
        for number in range(30):
            line.send(json.dumps({"type": "ping", "id": number}))
        answers = [json.loads(line.recv(timeout=10)) for _ in range(30)]
    codes = {answer["error"]["code"] for answer in answers if answer["type"] == "error"}
    assert codes == {"rate_limited"}


def test_a_tenant_has_a_rate_of_its_own(limited: Guarded) -> None:
    keys = [limited.key("read", tenant="slow") for _ in range(2)]
    with limited.client(keys[0]) as one, limited.client(keys[1]) as two:
        codes = [door.get("/v1/stats").status_code for _ in range(6) for door in (one, two)]
    assert 429 in codes


def test_whoever_guesses_waits(limited: Guarded) -> None:
    with limited.client("cg_000000000000_" + "a" * 43) as nobody, limited.client(limited.key("read")) as neighbour:
        codes = {nobody.get("/v1/stats").status_code for _ in range(60)}
        done(neighbour.get("/v1/stats"))  # at the same address
    assert codes == {401, 429}


def test_a_tenant_has_so_many_crawls(limited: Guarded) -> None:
    with limited.client(limited.key("admin", tenant="small")) as door:
        for name in ("a", "b"):
            done(door.put(f"/v1/crawls/{name}", json={}), 201)
        assert "max_crawls" in refused(door.put("/v1/crawls/c", json={}), 403, "forbidden")["message"]
        refused(door.post("/v1/next", json=ask("d")), 403, "forbidden")
        done(door.put("/v1/crawls/a", json={}))


def test_a_tenant_knows_so_many_urls(limited: Guarded) -> None:
    with limited.client(limited.key("admin", tenant="small")) as door:
        urls = [f"https://{number}.example/" for number in range(3)]
        done(door.post("/v1/crawls/a/seeds", json={"urls": urls}))
        more = {"urls": ["https://more.example/"]}
        assert "max_urls" in refused(door.post("/v1/crawls/a/seeds", json=more), 413, "too_large")["message"]
        ack = done(door.post("/v1/report", json=tell("a", fetched(urls[0], "https://new.example/", urls[1]))))
    assert (ack["accepted"], ack["discovered"], ack["truncated"]) == (1, 0, 1)


def test_a_quota_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    from tests.gateway.access.common import run

    (tmp_path / "crawlguide.toml").write_text('[[tenant]]\nname = "a"\nmax_pages = 3\n')
    refusal = run("config", "check", cwd=tmp_path)
    assert refusal.returncode == 2
    assert "max_pages" in refusal.stderr


def test_tenants_share_no_limit(tmp_path: Path) -> None:
    """Two credentials may have one name, as tokens of two tenants with one subject have."""
    entrance = Entrance(Config(access=AccessOptions(requests_per_s=1.0), store=StoreOptions(data=str(tmp_path))))
    for tenant in ("acme", "beta"):
        for _ in range(2):
            entrance._credential_limit.take((tenant, "token 'fleet'"))


def test_an_ipv6_network_is_one_address(tmp_path: Path) -> None:
    api_keys.create(tmp_path / "access" / api_keys.FILE, grants_of(["read"]), "default")
    entrance = Entrance(Config(store=StoreOptions(data=str(tmp_path))))
    kinds: set[type[Exception]] = set()
    for number in range(100):
        try:
            entrance.admit(Caller(f"2001:db8::{number:x}", "Bearer wrong"))
        except (RateLimited, Unauthenticated) as problem:
            kinds.add(type(problem))
    assert kinds == {RateLimited, Unauthenticated}
