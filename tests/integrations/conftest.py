"""The small web, and a guide served to whoever crawls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.gateway.conftest import Served as ServedGuide
from tests.gateway.conftest import serving
from tests.integrations.web import small_web

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.lab.serving import Served


@pytest.fixture
def web() -> Iterator[Served]:
    with small_web() as server:
        yield server


@pytest.fixture
def proxy(web: Served) -> str:
    return f"http://127.0.0.1:{web.port}"


@pytest.fixture(scope="session")
def guide_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedGuide]:
    with serving(tmp_path_factory.mktemp("guide"), robots=True) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.said()
