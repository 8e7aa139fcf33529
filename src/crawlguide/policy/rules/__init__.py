"""Only what the operator's rules, written in Rego, do not deny: all survivors of the filters before, in one call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core import urls as addresses

if TYPE_CHECKING:
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch
    from crawlguide.policy.rules.engine import Engine


@dataclass(frozen=True)
class Rules:
    """`engine` is None where the operator has no rules.

    `prepare` asks the engine about a batch, `keep` and `shut` say what it answered. Rows without a verdict are passed
    over; rows that are denied are dropped.
    """

    engine: Engine | None = None
    verdicts: dict[int, str | None] = field(default_factory=dict, compare=False)  # of the batch that was prepared last
    name: str = "rules"
    refusal: str = "shut"

    async def prepare(self, batch: Batch, ask: Ask) -> None:
        """Ask about all rows in one call."""
        if self.engine is None or not len(batch):
            return
        urls = batch.url.tolist()
        denied = await self.engine.denied(msgspec.json.encode(question(batch, urls, ask)), len(urls))
        self.verdicts.clear()
        if denied is not None:
            self.verdicts.update({row: denied.get(url) for row, url in zip(batch.id.tolist(), urls, strict=True)})

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        if self.engine is None:
            return np.ones(len(batch), np.bool_)
        return np.array([self.verdicts.get(row, "") is None for row in batch.id.tolist()], np.bool_)

    def shut(self, batch: Batch) -> Mask:
        """Rows that the rules deny, as opposed to those about which they said nothing."""
        return np.array([self.verdicts.get(row) is not None for row in batch.id.tolist()], np.bool_)

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
