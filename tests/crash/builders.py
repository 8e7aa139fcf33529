"""Histories in a few words, for tests of the checker itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.crash import wire
from tests.crash.final import Crawled, Known
from tests.crash.history import Fail, Invoke, Ok, Operation, Unknown
from tests.crash.operators import MAIN

if TYPE_CHECKING:
    from tests.crash.wire import Call

NOON = 1_700_000_000.0
PAGE = "https://h1.fast1.example/p/1"
OTHER = "https://h1.fast1.example/p/2"
LEASE_S = 25.0
TOOK_S = 0.01


def operation(call: Call, at: float, answer: dict[str, Any] | None, client: str = "c1") -> Operation:
    """A call sent at an instant and answered a moment later; None: nobody knows."""
    name, found = call.operation, Operation(Invoke(call.operation, at, call.kind, call.crawl, client, call.body or {}))
    if answer is None:
        found.unknowns.append(Unknown(name, at + TOOK_S, "ReadError"))
    else:
        found.answers.append(Ok(name, at + TOOK_S, answer))
    return found


def asked(name: str, at: float, *urls: str, wait_ms: int = 0, client: str = "c1", ahead_s: float = 0.0) -> Operation:
    """An ask that was given these URLs for 25 s by a server whose clock is ahead by so much."""
    call = wire.ask(name, MAIN, client, {"max_urls": 10, "timeout_ms": 20_000}, {})
    expires = datetime.fromtimestamp(at + ahead_s + LEASE_S, UTC).isoformat(timespec="milliseconds")
    assigned = [{"url": url, "not_before_ms": wait_ms, "lease_expires": expires} for url in urls]
    return operation(call, at, {"assigned_urls": assigned, "digest": name}, client)


def told(name: str, at: float, *fetches: dict[str, Any], client: str = "c1", known: bool = True) -> Operation:
    """A report whose every fetch was accepted; or nobody knows."""
    results = [{"url": fetch["url"], "status": "ok"} for fetch in fetches]
    answer = {"accepted": len(fetches), "discovered": 0, "truncated": 0, "results": results}
    return operation(wire.tell(name, MAIN, client, list(fetches)), at, answer if known else None, client)


def fetched(url: str, *links: str, **more: Any) -> dict[str, Any]:
    return {"url": url, "status": 200, "outlinks": [{"url": link} for link in links]} | more


def released(url: str) -> dict[str, Any]:
    return {"url": url, "error": "released"}


def refused(found: Operation, status: int) -> Operation:
    found.fails.append(Fail(found.invoke.operation, found.sent + TOOK_S, status, "no"))
    return found


def crawled(states: dict[str, str], topic: str = "", **numbers: Any) -> Crawled:
    """A crawl whose numbers fit its URLs, unless told otherwise."""
    count = {state: list(states.values()).count(state) for state in ("queued", "leased", "done")}
    dropped = {"scope": list(states.values()).count("dropped")}
    known = {"state": "running", "dropped": dropped, "fetches": count["done"], "failed": 0, "relevant": 0}
    known |= count | {"discovered": len(states), "evicted": 0} | numbers
    return Crawled({"goal": {"topic": topic}}, known, [Known(url, state) for url, state in states.items()])
