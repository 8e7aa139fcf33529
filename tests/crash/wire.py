"""A client's side of the wire: send a call until it is answered, and note everything that happens on the way."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

from tests.crash.history import Fail, Invoke, Ok, Unknown

if TYPE_CHECKING:
    from tests.crash.history import History

VERSION = "2025-11"
AGAIN_AFTER_S = 0.05
PATIENCE_S = 200.0  # through all restarts, on a busy machine
KEPT = ("url", "not_before_ms", "lease_expires")


class Stuck(Exception):
    """The server did not answer for so long that waiting makes no sense."""


@dataclass(frozen=True)
class Call:
    """One request; sent again it is the same request, word by word."""

    operation: str
    kind: str
    crawl: str
    method: str
    path: str
    body: dict[str, Any] | None = None


def ask(operation: str, crawl: str, crawler: str, budget: dict[str, int], context: dict[str, Any]) -> Call:
    body = {"mcp_version": VERSION, "crawler_id": crawler, "crawl_id": crawl, "request_id": operation}
    return Call(operation, "ask", crawl, "POST", "/v1/next", body | {"budget": budget, "context": context})


def tell(operation: str, crawl: str, crawler: str, fetches: list[dict[str, Any]]) -> Call:
    body = {"mcp_version": VERSION, "crawler_id": crawler, "crawl_id": crawl, "report_id": operation}
    return Call(operation, "tell", crawl, "POST", "/v1/report", body | {"fetches": fetches})


def seed(operation: str, crawl: str, urls: list[str]) -> Call:
    return Call(operation, "seed", crawl, "POST", f"/v1/crawls/{crawl}/seeds", {"urls": urls})


def define(operation: str, crawl: str, definition: dict[str, Any]) -> Call:
    return Call(operation, "define", crawl, "PUT", f"/v1/crawls/{crawl}", definition)


def pause(operation: str, crawl: str) -> Call:
    return Call(operation, "pause", crawl, "POST", f"/v1/crawls/{crawl}/pause")


def resume(operation: str, crawl: str) -> Call:
    return Call(operation, "resume", crawl, "POST", f"/v1/crawls/{crawl}/resume")


def delete(operation: str, crawl: str) -> Call:
    return Call(operation, "delete", crawl, "DELETE", f"/v1/crawls/{crawl}")


@dataclass
class Wire:
    """One client's connection and its pen."""

    http: httpx.AsyncClient
    history: History
    client: str
    calls: int = 0

    def name(self) -> str:
        """A new id for a call; it also is the id that the server sees."""
        self.calls += 1
        return f"{self.client}-{self.calls}"

    async def send(self, call: Call) -> dict[str, Any]:
        """The answer, however many attempts it takes; empty where the server refuses."""
        began = self.history.now()
        self._invoke(call)
        attempts = 0
        while self.history.now() - began < PATIENCE_S:
            attempts += 1
            response = await self._attempt(call)
            if response is not None:
                return self._answered(call, response, attempts)
            await asyncio.sleep(AGAIN_AFTER_S)
        raise Stuck(f"{call.operation}: no answer to {call.kind} in {PATIENCE_S:.0f} s")

    def _invoke(self, call: Call) -> None:
        body = call.body or {}
        event = Invoke(call.operation, self.history.now(), call.kind, call.crawl, self.client, body)
        self.history.write(event)

    async def _attempt(self, call: Call) -> httpx.Response | None:
        content = b"" if call.body is None else msgspec.json.encode(call.body)
        try:
            response = await self.http.request(call.method, call.path, content=content)
        except httpx.TransportError as problem:
            self._unknown(call, type(problem).__name__)
            return None
        if response.status_code >= 500:
            self._unknown(call, f"{response.status_code} {response.text}")
            return None
        return response

    def _unknown(self, call: Call, why: str) -> None:
        self.history.write(Unknown(call.operation, self.history.now(), why))

    def _answered(self, call: Call, response: httpx.Response, attempts: int) -> dict[str, Any]:
        at, status = self.history.now(), response.status_code
        already = call.kind == "delete" and status == 404 and attempts > 1  # an earlier attempt had got through
        if status >= 300 and not already:
            self.history.write(Fail(call.operation, at, status, response.text))
            return {}
        answer: dict[str, Any] = response.json()
        self.history.write(Ok(call.operation, at, brief(call, answer)))
        return answer


def brief(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    """Of an ask's answer only what is checked, and a digest that shows whether two answers are the same."""
    if call.kind != "ask":
        return answer
    assigned = [{name: given[name] for name in KEPT} for given in answer["assigned_urls"]]
    whole = msgspec.json.encode(answer, order="deterministic")
    return {"assigned_urls": assigned, "digest": hashlib.blake2b(whole, digest_size=8).hexdigest()}
