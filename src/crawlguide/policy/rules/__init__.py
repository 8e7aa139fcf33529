"""Only what the operator's rules, written in Rego, do not deny: all survivors of the filters before, in one call."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from crawlguide.core import urls as addresses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch
    from crawlguide.policy import Services
    from crawlguide.policy.rules.engine import Engine


@dataclass(frozen=True)
class Rules:
    """`engine` is None where the operator has no rules.

    `prepared` asks the engine about a batch, and `keep` and `shut` of what it returns say what was answered. Rows
    without a verdict are passed over; rows that are denied are dropped.
    """

    label: ClassVar = "denied by the operator's rules"
    revivable: ClassVar = True

    engine: Engine | None = None
    verdicts: Mapping[int, str | None] = field(default_factory=dict, compare=False)  # of one batch, by URL
    name: str = "rules"
    refusal: str = "shut"

    def connected(self, services: Services) -> Rules | None:
        """None: where the operator has no rules, no crawl has this filter."""
        return None if services.rules is None else Rules(services.rules)

    async def prepared(self, batch: Batch, ask: Ask) -> Rules:
        """The same filter with the verdicts on these rows, all asked for in one call."""
        if self.engine is None or not len(batch):
            return self
        urls = batch.url.tolist()
        denied = await self.engine.denied(msgspec.json.encode(question(batch, urls, ask)), len(urls))
        if denied is None:
            return replace(self, verdicts={})
        return replace(self, verdicts={row: denied.get(url) for row, url in zip(batch.id.tolist(), urls, strict=True)})

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        if self.engine is None:
            return np.ones(len(batch), np.bool_)
        return np.array([self.verdicts.get(row, "") is None for row in batch.id.tolist()], np.bool_)

    def shut(self, batch: Batch) -> Mask:
        """Rows that the rules deny, as opposed to those about which they said nothing."""
        return np.array([self.verdicts.get(row) is not None for row in batch.id.tolist()], np.bool_)

    def degraded(self, batch: Batch, ask: Ask) -> str | None:
        """The rules do not hold as they lie on disk: older ones do, or none work."""
        return None if self.engine is None else self.engine.trouble

    def why(self, batch: Batch, ask: Ask) -> str:
        if self.engine is None:
            return "the operator has no rules"
        row = int(batch.id[0])
        if row not in self.verdicts:
            return "the operator's rules gave no verdict"
        reason = self.verdicts[row]
        return "the operator's rules permit it" if reason is None else f"the operator's rules deny it: {reason}"


def question(batch: Batch, urls: list[str], ask: Ask) -> dict[str, Any]:
    """What rules see as `input`."""
    host, names = batch.host, batch.hosts.name.tolist()
    columns = zip(
        urls, host.tolist(), batch.depth.tolist(), batch.score.tolist(), batch.value.tolist(), batch.parents.tolist(),
        batch.hosts.pages[host].tolist(), batch.hosts.failures[host].tolist(), strict=True,
    )  # fmt: skip
    rows = []
    for url, queue, depth, score, value, parents, pages, failures in columns:
        parts = addresses.parts(url)
        rows.append(
            {
                "url": url, "host": parts.host, "domain": addresses.domain_of(names[queue]), "path": parts.path,
                "query": parts.query, "depth": int(depth), "score": score, "value": value, "parents": int(parents),
                "host_pages": int(pages), "host_failures": int(failures),
            }
        )  # fmt: skip
    return {"at": ask.at, "crawl": ask.crawl.name, "crawler_id": ask.crawler_id, "urls": rows}


def build(definition: Definition) -> Rules:
    return Rules()
