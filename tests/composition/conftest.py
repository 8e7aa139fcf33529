"""Guides whose crawls may name the plugins of these tests, and crawls without rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.core.config import Config, CrawlsOptions
from crawlguide.testing import ManualClock
from tests import tally
from tests.composition import models

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POLICY = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}
PLUGINS = CrawlsOptions(plugins=(models.PLUG, tally.PLUG))
CONFIG = Config(crawls=PLUGINS)
A = "https://a.org/"


def model(name: str = "model", number: int = 0, **more: Any) -> dict[str, Any]:
    return {"kind": models.PLUG, "name": name, "number": number, **more}


def defined(guide: Guide, strategy: dict[str, Any], *paths: str, **more: Any) -> None:
    guide.define("default", {"strategy": strategy, "policy": POLICY, **more})
    guide.seed("default", [A + path for path in paths])


def paths(answer: dict[str, Any]) -> list[str]:
    return [one["url"].removeprefix(A) for one in answer["assigned_urls"]]


def degraded(answer: dict[str, Any]) -> tuple[str | None, str | None]:
    return answer["metadata"]["degraded"], answer["metadata"].get("degraded_why")


def opened(path: Path | str = ":memory:", clock: ManualClock | None = None, config: Config = CONFIG) -> Guide:
    return Guide.open(path, clock=clock or ManualClock(), seed=1, config=config)


@pytest.fixture(autouse=True)
def _well_behaved() -> Iterator[None]:
    models.SEEN.clear()
    models.FAULTS.clear()
    yield
    models.FAULTS.clear()


@pytest.fixture
def guide(clock: ManualClock) -> Iterator[Guide]:
    with opened(clock=clock) as found:
        yield found
