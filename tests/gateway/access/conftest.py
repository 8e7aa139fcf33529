from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.gateway.access.common import NO_LIMITS, Guarded, guarding

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The server that all tests of this folder share; each has keys and crawls of its own."""
    with guarding(tmp_path_factory.mktemp("guarded"), **NO_LIMITS) as found:
        yield found
        assert found.server.stop() == 0, found.server.said()
        assert "Traceback" not in found.server.said()
