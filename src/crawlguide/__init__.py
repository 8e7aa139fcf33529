"""crawlguide: which URL should a crawler fetch next?

    from crawlguide import Guide

    with Guide.open(":memory:") as guide:
        guide.seed("default", ["https://example.com/"])
        advice = guide.ask({"mcp_version": "2025-11", "crawler_id": "me", "budget": {"max_urls": 10}})

`Client("http://127.0.0.1:8080")` is the same for a guide that runs elsewhere. Importing this package loads nothing
heavy; opening a guide does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crawlguide.version import __version__

if TYPE_CHECKING:
    from crawlguide.gateway.client import AsyncClient, Client
    from crawlguide.gateway.client.urlfrontier import UrlFrontierClient
    from crawlguide.gateway.library import AsyncGuide, Guide
    from crawlguide.integrations.guided import guided, guided_sync

__all__ = ["AsyncClient", "AsyncGuide", "Client", "Guide", "UrlFrontierClient", "__version__", "guided", "guided_sync"]

_HOMES = {
    "AsyncClient": "crawlguide.gateway.client",
    "AsyncGuide": "crawlguide.gateway.library",
    "Client": "crawlguide.gateway.client",
    "Guide": "crawlguide.gateway.library",
    "UrlFrontierClient": "crawlguide.gateway.client.urlfrontier",
    "guided": "crawlguide.integrations.guided",
    "guided_sync": "crawlguide.integrations.guided",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'crawlguide' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
