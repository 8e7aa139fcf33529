"""No request keeps others waiting, however much it brings: everything here is answered while /healthz is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.waiting import MOST_S, others_wait

if TYPE_CHECKING:
    import httpx
    from tests.gateway.conftest import Served

VERSION = "2025-11"
FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}


def tell(crawl: str, fetches: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": fetches} | more


def ask(crawl: str, max_urls: int = 1, **more: Any) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls}} | more


PATTERNS = {
    "one of 27 characters": [r"((\pL|\pN|\pS){10}){100}b"],
    "forty": [rf"(\pL{{{200 + number}}})" for number in range(40)],
    "a thousand": [rf".*a.*b.*{number}.*c.*d" for number in range(1_000)],
}


@pytest.mark.parametrize("texts", PATTERNS.values(), ids=PATTERNS)
@pytest.mark.parametrize("field", ["include_patterns", "exclude_patterns", "trap_patterns"])
def test_while_patterns_are_refused(
    served: Served, client: httpx.Client, crawl: str, field: str, texts: list[str]
) -> None:
    with others_wait(served) as wait:
        answer = client.put(f"/v1/crawls/{crawl}", json={"policy": {field: texts}})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["field"].startswith(f"policy.{field}")
    assert wait.longest_s < MOST_S, wait
