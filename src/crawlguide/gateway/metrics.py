"""Telemetry as Prometheus metrics: few names, small fixed sets of labels, so that no URL or host becomes a series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

if TYPE_CHECKING:
    from crawlguide.core.messages import StatsMessage

LATENCIES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """A `Telemetry` that Prometheus can scrape; each server has its own."""

    content_type = CONTENT_TYPE

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._events = Counter("crawlguide_events", "What happened, by kind.", ["event"], registry=self._registry)
        self._requests = Counter(
            "crawlguide_requests", "Requests by route and status.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "crawlguide_request_seconds", "Time from request to answer.", ["route"], buckets=LATENCIES,
            registry=self._registry,
        )  # fmt: skip
        self._urls = Gauge("crawlguide_urls", "URLs by state, all crawls.", ["state"], registry=self._registry)
        self._crawls = Gauge("crawlguide_crawls", "Crawls that are defined.", registry=self._registry)

    def count(self, event: str, amount: int = 1, /, **labels: str) -> None:
        if labels:
            self._requests.labels(**labels).inc(amount)
        elif amount:
            self._events.labels(event).inc(amount)

    def observe(self, quantity: str, value: float, /, **labels: str) -> None:  # noqa: ARG002 - one histogram so far
        self._seconds.labels(**labels).observe(value)

    def page(self, stats: StatsMessage) -> bytes:
        """The text that Prometheus reads, with what `stats` knows now."""
        self._crawls.set(len(stats.crawls))
        for state in ("queued", "leased", "done"):
            self._urls.labels(state).set(sum(getattr(crawl, state) for crawl in stats.crawls.values()))
        self._urls.labels("dropped").set(sum(sum(crawl.dropped.values()) for crawl in stats.crawls.values()))
        return generate_latest(self._registry)
