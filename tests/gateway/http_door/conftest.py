"""A crawl without pacing behind the HTTP door."""

from __future__ import annotations

import httpx
import pytest
from tests.gateway.http_door.common import (
    FREE,
    done,
)


@pytest.fixture
def seeded(client: httpx.Client, crawl: str) -> str:
    """A crawl without pacing that knows ten URLs on two hosts."""
    done(client.put(f"/v1/crawls/{crawl}", json={"policy": FREE}), 201)
    urls = [f"https://{host}.{crawl}.example/{page}" for page in range(5) for host in ("one", "two")]
    assert done(client.post(f"/v1/crawls/{crawl}/seeds", json={"urls": urls}))["discovered"] == 10
    return crawl
