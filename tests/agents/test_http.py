"""Streamable HTTP behind the guard of every door: credentials, scopes, tenants, rates, sizes; and its end."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from mcp.shared.exceptions import MCPError

from crawlguide import AsyncClient, AsyncGuide
from crawlguide.agents import http as agents_http
from crawlguide.agents.http import MOST_BYTES
from crawlguide.agents.serve import AgentsOptions, answering
from crawlguide.core.config import AccessOptions, ServerOptions
from crawlguide.core.errors import ConfigError
from crawlguide.gateway import serve
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from tests.agents.common import (
    ERAS,
    SLOW_S,
    WITHIN_S,
    answer,
    cancelled_in_the_middle,
    configured,
    over_http,
    process_over_http,
    refusal,
    search,
    searching,
    until,
)
from tests.gateway.conftest import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp import Client

    from tests.crawler.crawling import Place

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
WHAT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
SEEDS = ["https://a.example/", "https://b.example/"]


def key(data: Path, *scopes: str, crawl: str = "*", tenant: str = "default") -> str:
    text, _ = api_keys.create(data / "access" / api_keys.FILE, grants_of(scopes, crawl), tenant)
    return text


@asynccontextmanager
async def guarded(
    data: Path, place: Place | None = None, delay_s: float = 0.0, **access: Any
) -> AsyncIterator[tuple[int, str]]:
    """A server with credentials: its port, and the key of somebody who may do everything."""
    everything = key(data, "admin")
    options = AgentsOptions(searching(place, delay_s))
    async with answering(configured(data, access=AccessOptions(**access)), options) as (_, port):
        yield port, everything


def post(port: int, body: bytes | Any = None, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(HELLO if body is None else body).encode()
    return httpx.post(
        f"http://127.0.0.1:{port}/mcp", content=content, headers=WHAT | headers, timeout=30, trust_env=False
    )


async def posted(port: int, body: bytes | Any = None, **headers: str) -> httpx.Response:
    return await asyncio.to_thread(lambda: post(port, body, **headers))


def code(response: httpx.Response) -> tuple[int, str | int]:
    return response.status_code, response.json()["error"]["code"]


async def crawls_of(client: Client) -> list[str]:
    return [one["crawl_id"] for one in answer(await client.call_tool("list_crawls", {}))["crawls"]]


@pytest.mark.parametrize("era", ERAS)
async def test_who_shows_a_credential_does_what_it_may_with_the_crawls_of_its_tenant(tmp_path: Path, era: str) -> None:
    async with guarded(tmp_path) as (port, mine), AsyncExitStack() as stack:
        client = await stack.enter_async_context(over_http(port, mine, era))
        answer(await client.call_tool("create_crawl", {"crawl_id": "books", "topic": "books", "seeds": SEEDS}))
        reader = await stack.enter_async_context(over_http(port, key(tmp_path, "read"), era))
        assert await crawls_of(reader) == ["books"]
        for tool, arguments in (
            ("next_urls", {}), ("pause_crawl", {}), ("add_seeds", {"urls": SEEDS}), ("report_fetches", {"fetches": []}),
        ):  # fmt: skip
            wrong = refusal(await reader.call_tool(tool, {"crawl_id": "books"} | arguments))
            assert wrong["code"] == "forbidden", (tool, wrong)
        asked = answer(await client.call_tool("next_urls", {"crawl_id": "books"}))
        assert len(asked["assigned_urls"]) == 2
        stranger = await stack.enter_async_context(over_http(port, key(tmp_path, "admin", tenant="others"), era))
        assert await crawls_of(stranger) == []
        assert refusal(await stranger.call_tool("crawl_stats", {"crawl_id": "books"}))["code"] == "not_found"
        with pytest.raises(MCPError, match="no crawl named"):
            await stranger.read_resource("crawl://books/report")
        audit = [json.loads(line) for line in (tmp_path / "access" / "audit.jsonl").read_text().splitlines()]
        assert any("/v1/crawls/{crawl_id}" in line["what"] and line["status"] == 200 for line in audit)


async def test_who_may_not_create_a_crawl_is_told_which_scope_that_takes(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (port, _), over_http(port, key(tmp_path, "ask", "tell")) as crawler:
        wrong = refusal(await crawler.call_tool("create_crawl", {"crawl_id": "books", "topic": "books"}))
        assert wrong["code"] == "forbidden"
        assert "has not the scope admin" in wrong["message"]


async def test_nobody_comes_in_without_a_credential_or_into_the_session_of_another(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (port, mine):
        assert code(await posted(port)) == (401, "unauthenticated")
        assert code(await posted(port, authorization="Bearer cg_000000000000_nonsense")) == (401, "unauthenticated")
        mine_shown, other = {"authorization": f"Bearer {mine}"}, {"authorization": f"Bearer {key(tmp_path, 'admin')}"}
        begun = await posted(port, **mine_shown)
        assert begun.status_code == 200
        session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await posted(port, listing, **session, **other)).status_code == 404
        assert (await posted(port, listing, **session, **mine_shown)).status_code == 200


async def test_no_credential_and_no_tenant_takes_all_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_http, "MOST_SESSIONS", 7)
    monkeypatch.setattr(agents_http, "MOST_OF_TENANT", 5)
    async with guarded(tmp_path, max_sockets=3) as (port, mine):
        first, second, other = (
            {"authorization": f"Bearer {text}"}
            for text in (mine, key(tmp_path, "ask"), key(tmp_path, "ask", tenant="b"))
        )
        begun = [await posted(port, **first) for _ in range(4)]
        assert [one.status_code for one in begun] == [200, 200, 200, 429]
        error = begun[-1].json()["error"]
        assert error["message"].startswith("your credential: expected at most 3 sessions at once")
        assert (error["code"], error["retry_after_s"]) == ("rate_limited", 10.0)
        assert begun[-1].headers["retry-after"] == "10"
        assert [(await posted(port, **second)).status_code for _ in range(3)] == [200, 200, 429]
        assert [(await posted(port, **other)).status_code for _ in range(2)] == [200, 200]
        assert code(await posted(port, **other)) == (503, "unavailable")
        session = {"mcp-session-id": begun[0].headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        ended = await asyncio.to_thread(
            httpx.delete, f"http://127.0.0.1:{port}/mcp", headers=WHAT | first | session, trust_env=False
        )
        assert ended.status_code == 200
        assert [(await posted(port, **first)).status_code for _ in range(2)] == [200, 429]


async def test_searching_is_for_those_who_may_ask_and_tell(tmp_path: Path, place: Place) -> None:
    async with guarded(tmp_path, place) as (port, mine), AsyncExitStack() as stack:
        before = len(place.served.log)
        reader = await stack.enter_async_context(over_http(port, key(tmp_path, "read")))
        for more in ({}, {"crawl_id": "books"}):
            assert refusal(await reader.call_tool("find_pages", search(place, **more)))["code"] == "forbidden"
        assert len(place.served.log) == before
        client = await stack.enter_async_context(over_http(port, mine))
        found = answer(await client.call_tool("find_pages", search(place, max_pages=10, crawl_id="books")))
        assert found["fetched"] == 10
        worker = await stack.enter_async_context(over_http(port, key(tmp_path, "ask", "tell", "read", crawl="books")))
        on = answer(await worker.call_tool("find_pages", search(place, max_pages=5, crawl_id="books")))
        assert on["fetched"] == 5
        refused = refusal(await worker.call_tool("find_pages", search(place, max_pages=5, crawl_id="mine")))
        assert refused["code"] == "forbidden"


async def test_too_many_requests_are_refused_and_told_when_to_come_back(tmp_path: Path) -> None:
    async with guarded(tmp_path, requests_per_s=2.0) as (port, mine):
        answers = [await posted(port, authorization=f"Bearer {mine}") for _ in range(12)]
    late = [one for one in answers if one.status_code == 429]
    assert late
    assert late[0].json()["error"]["code"] == "rate_limited"
    assert int(late[0].headers["retry-after"]) >= 1


async def test_what_is_oversized_malformed_or_cut_is_refused_and_the_server_lives(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (port, mine):
        shown = {"authorization": f"Bearer {mine}"}
        long = HELLO | {"params": {"protocolVersion": "x" * MOST_BYTES}}
        assert code(await posted(port, long, **shown)) == (413, "too_large")
        assert code(await posted(port, b"{", **shown)) == (400, -32700)  # in the words of their protocol
        assert code(await posted(port, b'{"jsonrpc":"2.0","id":1,"id":2}', **shown)) == (400, "malformed_request")
        assert code(await posted(port, b"[" * 5_000, **shown)) == (400, "malformed_request")
        assert (await posted(port, {"jsonrpc": "2.0", "id": 1}, **shown)).status_code == 400
        unread = await asyncio.to_thread(cut_in_the_middle, port, mine)
        assert unread == b""
        assert (await posted(port, **shown)).status_code == 200
        other = await asyncio.to_thread(httpx.get, f"http://127.0.0.1:{port}/v1/stats", headers=shown, trust_env=False)
        assert code(other) == (404, "not_found")
        alive = await asyncio.to_thread(httpx.get, f"http://127.0.0.1:{port}/healthz", trust_env=False)
        assert alive.json() == {"status": "alive"}


def cut_in_the_middle(port: int, token: str) -> bytes:
    """A head that declares more than comes; what was answered to it."""
    with socket.create_connection(("127.0.0.1", port), 30) as line:
        head = f"POST /mcp HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-length: 900\r\n\r\n"
        line.sendall(head.encode() + b'{"jsonrpc"')
    return b""


async def test_pages_of_other_sites_get_nothing(tmp_path: Path) -> None:
    options = AgentsOptions(searching())
    async with answering(configured(), options) as (_, port):
        assert code(await posted(port, origin="https://evil.example")) == (403, "forbidden")
        assert code(await posted(port, host="evil.example")) == (403, "forbidden")
        assert (await posted(port)).status_code == 200


def test_nobody_listens_beyond_this_machine_without_credentials() -> None:
    for insecure, refused in ((False, True), (True, False)):
        config = configured(server=ServerOptions(host="0.0.0.0", port=0, insecure=insecure))
        if refused:
            with pytest.raises(ConfigError, match="no credential is configured"):
                serve.check_listening(config)
        else:
            serve.check_listening(config)


@pytest.mark.parametrize("era", ERAS)
async def test_a_search_is_cancelled_over_http_and_by_a_connection_that_is_gone(
    tmp_path: Path, place: Place, era: str
) -> None:
    async with guarded(tmp_path, place, SLOW_S) as (port, mine):
        async with over_http(port, mine, era) as client:
            long = search(place, max_pages=500, max_seconds=600)
            await cancelled_in_the_middle(client, long | {"crawl_id": "cut"})
            await until(lambda: is_free(client, "cut"))
        lost = await asyncio.to_thread(lose_the_connection, port, mine, long | {"crawl_id": "lost"}, era)
        assert b"event-stream" in lost
        async with over_http(port, mine, era) as client:
            await until(lambda: is_free(client, "lost"))
            before = answer(await client.call_tool("crawl_stats", {"crawl_id": "lost"}))["fetches"]
            await asyncio.sleep(3 * SLOW_S)
            assert answer(await client.call_tool("crawl_stats", {"crawl_id": "lost"}))["fetches"] == before


async def is_free(client: Client, crawl: str) -> bool:
    numbers = answer(await client.call_tool("crawl_stats", {"crawl_id": crawl}))
    return bool(numbers["fetches"]) and not numbers["leased"]


def lose_the_connection(port: int, token: str, arguments: dict[str, Any], era: str) -> bytes:
    """Call, read until progress comes, and go without a word."""
    shown, meta = {"authorization": f"Bearer {token}"}, dict[str, Any]({"progressToken": 1})
    params: dict[str, Any] = {"name": "find_pages", "arguments": arguments, "_meta": meta}
    if era == "legacy":
        session = post(port, **shown).headers["mcp-session-id"]
        shown |= {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"}
    else:
        prefix = "io.modelcontextprotocol/"
        meta |= {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
        shown |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "find_pages"}
    call = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
    head = "".join(f"{name}: {text}\r\n" for name, text in (WHAT | shown | {"content-length": str(len(call))}).items())
    heard = b""
    with socket.create_connection(("127.0.0.1", port), WITHIN_S) as line:
        line.sendall(f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n{head}\r\n".encode() + call)
        while b"pages fetched" not in heard:
            piece = line.recv(65_536)
            assert piece, heard
            heard += piece
    return heard


async def test_a_served_guide_is_shown_the_credential_of_each_caller_and_none_of_the_servers(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guide has the keys; this server passes on what callers show, whatever token lies around where it runs."""
    data = tmp_path / "data"
    mine = key(data, "admin")
    monkeypatch.setenv("CRAWLGUIDE_TOKEN", mine)
    with serving(tmp_path, data) as guide:
        options = AgentsOptions(searching(place), guide.url)
        async with answering(configured(), options) as (_, port):
            async with over_http(port, mine) as client:
                found = answer(await client.call_tool("find_pages", search(place, max_pages=10, crawl_id="far")))
                assert found["fetched"] == 10
            async with over_http(port) as nobody:
                assert refusal(await nobody.call_tool("list_crawls", {}))["code"] == "unauthenticated"
            async with over_http(port, key(data, "read")) as reader:
                assert await crawls_of(reader) == ["far"]
                assert refusal(await reader.call_tool("pause_crawl", {"crawl_id": "far"}))["code"] == "forbidden"
        async with AsyncClient(guide.url, token=mine) as direct:
            numbers = (await direct.stats("far"))["crawls"]["far"]
        assert (numbers["leased"], numbers["fetches"] >= 10) == (0, True)


async def test_a_process_that_is_told_to_stop_ends_searches_with_what_they_have(tmp_path: Path, place: Place) -> None:
    begun = asyncio.Event()

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        if progress:
            begun.set()

    options = ("--proxy", place.proxy, "--delay", str(SLOW_S), "--data", str(tmp_path / "data"))
    with process_over_http(tmp_path, *options) as agents:
        async with over_http(agents.port) as client:
            await client.list_tools()  # by which the client checks what it gets; a server that stops is not asked
            long = search(place, max_pages=500, max_seconds=600, crawl_id="cut")
            call = asyncio.create_task(client.call_tool("find_pages", long, progress_callback=progressed))
            async with asyncio.timeout(WITHIN_S):
                await begun.wait()
            agents.process.send_signal(signal.SIGTERM)
            found = answer(await call)
            assert found["ended"] == "the server is being stopped"
            assert found["fetched"] > 0
        assert await asyncio.to_thread(agents.process.wait, WITHIN_S) == 0
        assert "Traceback" not in agents.stderr.read_text()
    async with AsyncGuide.open(tmp_path / "data") as guide:
        numbers = (await guide.stats("cut"))["crawls"]["cut"]
    assert (numbers["leased"], numbers["fetches"] >= found["fetched"]) == (0, True)
