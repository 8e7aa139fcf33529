"""Redirects in a row: their targets are URLs of their own, so somebody has to count how many led there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlguide.core.messages import Outlink

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNT = "redirects"  # in the metadata of a target: so many led there
MOST = 20  # as browsers do; a server that makes up ever new addresses would keep a crawl for ever
TOO_MANY = f"more than {MOST} redirects in a row"


def leads_on(metadata: Mapping[str, Any]) -> bool:
    """Whether a redirect of a URL that came with this is followed."""
    return _passed(metadata) < MOST


def leading(target: str, metadata: Mapping[str, Any]) -> list[Outlink]:
    """The link that is told of a redirect: what came with the URL that redirects goes on with its target."""
    return [Outlink(target, metadata={**metadata, COUNT: _passed(metadata) + 1})] if leads_on(metadata) else []


def _passed(metadata: Mapping[str, Any]) -> int:
    """Others who share the guide may have written anything."""
    said = metadata.get(COUNT)
    return said if type(said) is int and said > 0 else 0
