"""A filter of an operator's own that fails. What comes before that is for a test to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from tests.gateway.bus.common import config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from crawlguide.core.config import BusOptions, Config
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch

before: list[Callable[[], Awaitable[object]]] = []


def failing(bus: BusOptions, first: Callable[[], Awaitable[object]]) -> Config:
    """A guide with it: it does `first`, and then fails on every ask that has something to give."""
    before[:] = [first]
    settings = config(bus)
    filters = (*settings.guide.filters, __name__)
    return msgspec.structs.replace(settings, guide=msgspec.structs.replace(settings.guide, filters=filters))


@dataclass(frozen=True)
class Failing:
    name: str = "failing"
    refusal: str = "pass"

    async def prepared(self, batch: Batch, ask: Ask) -> Failing:
        await before[0]()
        return self

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        raise ZeroDivisionError

    def why(self, batch: Batch, ask: Ask) -> str:
        raise ZeroDivisionError


def build(_: Definition) -> Failing:
    return Failing()
