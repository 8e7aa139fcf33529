"""How fetches go: how long they take, what fails, and what has changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.pages import Page
from crawlguide.lab.synthetic.chance import stream, unit

if TYPE_CHECKING:
    from crawlguide.lab.synthetic.places import Place
    from crawlguide.lab.synthetic.world import World

TIMEOUT_MS = 10_000.0
TROUBLE_LASTS_S = 600.0
NO_HOST_MS = 100.0


def elapsed_ms(world: World, url: str, host: int) -> float:
    """Around the host's median, the same each time."""
    median = float(world.hosts.median_ms[host]) if host >= 0 else NO_HOST_MS
    return round(median * (0.5 + unit(world.options.seed, "elapsed", url)), 1)


def fails(world: World, row: int, at: float) -> bool:
    """Does the page fail now? Its copies fail with it; home pages never do, as all else is found from them."""
    if row < world.options.hosts:
        return False
    rate = float(world.hosts.failure_rate[world.pages.host[row]])
    return unit(world.options.seed, "fails", row, int(at // TROUBLE_LASTS_S)) < rate


def failed(world: World, url: str, place: Place) -> Page:
    how = unit(world.options.seed, "how", place.row)
    if how < 0.3:
        return Page(url, 0, error="timeout", elapsed_ms=TIMEOUT_MS)
    return Page(url, 500 if how < 0.6 else 503, elapsed_ms=elapsed_ms(world, url, place.host))


def version(world: World, row: int, at: float) -> int:
    """How often the page has changed until then: a Poisson process of its rate."""
    rate, count = float(world.pages.change_rate[row]), 0
    if not rate:
        return 0
    chance = stream(world.options.seed, "changes", row)
    when = chance.expovariate(rate)
    while when <= at:
        count, when = count + 1, when + chance.expovariate(rate)
    return count
