"""Messages for the HTTP door, and how its answers are read."""

from __future__ import annotations

from typing import Any

import httpx

VERSION = "2025-11"
MOST_BYTES = 4 * 1024 * 1024
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
DEFINITION: dict[str, dict[str, Any]] = {
    "goal": {
        "topic": "database internals and SQL", "keywords": ["sql", "index", "transaction"],
        "reference": "free text or sample page", "anti_reference": "",
        "reward": {"relevance": 1.0, "novelty": 0.2, "change": 0.2},
    },
    "strategy": {"kind": "layered"},
    "weights": {"relevance": 1.0, "freshness": 0.5, "authority": 0.3, "cost": 0.2, "politeness": 0.1},
    "policy": {
        "robots": "obey", "user_agent": "crawlguide", "default_delay_s": 1.0, "strict": False, "max_per_host": 5,
        "domain_max_pages": 0, "max_retries": 3, "allow_domains": [], "deny_domains": [], "domain_weights": {},
        "traps": True, "risk_threshold": 0.8, "recrawl": False,
    },
    "limits": {"max_pages": 0, "max_depth": 0, "until": None},
}  # fmt: skip
TERMS = {"relevance", "freshness", "authority", "cost", "politeness", "exploration"}
UNKNOWN = "/v1/crawls/nobody-made-this"
MANY_KEYS = ", ".join(f'"k{number}": 0' for number in range(1_000))


def ask(crawl: str, max_urls: int = 1, **more: Any) -> dict[str, Any]:
    budget = {"max_urls": max_urls}
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": budget} | more


def tell(crawl: str, *fetches: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": list(fetches)} | more


def fetched(url: str, *outlinks: str) -> dict[str, Any]:
    return {"url": url, "status": 200, "outlinks": [{"url": link} for link in outlinks]}


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The one shape of an error; its inside."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    message: dict[str, Any] = answer.json()
    assert message.keys() == {"error"}
    error: dict[str, Any] = message["error"]
    assert error.keys() == {"code", "message", "field", "retry_after_s"}
    assert error["code"] == code
    assert error["message"]
    return error


def done(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    message: dict[str, Any] = answer.json()
    return message
