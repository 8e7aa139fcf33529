"""Everything that is drawn once: hosts, pages and links, and the ways to find them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from crawlguide.lab.synthetic import layout, linking, traps

if TYPE_CHECKING:
    from crawlguide.lab.synthetic.options import Options


@dataclass(frozen=True)
class World:
    options: Options
    hosts: layout.Hosts
    pages: layout.Pages
    graph: linking.Graph
    rows: dict[str, int] = field(init=False)  # of pages, by URL
    host_rows: dict[str, int] = field(init=False)  # of hosts, by name
    trapped: frozenset[tuple[int, int]] = field(init=False)  # which host has which kind of trap

    @classmethod
    def made(cls, options: Options) -> Self:
        chance = np.random.Generator(np.random.PCG64(options.seed))
        hosts = layout.hosts(options, chance)
        pages = layout.pages(options, hosts, len(traps.KINDS), chance)
        return cls(options, hosts, pages, linking.linked(options, pages, chance))

    def __post_init__(self) -> None:
        with_trap = np.flatnonzero(self.pages.trap >= 0)
        pairs = zip(self.pages.host[with_trap].tolist(), self.pages.trap[with_trap].tolist(), strict=True)
        object.__setattr__(self, "rows", {url: row for row, url in enumerate(self.pages.url)})
        object.__setattr__(self, "host_rows", {name: row for row, name in enumerate(self.hosts.name)})
        object.__setattr__(self, "trapped", frozenset(pairs))

    def base(self, host: int) -> str:
        """The address of a host, without the last slash."""
        return f"http://{self.hosts.name[host]}"
