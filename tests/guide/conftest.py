"""A guide that hurries."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from tests.guide.common import UNPACED


@pytest.fixture
def unpaced(guide: Guide) -> Guide:
    """A guide whose default crawl has no delays and no bound per host."""
    guide.define("default", {"policy": UNPACED})
    return guide
