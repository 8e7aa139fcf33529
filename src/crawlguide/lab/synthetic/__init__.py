"""Made-up webs, of which everything is known: what is relevant, what is a trap, how often a page changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlguide.lab.synthetic import kinds
from crawlguide.lab.synthetic.options import Options, checked, pairs
from crawlguide.lab.synthetic.web import SyntheticWeb

if TYPE_CHECKING:
    from crawlguide.lab.synthetic.kinds import DrawnWeb

__all__ = ["Options", "SyntheticWeb", "hard", "make", "parsed"]


def make(seed: int = 0, **options: Any) -> SyntheticWeb:
    """A web by its seed and options: `make(7, pages=5_000, homophily=0.8)`."""
    return SyntheticWeb(checked({"seed": seed, **options}))


def hard(kind: str, seed: int = 0, **options: Any) -> DrawnWeb:
    """One of the webs on which guidance could fail: `hard("news")`."""
    return kinds.drawn({"kind": kind, "seed": seed, **options})


def parsed(text: str) -> SyntheticWeb | DrawnWeb:
    """A web by its name: `synthetic:seed=7,pages=5000,homophily=0.8` or `synthetic:kind=news`."""
    given = pairs(text)
    return kinds.drawn(given) if "kind" in given else SyntheticWeb(checked(given))
