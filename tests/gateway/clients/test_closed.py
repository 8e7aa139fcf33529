"""A client that was closed says so."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.gateway.clients.answering import (
    Answering,
    Told,
)
from tests.gateway.clients.common import (
    GONE_WITHIN_S,
)
from tests.gateway.conftest import Served

from crawlguide import AsyncClient, Client
from crawlguide.core.errors import UnavailableError


def test_a_closed_client_says_so(served: Served) -> None:
    with Client(served.url) as guide:
        found = guide.urls("default")
    guide.close()
    with pytest.raises(RuntimeError, match="this client is closed"):
        guide.stats()
    with pytest.raises(RuntimeError, match="this client is closed"):
        next(found)


async def test_a_closed_client_says_so_in_an_asyncio_program(served: Served) -> None:
    async with AsyncClient(served.url) as guide:
        await guide.stats()
    await guide.close()
    with pytest.raises(RuntimeError, match="this client is closed"):
        await guide.stats()


def test_a_client_that_waits_is_ended_by_closing_it() -> None:
    with Answering(Told(503)) as server, ThreadPoolExecutor(1) as pool, Client(server.url) as guide:
        asked = pool.submit(guide.stats)
        while not server.heard:
            time.sleep(0.01)
        guide.close()
        with pytest.raises((RuntimeError, UnavailableError)):
            asked.result(GONE_WITHIN_S)
