"""How often somebody may come, and how much a tenant may have."""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.access.common import NO_LIMITS, Guarded, guarding, run, until
from tests.gateway.http_door.common import ask, done, fetched, refused, tell
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

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
    assert len(limit._buckets) == 10


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


@pytest.fixture
def entrance(tmp_path: Path) -> Entrance:
    """One that knows the key of `right`, and not much patience with others."""
    return Entrance(Config(access=AccessOptions(address_failures_per_s=0.001), store=StoreOptions(data=str(tmp_path))))


@pytest.fixture
def right(tmp_path: Path) -> Caller:
    key, _ = api_keys.create(tmp_path / "access" / api_keys.FILE, grants_of(["read"]), "default")
    return Caller("192.0.2.1", f"Bearer {key}")


def guess(entrance: Entrance, address: str) -> type[Exception]:
    with pytest.raises((Unauthenticated, RateLimited)) as refusal:
        entrance.admit(Caller(address, "Bearer cg_000000000000_" + "a" * 43))
    return refusal.type


def test_whoever_guesses_too_fast_is_not_even_told_that_a_guess_is_right(right: Caller, entrance: Entrance) -> None:
    assert [guess(entrance, right.address) for _ in range(3)] == [Unauthenticated, RateLimited, RateLimited]
    with pytest.raises(RateLimited):
        entrance.admit(right)
    assert entrance.admit(right._replace(address="192.0.2.2")).tenant == "default"


def test_whoever_came_in_before_does_not_wait_for_a_neighbour_who_guesses(right: Caller, entrance: Entrance) -> None:
    entrance.admit(right)
    assert [guess(entrance, right.address) for _ in range(3)][-1] is RateLimited
    assert entrance.admit(right).tenant == "default"


def test_a_credential_that_was_refused_is_familiar_no_longer(right: Caller, entrance: Entrance, tmp_path: Path) -> None:
    """It was revoked, and comes back too late for whoever has used up all patience meanwhile."""
    file = tmp_path / "access" / api_keys.FILE
    entrance.admit(right)
    before = file.read_bytes()
    api_keys.revoke(file, right.authorization.split("_")[1])
    entrance._keys._file._looked = float("-inf")
    with pytest.raises(Unauthenticated):
        entrance.admit(right)
    file.write_bytes(before)
    entrance._keys._file._looked = float("-inf")
    with pytest.raises(RateLimited):
        entrance.admit(right)


def test_whoever_guesses_at_a_server_waits(limited: Guarded) -> None:
    with limited.client("cg_000000000000_" + "a" * 43) as nobody:
        codes = {nobody.get("/v1/stats").status_code for _ in range(60)}
    assert codes == {401, 429}


@pytest.fixture(scope="module")
def hesitant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A request, and then none for a long while, of each address."""
    with guarding(tmp_path_factory.mktemp("hesitant"), CRAWLGUIDE_ACCESS_ADDRESS_REQUESTS_PER_S="0.01") as found:
        yield found


@pytest.mark.parametrize("page", ["/docs", "/openapi.json", "/login", "/static/style.css", "/v1/stats"])
def test_an_address_has_a_rate_for_everything_but_health(hesitant: Guarded, page: str) -> None:
    address = f"127.0.1.{len(page)}"
    with hesitant.client(transport=httpx.HTTPTransport(local_address=address)) as nobody:
        assert [nobody.get(page).status_code == 429 for _ in range(2)] == [False, True]
        assert {nobody.get(path).status_code for path in ("/healthz", "/readyz")} == {200}


def test_a_form_that_is_too_long_is_refused_before_it_is_read(limited: Guarded) -> None:
    """Two megabytes are announced, of which one kilobyte comes."""
    head = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", limited.server.port), 5) as line:
        line.sendall(head + b"x" * 1_000)
        assert line.recv(1_000).startswith(b"HTTP/1.1 413 ")


def test_somebody_who_knocks_too_often_is_refused_before_a_form_is_read(hesitant: Guarded) -> None:
    head = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"
    with hesitant.client() as nobody:
        assert nobody.get("/login").status_code == 200
    with socket.create_connection(("127.0.0.1", hesitant.server.port), 5) as line:
        line.sendall(head)
        assert line.recv(1_000).startswith(b"HTTP/1.1 429 ")


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


QUOTAS = {
    "a quota that is none": ('[[tenant]]\nname = "a"\nmax_pages = 3\n', "max_pages"),
    "a name that no tenant has": ('[[tenant]]\nname = "ACME"\n', "name: expected * or 1 to 63"),
    "a name twice": ('[[tenant]]\nname = "a"\n' * 2, "got 2 for 'a'"),
    "a tenant by default that is none": ('[access]\ndefault_tenant = "A B"\n', "default_tenant: expected"),
}


@pytest.mark.parametrize("name", QUOTAS)
def test_what_is_wrong_with_tenants_is_said_at_the_start(tmp_path: Path, name: str) -> None:
    configuration, says = QUOTAS[name]
    (tmp_path / "crawlguide.toml").write_text(configuration)
    refusal = run("config", "check", cwd=tmp_path)
    assert (refusal.returncode, says in refusal.stderr) == (2, True), refusal.stderr


@pytest.fixture(scope="module")
def unhurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A request a second, two at once, of each credential."""
    with guarding(tmp_path_factory.mktemp("unhurried"), CRAWLGUIDE_ACCESS_REQUESTS_PER_S="1") as found:
        yield found


def socket_of(guarded: Guarded, key: str) -> ClientConnection:
    url = guarded.server.url.replace("http", "ws") + "/ws"
    return connect(url, additional_headers={"authorization": f"Bearer {key}"}, proxy=None)


def heard(line: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(line.recv(timeout=20))
    return message


def test_asks_of_a_subscription_count_and_wait_for_their_turn(unhurried: Guarded, crawl: str) -> None:
    """The handshake and the wish use up what there is at once: the first ask comes a second later."""
    with unhurried.client(unhurried.key("admin", "robots:override")) as admin:
        done(admin.put(f"/v1/crawls/{crawl}", json={"policy": {"robots": "ignore"}}), 201)
        done(admin.post(f"/v1/crawls/{crawl}/seeds", json={"urls": ["https://a.example/"]}))
    key, began = unhurried.key("ask"), time.monotonic()
    with socket_of(unhurried, key) as line:
        line.send(json.dumps({"type": "subscribe", "id": 1, **ask(crawl)}))
        assert heard(line)["type"] == "assignment"
    assert time.monotonic() - began >= 1.0


def test_looks_of_a_subscription_count_too(unhurried: Guarded) -> None:
    key, began = unhurried.key("read"), time.monotonic()
    with socket_of(unhurried, key) as line:
        line.send(json.dumps({"type": "stats", "id": 1, "every_s": 0.1}))
        assert [heard(line)["type"] for _ in range(2)] == ["stats"] * 2
    assert time.monotonic() - began >= 2.0


def test_one_credential_or_tenant_does_not_take_all_sockets(tmp_path: Path) -> None:
    (tmp_path / "crawlguide.toml").write_text('[[tenant]]\nname = "small"\nmax_sockets = 3\n')
    with guarding(tmp_path, **NO_LIMITS, CRAWLGUIDE_ACCESS_MAX_SOCKETS="2") as found, ExitStack() as stack:
        keys = [found.key("ask", tenant="small") for _ in range(2)]
        lines = [stack.enter_context(socket_of(found, key)) for key in (keys[0], keys[0], keys[1])]
        for key, who in ((keys[0], "your credential"), (keys[1], "your tenant")):
            with pytest.raises(InvalidStatus) as refusal, socket_of(found, key):
                pass
            error = json.loads(refusal.value.response.body or b"")["error"]
            assert (error["code"], who in error["message"]) == ("rate_limited", True)
        stack.enter_context(socket_of(found, found.key("ask", tenant="other")))
        lines[0].close()
        assert until(lambda: opens(found, keys[1]))


def opens(guarded: Guarded, key: str) -> bool:
    try:
        with socket_of(guarded, key):
            return True
    except InvalidStatus:
        return False


def test_a_flood_of_one_tenant_keeps_no_other_from_being_served(tmp_path: Path) -> None:
    (tmp_path / "crawlguide.toml").write_text('[[tenant]]\nname = "loud"\nrequests_per_s = 20\n')
    with guarding(tmp_path) as found, ThreadPoolExecutor(4) as threads:
        keys = [found.key("ask", tenant="loud") for _ in range(4)]
        floods = [threads.submit(asked, found, key, 150, "127.0.0.2") for key in keys]
        quiet = asked(found, found.key("ask", tenant="calm"), 50, "127.0.0.3")
        loud = sum((flood.result() for flood in floods), Counter[int]())
    assert quiet == {200: 50}
    assert set(loud) == {200, 429}
    assert loud[429] > loud[200]


def test_beside_ten_times_its_rate_of_one_tenant_another_waits_no_longer(tmp_path: Path) -> None:
    """With room for a machine that is busy itself."""
    (tmp_path / "crawlguide.toml").write_text('[[tenant]]\nname = "loud"\nrequests_per_s = 2\n')
    with guarding(tmp_path) as found, ThreadPoolExecutor(1) as threads:
        loud, calm = found.key("ask", tenant="loud"), found.key("ask", tenant="calm")
        alone, refused_some, over = slowest(found, calm, 100), Event(), Event()
        flood = threads.submit(flooded, found, loud, refused_some, over)
        assert refused_some.wait(30.0)
        beside = slowest(found, calm, 100)
        over.set()
        flood.result()
    assert beside < 2 * alone + ROOM_S


ROOM_S = 0.1


def slowest(guarded: Guarded, key: str, times: int) -> float:
    """The time within which 99 of 100 asks are answered; all are."""
    took = []
    with guarded.client(key, transport=httpx.HTTPTransport(local_address="127.0.0.3")) as door:
        for _ in range(times):
            began = time.perf_counter()
            door.post("/v1/next", json=ask("c")).raise_for_status()
            took.append(time.perf_counter() - began)
    return sorted(took)[len(took) * 99 // 100 - 1]


def flooded(guarded: Guarded, key: str, refused_some: Event, over: Event) -> None:
    """Ten times the permitted rate."""
    with guarded.client(key, transport=httpx.HTTPTransport(local_address="127.0.0.2")) as door:
        while not over.wait(0.005):
            if door.post("/v1/next", json=ask("c")).status_code == 429:
                refused_some.set()


def asked(guarded: Guarded, key: str, times: int, address: str) -> Counter[int]:
    with guarded.client(key, transport=httpx.HTTPTransport(local_address=address)) as door:
        return Counter(door.post("/v1/next", json=ask("c")).status_code for _ in range(times))


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
