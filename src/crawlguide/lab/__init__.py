"""The playground: webs of which the truth is known, to measure, compare and simulate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlguide.lab import synthetic, web

if TYPE_CHECKING:
    from crawlguide.lab.pages import Web
    from crawlguide.lab.serving import Served

__all__ = ["serve", "served", "synthetic", "web"]


def serve(web: Web, port: int = 0, **options: Any) -> int:
    """Serve a web over loopback HTTP until the program ends; returns the port."""
    return served(web, port, **options).port


def served(web: Web, port: int = 0, **options: Any) -> Served:
    """The same as an object that has a `port` and a `log`, and that can be closed: see `lab.serving.served`."""
    from crawlguide.lab import serving  # noqa: PLC0415 - a server is loaded when it is wanted

    return serving.served(web, port, **options)
