"""What tests of the crawler have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide import lab
from tests.crawler.crawling import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.lab.synthetic import SyntheticWeb


@pytest.fixture(scope="session")
def web() -> SyntheticWeb:
    return lab.synthetic.make(1, pages=300, hosts=6, topics=4, slow=0, failing=0, traps=0)


@pytest.fixture
def place(web: SyntheticWeb) -> Iterator[Place]:
    with lab.served(web, slowest_s=0) as served:
        yield Place(served, web.tasks()[0])
