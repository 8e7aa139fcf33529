"""When a host may be asked again, by what was started here.

A guide spaces what it assigns, but Scrapy may start late: then the next URL of that host starts as much later. What the
guide does not know of, such as a POST, keeps the usual delay to whatever else goes to its host.

A request arrives somewhat later than it was handed out: at the latest when its answer comes. Until then it is taken to
arrive after a quarter of the delay, so that two requests are as far apart where they arrive as where they left.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_HOSTS = 100_000
ON_ITS_WAY = 0.25  # of the delay


class Start(NamedTuple):
    slot: float  # when it was to start
    at: float  # when it arrives, as far as is known
    assigned: bool
    gap_s: float  # the smallest between two slots of this host


class Pace:
    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._last: dict[str, Start] = {}

    def earliest(self, host: str, slot: float | None) -> float:
        """When this URL may start; `slot` is when the guide lets it, None: the guide does not know it."""
        last = self._last.get(host)
        if last is None:
            return slot or 0.0
        if slot is None or not last.assigned:
            return max(slot or 0.0, last.at + self._delay_s)
        return max(slot, last.at + min(last.gap_s, slot - last.slot))

    def started(self, host: str, slot: float | None, now: float) -> None:
        last = self._last.pop(host, None)
        gap_s = float("inf") if last is None else last.gap_s
        if last is not None and last.assigned and slot is not None and slot > last.slot:
            gap_s = min(gap_s, slot - last.slot)
        at = now + ON_ITS_WAY * min(gap_s, self._delay_s)
        self._last[host] = Start(now if slot is None else slot, at, slot is not None, gap_s)
        if len(self._last) > MOST_HOSTS:
            del self._last[next(iter(self._last))]  # the one that was asked longest ago

    def answered(self, host: str, slot: float, now: float) -> None:
        """By now it has arrived, if it was the last one."""
        last = self._last.get(host)
        if last is not None and last.slot == slot and now < last.at:
            self._last[host] = last._replace(at=now)
