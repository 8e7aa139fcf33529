from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide import lab
from tests.crawler.crawling import Place

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def place() -> Iterator[Place]:
    """A small web on loopback, which only a proxy leads to."""
    web = lab.synthetic.make(1, pages=300, hosts=6, topics=4, slow=0, failing=0, traps=0)
    with lab.served(web, slowest_s=0) as served:
        yield Place(served, web.tasks()[0])
