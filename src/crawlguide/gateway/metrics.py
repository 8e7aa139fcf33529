"""Telemetry as Prometheus metrics: few names, small fixed sets of labels, so that no URL or host becomes a series.

Names of crawls come from outside: only the biggest get series of their own. docs/metrics.md lists what is here; a test
compares them.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.samples import Sample

from crawlguide.store.tables.rows import STATES
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from crawlguide.core.messages import CrawlStats, StatsMessage

LATENCIES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
SHOWN, OTHERS = 50, "other"
TENANTS_SHOWN, TENANTS, OTHER_TENANTS = 50, 1_000, "_other"  # no tenant can be called so
COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "requests": ("Requests by route and status.", ("route", "status")),
    "errors": ("Errors that were answered, by code.", ("code",)),
    "asks": ("Asks that were decided; one that is answered a second time counts once.", ("tenant",)),
    "tells": ("Reports that were taken; one that is told a second time counts once.", ("tenant",)),
    "assigned": ("URLs given out.", ("tenant",)),
    "fetches": ("Fetches that were told and taken, by class of status, or by error.", ("tenant", "outcome")),
    "discovered": ("URLs that reports made known.", ("tenant",)),
    "drops": ("Candidates that a filter kept out of an answer, by filter.", ("tenant", "filter")),
    "degraded": ("Answers in which a part stood in for another, by what `degraded` says.", ("tenant", "part")),
    "errands": ("Files fetched by the server itself, by kind and by what came of it.", ("kind", "outcome")),
    "bus_messages": ("Messages of buses, by what became of them.", ("bus", "outcome")),
    "bus_events": ("Events for buses: delivered, or lost.", ("outcome",)),
    "task_failures": ("Background tasks that failed and were started again, by task.", ("task",)),
}
FRESHNESS: dict[str, tuple[tuple[str, ...], str]] = {  # labels, and where the number stands
    "crawl_age_seconds": (("tenant", "crawl"), "median_age_s"),
    "crawl_current_share": (("tenant", "crawl"), "current_share"),
    "crawl_promise_share": (("tenant", "crawl", "promise"), ""),
}
TIMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "request_seconds": ("Time from request to answer, by route.", ("route",)),
    "sync_seconds": ("Time of one sync of the data folder; whoever tells waits for one.", ()),
}
NOW = {
    "info": "1, with the version as a label.",
    "requests_running": "Requests that are being answered.",
    "sockets": "WebSockets that are open.",
    "buses_away": "Message buses that cannot be reached.",
    "bus_spool_bytes": "Events on disk that buses have not taken yet.",
    "crawls": "Crawls that are defined.",
    "crawl_urls": f"URLs of a crawl by state; crawls beyond the {SHOWN} biggest are summed as `{OTHERS}`.",
    "crawl_hosts": "Hosts that a crawl knows.",
    "crawl_fetches": "Fetches of a crawl since it began.",
    "crawl_relevant": "Relevant fetches of a crawl since it began.",
    "crawl_age_seconds": "Median age of the copies of a crawl that fetches pages again as they change.",
    "crawl_current_share": "Share of its copies that are likely to be as the pages are.",
    "crawl_promise_share": "Share of the pages of a promise, numbered from 0, that are no older than promised.",
    "store_open_seconds": "What opening the data took.",
    "store_columns_bytes": "Memory of the tables of URLs and hosts; indexes and queues come on top.",
    "store_disk_bytes": "Files of the data folder, copies under `backups/` not counted.",
    "store_log_bytes": "Log of changed rows since the last snapshot.",
}


class Metrics:
    """A `Telemetry` that Prometheus can scrape; each server has its own."""

    content_type = CONTENT_TYPE

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # when each series began: as many series again, and nobody reads them
        self.registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"crawlguide_{name}", words, labels, registry=self.registry)
            for name, (words, labels) in COUNTERS.items()
        }
        self._times = {
            name: Histogram(f"crawlguide_{name}", words, labels, buckets=LATENCIES, registry=self.registry)
            for name, (words, labels) in TIMES.items()
        }
        self._series: dict[tuple[str, ...], Any] = {}  # found once: looking them up costs more than counting
        self._tenants: dict[str, None] = {}  # those that have series of their own, in the order in which they came
        self._now: list[Gauge] = []
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def count(self, event: str, amount: int = 1, /, **labels: str) -> None:
        self._found(self._counters, event, labels).inc(amount)

    def observe(self, quantity: str, value: float, /, **labels: str) -> None:
        self._found(self._times, quantity, labels).observe(value)

    def page(self, stats: Mapping[str, StatsMessage], figures: Mapping[str, float]) -> bytes:
        """The text that Prometheus reads, with what is known now of each tenant; `figures` are named as in `NOW`."""
        info = Gauge("crawlguide_info", NOW["info"], labels=["version"])
        info.add_metric([__version__], 1)
        numbers = {"crawls": sum(len(one.crawls) for one in stats.values()), **figures}
        plain = [Gauge(f"crawlguide_{name}", NOW[name], value) for name, value in numbers.items()]
        shown = frozenset(islice(dict.fromkeys([*self._tenants, *stats]), TENANTS_SHOWN))
        self._now = [info, *plain, *_by_crawl(_named(stats), shown)]
        return generate_latest(_Summed(self.registry, shown))

    def page_of_tenant(self, tenant: str, stats: StatsMessage) -> bytes:
        """The same with what is one tenant's, and nothing else."""
        self._now = _by_crawl(_named({tenant: stats}), {tenant})
        return generate_latest(_OfTenant(self.registry, tenant))

    def collect(self) -> Iterator[Gauge]:
        """For the registry: what is known now."""
        yield from self._now

    def _found(self, kind: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> Any:
        found = self._series.get((name, *labels.values()))
        if found is None:
            labels = self._bounded(labels)
            found = kind[name].labels(**labels) if labels else kind[name]
            self._series[name, *labels.values()] = found
        return found

    def _bounded(self, labels: Mapping[str, str]) -> Mapping[str, str]:
        """Tenants beyond the first ones are counted together."""
        tenant = labels.get("tenant")
        if tenant is None or tenant in self._tenants:
            return labels
        if len(self._tenants) >= TENANTS:
            return {**labels, "tenant": OTHER_TENANTS}
        self._tenants[tenant] = None
        return labels


class _OfTenant:
    """A registry's families, with the samples of one tenant alone."""

    def __init__(self, registry: CollectorRegistry, tenant: str) -> None:
        self.registry, self._tenant = registry, tenant

    def collect(self) -> Iterator[Any]:
        for family in self.registry.collect():
            mine = [sample for sample in family.samples if sample.labels.get("tenant") == self._tenant]
            if mine:
                family.samples = mine
                yield family


class _Summed:
    """A registry's families, with what was counted of tenants that are not `shown` added up as of one."""

    def __init__(self, registry: CollectorRegistry, shown: frozenset[str]) -> None:
        self.registry, self._shown = registry, shown

    def collect(self) -> Iterator[Any]:
        for family in self.registry.collect():
            if family.type == "counter":
                family.samples = self._added_up(family.samples)
            yield family

    def _added_up(self, samples: Iterable[Sample]) -> list[Sample]:
        sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = defaultdict(float)
        for sample in samples:
            labels = sample.labels
            if "tenant" in labels and labels["tenant"] not in self._shown:
                labels = {**labels, "tenant": OTHER_TENANTS}
            sums[sample.name, tuple(labels.items())] += sample.value
        return [Sample(name, dict(labels), total) for (name, labels), total in sums.items()]


def _named(stats: Mapping[str, StatsMessage]) -> dict[tuple[str, str], CrawlStats]:
    return {(tenant, name): crawl for tenant, one in stats.items() for name, crawl in one.crawls.items()}


def _by_crawl(crawls: Mapping[tuple[str, str], CrawlStats], shown: Container[str]) -> list[Gauge]:
    """The biggest crawls by tenant and name; all others together, for each tenant that is `shown` and for the rest.

    One that is called like the others is one of them.
    """
    ranked = sorted(crawls, key=lambda name: -_known(crawls[name]))
    own = [name for name in ranked if name[1] != OTHERS][:SHOWN]
    groups: dict[tuple[str, str], list[CrawlStats]] = {name: [crawls[name]] for name in own}
    for rest in ranked:
        if rest not in own:
            tenant = rest[0] if rest[0] in shown else OTHER_TENANTS
            groups.setdefault((tenant, OTHERS), []).append(crawls[rest])
    urls = Gauge("crawlguide_crawl_urls", NOW["crawl_urls"], labels=["tenant", "crawl", "state"])
    for name, group in groups.items():
        for state in STATES:
            urls.add_metric([*name, state], sum(_in_state(crawl, state) for crawl in group))
    return [urls, *(_number(number, groups) for number in ("hosts", "fetches", "relevant")), *_freshness(crawls, own)]


def _freshness(crawls: Mapping[tuple[str, str], CrawlStats], own: Sequence[tuple[str, str]]) -> list[Gauge]:
    """Of the biggest crawls, those that fetch pages again as they change."""
    gauges = {name: Gauge(f"crawlguide_{name}", NOW[name], labels=labels) for name, (labels, _) in FRESHNESS.items()}
    for name in own:
        facts = crawls[name].freshness
        if facts and facts["pages"]:
            for gauge, (_, fact) in FRESHNESS.items():
                if fact:
                    gauges[gauge].add_metric([*name], facts[fact])
            for number, promise in enumerate(facts["promises"]):
                gauges["crawl_promise_share"].add_metric([*name, str(number)], promise["kept_share"])
    return list(gauges.values())


def _number(number: str, groups: Mapping[tuple[str, str], list[CrawlStats]]) -> Gauge:
    name = f"crawl_{number}"
    gauge = Gauge(f"crawlguide_{name}", NOW[name], labels=["tenant", "crawl"])
    for crawl, group in groups.items():
        gauge.add_metric(list(crawl), sum(getattr(one, number) for one in group))
    return gauge


def _in_state(crawl: CrawlStats, state: str) -> int:
    return sum(crawl.dropped.values()) if state == "dropped" else int(getattr(crawl, state))


def _known(crawl: CrawlStats) -> int:
    return sum(_in_state(crawl, state) for state in STATES)
