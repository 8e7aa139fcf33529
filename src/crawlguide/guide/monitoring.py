"""What operators and people see of asks and tells: numbers for telemetry, the newest answers and the harvest."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.messages import Assigned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Ack, Fetch
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.guide.ask.pipeline import Walked

ANSWERS_SHOWN, BEST_SHOWN, HARVEST_POINTS = 50, 3, 500
CLASSES = {first: f"{first}xx" for first in range(1, 6)}


def count_tell(telemetry: Telemetry, tenant: str, fetches: Sequence[Fetch], ack: Ack) -> None:
    """What was taken of a report, by class of status, or by error where no answer came."""
    outcomes: dict[str, int] = {}
    for fetch, result in zip(fetches, ack.results, strict=True):
        if result.status == "ok":
            outcome = fetch.error or CLASSES.get((fetch.status or 0) // 100, "other")
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    for outcome, number in outcomes.items():
        telemetry.count("fetches", number, tenant=tenant, outcome=outcome)
    telemetry.count("discovered", ack.discovered, tenant=tenant)


def count_ask(telemetry: Telemetry, tenant: str, walked: Walked | None, degraded: str | None) -> None:
    """What an ask was given, what filters kept from it, and each part that stood in for another."""
    telemetry.count("asks", tenant=tenant)
    if walked is not None:
        telemetry.count("assigned", len(walked.batch), tenant=tenant)
        for name, number in walked.dropped.items():
            telemetry.count("drops", number, tenant=tenant, filter=name)
    for word in degraded.split("+") if degraded else ():
        telemetry.count("degraded", tenant=tenant, part=word)


class Answered(msgspec.Struct, frozen=True, gc=False):
    """An answer that gave something: when, to whom, how many URLs, and the best of them."""

    at: float
    crawler_id: str
    given: int
    best: list[Assigned]


class Recent:
    """What people look at: a crawl's newest answers, and its harvest as (fetches, relevant) since this guide opened.

    Both are bounded: of a harvest that is full every second point goes, and the next ones lie as far apart as the rest.
    """

    def __init__(self) -> None:
        self.answers: deque[Answered] = deque(maxlen=ANSWERS_SHOWN)
        self.harvest: list[tuple[int, int]] = []
        self._every, self._unseen = 1, 0

    def due(self, fetches: int) -> bool:
        """Whether so many more fetches make a point of the harvest due."""
        self._unseen += fetches
        return self._unseen >= self._every

    def sample(self, fetches: int, relevant: int) -> None:
        self._unseen = 0
        self.harvest.append((fetches, relevant))
        if len(self.harvest) >= HARVEST_POINTS:
            self.harvest = self.harvest[1::2]
            self._every = max(1, (fetches - self.harvest[0][0]) // len(self.harvest))
