"""Each test for both clients, over HTTP and over gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.clients.common import (
    Awaited,
    Kind,
)
from tests.gateway.conftest import Served

from crawlguide import Client

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=[Client, Awaited], ids=["Client", "AsyncClient"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture(params=["url", "grpc_url"], ids=["http", "grpc"])
def guide(request: pytest.FixtureRequest, served: Served, kind: Kind) -> Iterator[Any]:
    """A client of the server that all tests share."""
    with kind(getattr(served, request.param)) as opened:
        yield opened
