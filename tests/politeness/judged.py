"""What the hosts saw: how far apart requests came, and how much of what the delays permit was used."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.politeness.crawlers import Start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.politeness.served import Seen
    from tests.politeness.web import Host

    Visit = tuple[float, str]


LATE_S, ANSWERED_S = 0.02, 0.03  # a crawler that started later, or got its answer later, is not the guide's fault
AT_ONCE = Start(0.0, 0.0)  # what the guide fetches itself


@dataclass(frozen=True)
class Verdict:
    """Gaps that were shorter than the delay, the worst by `short_s`; 0: none was.

    `unexplained_s`: the same after what crawlers admit, that they began late or got their answer late.
    """

    requests: int
    gaps: int
    late: int  # gaps in which a crawler was late; they count for `unexplained_s` alone
    short_s: float
    unexplained_s: float
    utilisation: float  # of all hosts together
    least: float  # of the host that was used least

    def __str__(self) -> str:
        return (
            f"{self.requests} requests, {self.gaps} gaps, worst {1_000 * self.short_s:.1f} ms too short"
            " (50 are allowed where it is not strict)"
            f" ({self.late} gaps with a late crawler: {1_000 * self.unexplained_s:.1f} ms more than it was late),"
            f" utilisation {self.utilisation:.1%} (least used host {self.least:.1%})"
        )


def judged(hosts: Sequence[Host], seen: Sequence[Seen], starts: Mapping[str, Start], ends: float) -> Verdict:
    visits = defaultdict(list)
    for address, path, at in seen:
        if at <= ends:
            visits[address].append((at, path))
    gaps = [gap for host in hosts for gap in _gaps(host, sorted(visits[host.address]), starts)]
    used = [_used(host, visits[host.address], ends) for host in hosts]
    return Verdict(
        requests=len(seen),
        gaps=len(gaps),
        late=sum(late for _, _, late in gaps),
        short_s=max([0.0, *(short for short, _, late in gaps if not late)]),
        unexplained_s=max([0.0, *(rest for _, rest, _ in gaps)]),
        utilisation=sum(pages for pages, _ in used) / sum(most for _, most in used),
        least=min(pages / most for pages, most in used),
    )


def _gaps(host: Host, mine: Sequence[Visit], starts: Mapping[str, Start]) -> Iterator[tuple[float, float, bool]]:
    """How much too short each gap was, what of that no lateness explains, and whether a crawler was late.

    Only the first of two fetches can make a gap shorter by being late.
    """
    for (before, path), (after, _) in pairwise(mine):
        start, short = starts.get(host.url + path, AT_ONCE), host.delay_s - (after - before)
        late = start.late_s > LATE_S or start.answered_s > ANSWERED_S
        yield short, short - start.late_s - start.answered_s, late


def _used(host: Host, mine: Sequence[Visit], ends: float) -> tuple[int, int]:
    """Pages that were fetched, and how many the delay permitted since the first of them."""
    pages = sorted(at for at, path in mine if path != "/robots.txt")
    return len(pages), int((ends - pages[0]) / host.delay_s) + 1 if pages else 1
