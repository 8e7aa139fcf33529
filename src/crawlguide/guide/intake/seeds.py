"""What people and crawlers vouch for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.core.messages import MAX_METADATA_BYTES
from crawlguide.core.types import Seed
from crawlguide.guide.intake.links import LinkColumns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.messages import SeedMessage
    from crawlguide.core.types import Links
    from crawlguide.guide.intake.rules import Rules


def seed_of(message: str | SeedMessage) -> Seed:
    """A seed as a person wrote it; raises `UrlError` for one nobody can fetch."""
    if isinstance(message, str):
        return Seed(urls.canonical(message))
    metadata = _packed(message.metadata) if message.metadata else None
    return Seed(urls.canonical(message.url), message.priority, message.max_depth, metadata)


def _packed(metadata: Mapping[str, Any]) -> bytes:
    packed = msgspec.json.encode(metadata)
    if len(packed) > MAX_METADATA_BYTES:
        raise UrlError(f"metadata: expected at most {MAX_METADATA_BYTES} bytes, got {len(packed)}")
    return packed


def seeded(seeds: Sequence[Seed], rules: Rules) -> Links:
    """Seeds as links that come from nowhere."""
    links = LinkColumns(rules)
    for seed in seeds:
        links.seed(seed)
    return links.columns()
