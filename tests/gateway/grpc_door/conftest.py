from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.gateway.grpc_door.common import Opened, Raw, guarded_door

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """The server that all tests of this folder share; each comes as a tenant of its own."""
    with guarded_door(tmp_path_factory.mktemp("grpc")) as found:
        yield found
        assert found.guarded.server.stop() == 0, found.guarded.server.said()
        assert "Traceback" not in found.guarded.server.said()


@pytest.fixture
def raw(door: Opened) -> Iterator[Raw]:
    """Nothing is known there yet, and all is allowed."""
    line = door.raw()
    yield line
    line.close()
