"""The guard stands before every door: the same callers are refused for the same reasons, wherever they come in."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.gateway.access.tokens import FORGED, GOOD, ISSUER, jwks
from tests.gateway.bus.common import until
from tests.gateway.every_door import CRAWL, GUARDED, KEPT, Kept, Library, Said

from crawlguide import AsyncGuide
from crawlguide.core.config import AccessOptions, Config, GuideOptions, ServerOptions, StoreOptions
from crawlguide.core.messages import VERSION
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.access.entrance import keys_file
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

MOST_BYTES = 20_000
SOON_S = 10.0
ME = {"mcp_version": VERSION, "crawl_id": CRAWL, "crawler_id": "c-1"}
ASK: Said = {**ME, "budget": {"max_urls": 3}}
SEEDED: Said = {**ASK, "context": {"seed_urls": ["https://a.example/", "https://b.example/"]}}
TELL: Said = {**ME, "fetches": [{"url": "https://a.example/", "status": 200}]}
BEGINNINGS = (
    b"P",
    b"POST /v1/next HTTP/1.1\r\nhost: a\r\ncontent-length: 900\r\n\r\n{",
    b"GET /ws HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x12\x04",
    b"\x16\x03\x01\x02\x00",
    b"CONNECT {}\r\nPUB crawlguide.next 900\r\n{",
    b"\x00\x00\x03\x84\x00",  # of a request to Kafka
)
every_door = pytest.mark.parametrize("kind", GUARDED, ids=lambda kind: kind.__name__)
waiting_door = pytest.mark.parametrize(
    "kind", [kind for kind in GUARDED if kind not in KEPT], ids=lambda kind: kind.__name__
)
kept_door = pytest.mark.parametrize("kind", KEPT, ids=lambda kind: kind.__name__)


@dataclass
class House:
    """A service that wants credentials, with one of its doors open."""

    kind: type[Library]
    service: Service
    where: Any
    stack: AsyncExitStack
    names: dict[str, str] = field(default_factory=dict)

    def key(self, *scopes: str, crawl: str = "*", tenant: str = "default") -> str:
        text, kept = api_keys.create(keys_file(self.service.config), grants_of(scopes, crawl), tenant)
        self.names[text] = kept.name
        return text

    def revoke(self, key: str) -> None:
        api_keys.revoke(keys_file(self.service.config), self.names[key])

    async def visitor(self, token: str = "") -> Library:
        door = self.kind(self.service, self.where, token)
        await door.enter(self.stack)
        return door


@asynccontextmanager
async def opened(kind: type[Library], folder: Path, **access: Any) -> AsyncIterator[House]:
    config = Config(
        server=ServerOptions(port=0, max_message_bytes=MOST_BYTES),
        store=StoreOptions(data=str(folder / "data")),
        access=AccessOptions(**({"requests_per_s": 0.0, "address_failures_per_s": 0.0} | access)),
        guide=GuideOptions(filters=tuple(name for name in GuideOptions().filters if name != "robots")),
    )
    api_keys.create(keys_file(config), grants_of(["admin"]), "default")
    service = Service(open_guide(config.store.data, config), config)
    async with AsyncExitStack() as stack:
        yield House(kind, service, await kind.listen(service, stack), stack)
    await service.guide.close()
    service.audit.close()


def refusal(heard: bytes) -> Said:
    found: Said = json.loads(heard)
    assert found.keys() == {"error"}, found
    error: Said = found["error"]
    assert error.keys() == {"code", "message", "field", "retry_after_s"}
    return error


def code(heard: bytes) -> str:
    return str(refusal(heard)["code"])


def urls(heard: bytes) -> list[str]:
    return sorted(one["url"] for one in json.loads(heard)["assigned_urls"])


@every_door
async def test_nobody_comes_in_without_a_credential_or_with_an_unknown_one(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        for shown in ("", "nonsense", "cg_000000000000_" + "x" * 43):
            door = await house.visitor(shown)
            assert code(await door.ask(SEEDED)) == "unauthenticated", shown
        assert await known_crawls(house) == []


@every_door
async def test_no_forged_token_comes_in(kind: type[Library], tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(json.dumps(jwks()))
    async with opened(kind, tmp_path, jwt_keys=str(tmp_path / "jwks.json"), jwt_issuer=ISSUER) as house:
        for name, forged in FORGED.items():
            heard = code(await (await house.visitor(forged)).ask(SEEDED))
            assert heard == "unauthenticated" or (name, heard) == ("very long", "too_large"), name
        assert await known_crawls(house) == []
        assert len(urls(await (await house.visitor(GOOD["RS256"])).ask(SEEDED))) == 2


@every_door
async def test_a_key_opens_the_door_until_it_is_revoked_also_amid_a_conversation(
    kind: type[Library], tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as house:
        key = house.key("ask", "tell")
        door = await house.visitor(key)
        assert urls(await door.ask(SEEDED)) == ["https://a.example/", "https://b.example/"]
        assert json.loads(await door.tell(TELL))["accepted"] == 1
        house.revoke(key)
        async with asyncio.timeout(SOON_S):
            while "error" not in json.loads(heard := await door.ask(ASK)):  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.1)
        assert code(heard) == "unauthenticated"
        assert code(await (await house.visitor(key)).ask(ASK)) == "unauthenticated"


@every_door
async def test_a_scope_opens_what_it_names_and_no_more(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        asks, tells, reads = [await house.visitor(house.key(scope)) for scope in ("ask", "tell", "read")]
        both = await house.visitor(house.key("ask", "tell"))
        assert len(urls(await both.ask({**SEEDED, "budget": {"max_urls": 1}}))) == 1
        assert code(await asks.ask(SEEDED)) == "forbidden"  # seeds are told
        assert len(urls(await asks.ask(ASK))) == 1
        assert code(await asks.tell(TELL)) == "forbidden"
        assert code(await tells.ask(ASK)) == "forbidden"
        assert json.loads(await tells.tell(TELL))["accepted"] == 1
        assert [code(await reads.ask(ASK)), code(await reads.tell(TELL))] == ["forbidden"] * 2


@every_door
async def test_a_key_for_some_crawls_is_none_for_others(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        door = await house.visitor(house.key("ask", "tell", crawl="news-*"))
        assert code(await door.ask(SEEDED)) == "forbidden"
        assert code(await door.tell(TELL)) == "forbidden"
        assert len(urls(await door.ask({**SEEDED, "crawl_id": "news-1"}))) == 2
        assert await known_crawls(house) == ["news-1"]


@every_door
async def test_another_tenant_sees_nothing(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        mine = await house.visitor(house.key("ask", "tell", tenant="mine"))
        other = await house.visitor(house.key("ask", "tell", tenant="other"))
        assert len(urls(await mine.ask({**SEEDED, "budget": {"max_urls": 1}}))) == 1
        assert urls(await other.ask(ASK)) == []
        if kind.release is not Library.release:  # else the door has no word for it
            assert json.loads(await other.release("c-1")) == {"released": 0}
        assert len(urls(await mine.ask(ASK))) == 1


@waiting_door
async def test_over_the_limit_it_is_said_when_to_come_back(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path, requests_per_s=4.0) as house:
        door = await house.visitor(house.key("ask", "tell"))
        heard = [await door.ask(ASK) for _ in range(12)]
        refused = [refusal(one) for one in heard if "error" in json.loads(one)]
        assert {one["code"] for one in refused} == {"rate_limited"}
        assert all(0 < one["retry_after_s"] <= 1 for one in refused)
        quiet = await house.visitor(house.key("ask"))
        assert "assigned_urls" in json.loads(await quiet.ask(ASK))


@waiting_door
async def test_where_the_reports_of_a_tenant_wait_long_one_more_is_refused_and_others_are_taken(
    kind: type[Library], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(kind, tmp_path) as house:
        monkeypatch.setattr(house.service.guide.tells, "is_crowded", lambda tenant: tenant == "mine")
        mine = await house.visitor(house.key("ask", "tell", tenant="mine"))
        other = await house.visitor(house.key("ask", "tell", tenant="other"))
        assert code(await mine.tell(TELL)) == "unavailable"
        assert json.loads(await other.tell(TELL))["accepted"] == 1
        assert "assigned_urls" in json.loads(await mine.ask(ASK))  # asks do not wait behind reports


@kept_door
async def test_over_the_limit_a_message_that_is_kept_comes_again_until_it_is_answered(
    kind: type[Kept], tmp_path: Path
) -> None:
    async with opened(kind, tmp_path, requests_per_s=4.0) as house:
        door = await house.visitor(house.key("ask", "tell"))
        assert isinstance(door, Kept)
        for number in range(12):
            await door.put("next", ASK, str(number))
        async with asyncio.timeout(3 * SOON_S):
            heard = [json.loads(await door.next_heard()) for _ in range(12)]
        assert all("assigned_urls" in one for one in heard)
        assert door.put_off > 0


@every_door
async def test_what_is_too_large_is_refused_and_the_next_is_answered(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        key = house.key("ask", "tell")
        seeds = [f"https://a.example/{number:050}" for number in range(MOST_BYTES // 50)]
        assert code(await (await house.visitor(key)).ask({**ASK, "context": {"seed_urls": seeds}})) == "too_large"
        assert urls(await (await house.visitor(key)).ask(ASK)) == []


@every_door
async def test_what_is_malformed_is_refused_with_its_field(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        door = await house.visitor(house.key("ask", "tell"))
        for wrong, name in (({"budget": {"max_urls": -1}}, "max_urls"), ({"crawler_id": ""}, "crawler_id")):
            heard = refusal(await door.ask({**ASK, **wrong}))
            assert (heard["code"], heard["field"].rpartition(".")[2]) == ("malformed_request", name)
        heard = refusal(await door.tell({**TELL, "fetches": [{"url": "https://a.example/", "status": 5000}]}))
        assert (heard["code"], heard["field"]) == ("malformed_request", "fetches[0].status")
        assert len(urls(await door.ask(SEEDED))) == 2


@every_door
async def test_who_is_slow_or_hangs_up_in_the_middle_disturbs_nobody(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        door = await house.visitor(house.key("ask", "tell"))
        slow = [await asyncio.open_connection("127.0.0.1", door.port) for _ in BEGINNINGS]
        for (_, writer), beginning in zip(slow, BEGINNINGS, strict=True):
            writer.write(beginning)
            await writer.drain()
        assert len(urls(await door.ask(SEEDED))) == 2
        for _, writer in slow:
            writer.transport.abort()
        assert json.loads(await door.tell(TELL))["accepted"] == 1
        assert house.service.running == 0


@waiting_door
async def test_a_server_that_ends_sends_callers_elsewhere(kind: type[Library], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        key = house.key("ask", "tell")
        house.service.draining = True
        heard = refusal(await (await house.visitor(key)).ask(SEEDED))
        assert heard["code"] == "unavailable"
        assert heard["retry_after_s"] > 0
        assert await known_crawls(house) == []


@kept_door
async def test_a_server_that_ends_leaves_what_is_kept_for_later(kind: type[Kept], tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as house:
        door = await house.visitor(house.key("ask", "tell"))
        assert isinstance(door, Kept)
        house.service.draining = True
        await door.put("next", SEEDED, "mine")
        await until(lambda: door.put_off)
        assert await known_crawls(house) == []
        house.service.draining = False
        async with asyncio.timeout(SOON_S):
            assert len(urls(await door.next_heard())) == 2


async def known_crawls(house: House) -> list[str]:
    stats = msgspec.to_builtins(await AsyncGuide(house.service.guide).stats())
    return [name.rpartition("/")[2] for name in stats["crawls"]]
