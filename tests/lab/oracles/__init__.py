"""The product's classic strategies once more, written apart from it: tests compare what both find.

Each is a module with `Options` and `build`, so that a lab run takes it by its dotted name. They keep their own tables
of what a lesson says, and share no code with `crawlguide.strategies`.
"""

from __future__ import annotations

import sys

from crawlguide.core import plugs


def kinds() -> tuple[str, ...]:
    """Named as the product's strategies are."""
    return plugs.kinds(sys.modules[__name__])


def policy(kind: str) -> str:
    """What a lab run calls the oracle of this kind."""
    return f"{__name__}.{kind.replace('-', '_')}"
