from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.gateway.urlfrontier.common import Frontier, Raw, guarded_frontier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.gateway.client.urlfrontier import UrlFrontierClient


@pytest.fixture(scope="session")
def frontier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Frontier]:
    """The server that all tests of this folder share; each comes as a tenant of its own."""
    with guarded_frontier(tmp_path_factory.mktemp("frontier")) as found:
        yield found
        assert found.guarded.server.stop() == 0, found.guarded.server.said()
        assert not found.guarded.server.said().partition("Traceback")[2]


@pytest.fixture
def raw(frontier: Frontier) -> Iterator[Raw]:
    """Nothing is known there yet, and all is allowed."""
    line = frontier.raw()
    yield line
    line.close()


@pytest.fixture
def client(frontier: Frontier) -> Iterator[UrlFrontierClient]:
    with frontier.client() as found:
        yield found
