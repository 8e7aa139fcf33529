from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.gateway.socket_door.common import PACKED, TEXT

if TYPE_CHECKING:
    from _pytest.fixtures import SubRequest


@pytest.fixture(params=[TEXT, PACKED])
def codec(request: SubRequest) -> str:
    """What a socket and the server agree on: messages are the same."""
    name: str = request.param
    return name
