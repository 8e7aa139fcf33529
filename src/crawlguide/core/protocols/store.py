"""What is known, as one plug: the sum of what `frontier`, `keeping` and `looking` ask for."""

from __future__ import annotations

from typing import Protocol

from crawlguide.core.protocols.frontier import Leases, Queues
from crawlguide.core.protocols.keeping import Crawls, Lasting, Memory
from crawlguide.core.protocols.looking import Transfer, Views


class Store(Crawls, Queues, Leases, Memory, Views, Transfer, Lasting, Protocol):
    """What is known of URLs, hosts, links and leases. All in batches; O(batch), never O(frontier).

    A URL of a crawl is in exactly one state: queued, leased, done or dropped (with a reason).
    Times are seconds from the caller's clock; a store never looks at a clock of its own.
    """
