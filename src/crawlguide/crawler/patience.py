"""How long to wait for an answer: a few times what is usual for the host, so that a dead one is given up soon."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

HOSTS, TIMES = 10_000, 50  # remembered: hosts, and times of each
ENOUGH, ENOUGH_OF_ALL = 8, 50  # times from which a P95 says something
SPREAD = 4.0  # times the P95
EVERY = 8  # so many new times before a P95 is worked out again


@dataclass
class Times:
    """The last times of a host, and what follows from them."""

    enough: int
    seconds: deque[float]
    patience_s: float | None = None
    added: int = 0

    def add(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.added += 1
        if len(self.seconds) >= self.enough and (self.patience_s is None or self.added % EVERY == 0):
            self.patience_s = SPREAD * sorted(self.seconds)[int(0.95 * len(self.seconds))]


@dataclass
class Patience:
    """Learns the times of hosts. One that did not answer in time counts with the time it was given, times `SPREAD`."""

    least_s: float
    most_s: float
    _hosts: OrderedDict[str, Times] = field(default_factory=OrderedDict)
    _all: Times = field(default_factory=lambda: Times(ENOUGH_OF_ALL, deque(maxlen=4 * TIMES)))

    def of(self, host: str) -> float:
        """P95 of the host's recent times, else of all, a few times over and within bounds."""
        known = self._hosts.get(host)
        wanted = (known.patience_s if known else None) or self._all.patience_s or self.most_s
        return min(self.most_s, max(self.least_s, wanted))

    def add(self, host: str, seconds: float) -> None:
        """What it took until an answer began."""
        times = self._hosts.pop(host, None) or Times(ENOUGH, deque(maxlen=TIMES))
        self._hosts[host] = times
        if len(self._hosts) > HOSTS:
            self._hosts.popitem(last=False)
        times.add(seconds)
        self._all.add(seconds)
