"""How to install the package or an optional part of it, as every message about what is missing says it."""

from __future__ import annotations

ANEW = "install crawlguide anew: pip install . in a clone of it"


def installing(extra: str) -> str:
    """In a clone alone: crawlguide is in no package index, where its name might be somebody else's."""
    return f"pip install '.[{extra}]' in a clone of crawlguide"
