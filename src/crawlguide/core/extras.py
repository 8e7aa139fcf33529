"""How to install the package or an optional part of it, as every message about what is missing says it."""

from __future__ import annotations

ANEW = "install crawlguide anew: pip install crawlguide, in a clone pip install ."


def installing(extra: str) -> str:
    """Both ways, since who has a clone finds crawlguide in no package index: docs/install.md."""
    return f"pip install 'crawlguide[{extra}]', in a clone pip install '.[{extra}]'"
