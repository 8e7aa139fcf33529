from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.gateway.bus.common import KafkaMock, NatsServer, fresh_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """The server that all tests share; each has a prefix of its own."""
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kafka_mock() -> Iterator[KafkaMock]:
    mock = KafkaMock()
    yield mock
    mock.stop()


@pytest.fixture
def prefix() -> str:
    return fresh_prefix()
