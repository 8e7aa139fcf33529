"""Who decides which page is visited again: our own order, rivals, and references that know what no crawler can know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError
from crawlguide.lab.freshness.policies import crawl_value, feedstock, foresight, nutch, optimal_rates, ours, simple
from crawlguide.lab.freshness.results import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.lab.freshness.histories import Histories
    from crawlguide.lab.freshness.replay import Known, Policy

ORACLE, FORESIGHT = "oracle", "foresight"
BUILDERS: dict[str, Callable[[Known], Policy]] = {
    OURS: ours.build,
    "crawl-value": crawl_value.greedy,
    "lambda-crawl": optimal_rates.lambda_crawl,
    "binary-rates": optimal_rates.binary_rates,
    "uniform": simple.uniform,
    "proportional": simple.proportional,
    "fixed": simple.fixed,
    "nutch": nutch.build,
    "feedstock": feedstock.build,
}
REFERENCES = (ORACLE, FORESIGHT)


def chosen(names: Sequence[str]) -> list[str]:
    """What a command means, ours first."""
    every = [*BUILDERS, *REFERENCES]
    if list(names) == ["all"]:
        return every
    for name in names:
        if name not in every:
            raise ConfigError(f"--policies: expected all or some of {', '.join(every)}, got {name!r}")
    return [name for name in every if name in names]


def plays(name: str, histories: Histories) -> bool:
    """Whether a policy can be run there: true rates are known of made-up webs only."""
    return name != ORACLE or histories.rates is not None


def build(name: str, known: Known, histories: Histories) -> Policy:
    """References are shown the web itself."""
    if name == FORESIGHT:
        return foresight.build(known, histories)
    if name == ORACLE and histories.rates is not None:
        return crawl_value.oracle(known, histories.rates)
    return BUILDERS[name](known)
