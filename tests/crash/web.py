"""An endless web: what stands on a page is a pure function of its address."""

from __future__ import annotations

from random import Random

FAST, SLOW = range(40), range(100, 110)  # hosts
DELAY_S, SLOW_DELAY_S = 0.05, 1.0
POPULAR, ALL = 200, 1_000_000
LINKS = 10
DENIED = "denied.example"


def page(host: int, number: int) -> str:
    """A page in canonical form, so that nobody needs to bring it into that form again."""
    return f"https://h{host}.{'slow' if host in SLOW else 'fast'}{host % 7}.example/p/{number}"


def some_page(chance: Random, hosts: range) -> str:
    """One page in two is among the popular ones, which many pages link to."""
    numbers = POPULAR if chance.random() < 0.5 else ALL
    return page(chance.choice(hosts), chance.randrange(numbers))


def links(url: str) -> list[str]:
    """About ten pages of hosts of the same kind; now and then one that the crawl must never be sent to."""
    chance = Random(url)
    found = [some_page(chance, hosts(url)) for _ in range(LINKS)]
    if chance.random() < 0.1:
        found.append(f"https://www.{DENIED}/{chance.randrange(POPULAR)}")
    return found


def queue(url: str) -> str:
    """The politeness queue of a page of this web: its host."""
    return url.split("/", 3)[2]


def hosts(url: str) -> range:
    """Slow or fast ones, as the page's own."""
    return SLOW if ".slow" in url else FAST


def delay_s(url: str) -> float:
    """Slow hosts are promised so far ahead that a restart falls between promise and start."""
    return SLOW_DELAY_S if hosts(url) is SLOW else DELAY_S
