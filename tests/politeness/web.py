"""Fifty hosts on loopback, each with a delay of its own: what they serve, and what their robots.txt asks for."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

HOSTS = 50
SHORTEST_S, LONGEST_S = 0.25, 4.0
LINKS = 4
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty", "knoll", "larch")


@dataclass(frozen=True)
class Host:
    """One address of this machine; its robots.txt asks for `delay_s`."""

    address: str
    port: int
    delay_s: float

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"


def hosts(port: int, count: int = HOSTS) -> list[Host]:
    """Delays from a quarter of a second to four, evenly spread by their ratio."""
    ratio = LONGEST_S / SHORTEST_S
    delays = [round(SHORTEST_S * ratio ** (number / max(1, count - 1)), 3) for number in range(count)]
    return [Host(f"127.0.1.{number + 1}", port, delay) for number, delay in enumerate(delays)]


def robots(host: Host) -> bytes:
    return f"User-agent: *\nCrawl-delay: {host.delay_s}\n".encode()


def title(path: str) -> str:
    """Every page has words of its own, as pages that are worth it have."""
    chance = Random(path)
    return " ".join(chance.choice(WORDS) for _ in range(5))


def links(path: str) -> list[str]:
    """A page leads to pages that no other page leads to: there is always more."""
    number = int(path.rpartition("-")[2]) if "-" in path else 0
    children = range(LINKS * number + 1, LINKS * number + LINKS + 1)
    return [f"/{title(str(child)).replace(' ', '-')}-{child}" for child in children]
