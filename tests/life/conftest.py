"""A guide without pacing."""

from __future__ import annotations

import pytest

from crawlguide import Guide
from tests.guide.common import UNPACED


@pytest.fixture
def guide(guide: Guide) -> Guide:
    guide.define("default", {"policy": UNPACED})
    return guide
