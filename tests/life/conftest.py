"""A guide without pacing, and a clock we move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.life.common import UNPACED

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def guide(clock: ManualClock) -> Iterator[Guide]:
    with Guide.open(":memory:", clock=clock) as opened:
        opened.define("default", {"policy": UNPACED})
        yield opened
