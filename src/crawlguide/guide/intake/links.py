"""Links, one by one, become columns; what the crawl refuses on sight is marked with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.errors import UrlError
from crawlguide.core.messages import MAX_METADATA_BYTES
from crawlguide.core.types import Links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.messages import Outlink
    from crawlguide.core.protocols import Sees
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Seed
    from crawlguide.guide.intake.rules import Rules


@dataclass
class LinkColumns:
    """Collects links one by one and turns them into columns."""

    rules: Rules
    parent: list[int] = field(default_factory=list)
    url: list[str] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    page: list[str] = field(default_factory=list)  # the queue of the page it stands on
    anchor: list[str] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    metadata: list[bytes | None] = field(default_factory=list)
    seeds: dict[int, Seed] = field(default_factory=dict)

    def add(self, outlinks: Sequence[Outlink], parent: int, base: str) -> None:
        """Links of one page in their order; one that nobody can fetch, or to the page itself, says nothing."""
        base_queue = urls.queue(base)
        for number, link in enumerate(outlinks):
            try:
                url, host = urls.located(link.url, base, base_queue)
            except UrlError:
                continue
            if url != base:
                self.parent.append(parent)
                self.url.append(url)
                self.host.append(host)
                self.page.append(base_queue)
                self.anchor.append(link.anchor)
                self.position.append(number if link.position is None else link.position)
                self.metadata.append(_packed_or_none(link.metadata) if link.metadata else None)

    def seed(self, seed: Seed) -> None:
        self.seeds[len(self.url)] = seed
        self.parent.append(-1)
        self.url.append(seed.url)
        self.host.append(urls.queue(seed.url))
        if self.rules.seeded:
            self.rules.seeded(self.host[-1])
        self.page.append("")
        self.anchor.append("")
        self.position.append(0)
        self.metadata.append(seed.metadata)

    def columns(self) -> Links:
        count = len(self.url)
        given, max_depth = np.full(count, np.nan), np.full(count, -1, np.int32)
        for row, seed in self.seeds.items():
            given[row] = np.nan if seed.priority is None else seed.priority
            max_depth[row] = -1 if seed.max_depth is None else seed.max_depth
        ids = np.array(list(map(urls.identity, self.url, self.host)), np.uint64)
        if self.rules.priorities:  # a person has said so, whoever finds it
            given[:] = [self.rules.priorities.get(url, said) for url, said in zip(self.url, given, strict=True)]
        return Links(
            parent=np.array(self.parent, np.int64),
            url=texts(self.url),
            id=ids,
            host=texts(self.host),
            anchor=texts(self.anchor),
            position=np.array(self.position, np.int32),
            given=given,
            max_depth=max_depth,
            metadata=texts(self.metadata),
            reason=texts(self._reasons(ids)),
            deepest=self.rules.max_depth,
        )

    def _reasons(self, ids: U64) -> list[str | None]:
        verdicts = {host: self.rules.verdict(host) for host in set(self.host)}
        reasons = [verdicts[host] for host in self.host]
        if bans := self.rules.bans:
            banned = (bans(url, host) for url, host in zip(self.url, self.host, strict=True))
            reasons = [reason or ("banned" if rule else None) for reason, rule in zip(reasons, banned, strict=True)]
        for seer in self.rules.seers:
            self._seen_by(seer, reasons, ids)
        return reasons

    def _seen_by(self, seer: Sees, reasons: list[str | None], ids: U64) -> None:
        """What a filter refuses on sight, except seeds: people vouch for them."""
        rows: Sequence[int] = range(len(reasons))
        hosts, found, pages = self.host, self.url, self.page
        if self.seeds or any(reasons):
            rows = [row for row in rows if reasons[row] is None and row not in self.seeds]
            hosts, found, pages = ([column[row] for row in rows] for column in (hosts, found, pages))
            ids = ids[np.array(rows, np.int64)]
        for row, why in zip(rows, seer.sight(hosts, found, pages, ids), strict=True):
            if why is not None:
                reasons[row] = seer.name


def _packed_or_none(metadata: Mapping[str, Any] | None) -> bytes | None:
    """Metadata that is too large is left out; the link it came with is worth more."""
    packed = msgspec.json.encode(metadata) if metadata else b""
    return packed if 0 < len(packed) <= MAX_METADATA_BYTES else None
