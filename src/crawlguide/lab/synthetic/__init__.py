"""Made-up webs, of which everything is known: what is relevant, what is a trap, how often a page changes."""

from __future__ import annotations

from typing import Any

from crawlguide.lab.synthetic.options import Options, checked, read
from crawlguide.lab.synthetic.web import SyntheticWeb

__all__ = ["Options", "SyntheticWeb", "make", "parsed"]


def make(seed: int = 0, **options: Any) -> SyntheticWeb:
    """A web by its seed and options: `make(7, pages=5_000, homophily=0.8)`."""
    return SyntheticWeb(checked({"seed": seed, **options}))


def parsed(text: str) -> SyntheticWeb:
    """A web by its name: `synthetic:seed=7,pages=5000,homophily=0.8`."""
    return SyntheticWeb(read(text))
