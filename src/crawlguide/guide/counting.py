"""What telemetry hears of asks and tells: numbers with labels of small fixed sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Ack, Fetch
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.guide.ask.pipeline import Walked

CLASSES = {first: f"{first}xx" for first in range(1, 6)}


def told(telemetry: Telemetry, fetches: Sequence[Fetch], ack: Ack) -> None:
    """What was taken of a report, by class of status, or by error where no answer came."""
    outcomes: dict[str, int] = {}
    for fetch, result in zip(fetches, ack.results, strict=True):
        if result.status == "ok":
            outcome = fetch.error or CLASSES.get((fetch.status or 0) // 100, "other")
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    for outcome, number in outcomes.items():
        telemetry.count("fetches", number, outcome=outcome)
    telemetry.count("discovered", ack.discovered)


def asked(telemetry: Telemetry, walked: Walked | None) -> None:
    """What an ask was given, and what filters kept from it."""
    telemetry.count("asks")
    if walked is not None:
        telemetry.count("assigned", len(walked.batch))
        for name, number in walked.dropped.items():
            telemetry.count("drops", number, filter=name)


def degraded(telemetry: Telemetry, words: str | None) -> None:
    """Each part that stood in for another in an answer."""
    for word in words.split("+") if words else ():
        telemetry.count("degraded", part=word)
