"""What the service counts for Prometheus, under the names that boards for URLFrontier know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

from crawlguide.gateway.metrics import LATENCIES

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

COUNTERS = {
    "frontier_getURLs_calls": "Calls of GetURLs.",
    "frontier_getURLs": "URLs given out.",
    "frontier_putURLs_calls": "Streams of PutURLs.",
    "frontier_putDiscovered_calls": "Streams of PutDiscovered.",
    "frontier_putURLs": "URLs put.",
    "frontier_putURLs_ignored": "URLs put that were known already, or of no use.",
    "frontier_putURLs_completed": "URLs put that are done for ever.",
}
DISCOVERED = ("frontier_putURLs_discovered", "URLs put, by whether they were discovered or known.")
LATENCY = ("frontier_getURLs_latency_seconds", "Time of GetURLs until its first URL goes out.")


class Counts:
    """The series of one server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        made = {name: Counter(name, words, registry=registry) for name, words in COUNTERS.items()}
        discovered = Counter(*DISCOVERED, ["discovered"], registry=registry)
        self.get_calls, self.given = made["frontier_getURLs_calls"], made["frontier_getURLs"]
        self.put_calls, self.batch_calls = made["frontier_putURLs_calls"], made["frontier_putDiscovered_calls"]
        self.put, self.ignored = made["frontier_putURLs"], made["frontier_putURLs_ignored"]
        self.completed = made["frontier_putURLs_completed"]
        self.discovered, self.known = discovered.labels("true"), discovered.labels("false")
        self.latency = Histogram(*LATENCY, buckets=LATENCIES, registry=registry)
