"""What crawlers say when they ask: numbers of their own about URLs, and what their domains yielded before.

Nobody knows what a crawler's numbers mean, so each name begins with no weight, and a logistic model learns one. A
number counts by how far it stands out among those of its name; large ones by their logarithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core import urls
from crawlguide.core.kernels import f32s, i64s, kernel, nothing, one_i64, part, records
from crawlguide.core.lossy_table import LossyTable
from crawlguide.strategies.layered.columns import odds, rate
from crawlguide.strategies.layered.records import CRAWLS, LINKS
from crawlguide.strategies.layered.steps import adagrad_step
from crawlguide.strategies.shared.learning import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F32, I64, U64, Lookup, Text
    from crawlguide.core.types import Ask
    from crawlguide.strategies.layered.memory import LayeredMemory

MOST_OF_A_URL = 8
MOST_SIGNALS, MOST_URLS, MOST_DOMAINS = 1_024, 1 << 16, 1 << 12
SIGNAL = np.dtype(
    [
        ("id", np.uint64),  # of its name
        ("count", np.float64),  # numbers so far
        ("mean", np.float64),  # their sum
        ("spread", np.float64),  # and that of their squares
        ("weight", np.float32),
        ("square", np.float32),
    ],
    align=True,
)
URL_SIGNALS = np.dtype(
    [
        ("key", np.uint64),  # of the URL
        ("names", np.int32, MOST_OF_A_URL),  # rows of signals
        ("values", np.float32, MOST_OF_A_URL),
        ("count", np.int32),
    ],
    align=True,
)
DOMAIN_YIELD = np.dtype([("key", np.uint64), ("visited", np.float64), ("new", np.float64)])
SIGNALS, URLS_SIGNALS = records(SIGNAL), records(URL_SIGNALS)
STEP = 0.2
FARTHEST, NARROWEST = 3.0, 1e-4  # standard deviations that count; the smallest there is
MOST_LOG_ODDS = 4.0  # of all signals of a URL together
URLS_OF_AN_ASK = 1_000
RESCORED = 256  # URLs with signals that are scored again after each tell
FEW_VISITS, HALF = 3.0, 0.5
MOST_YIELD = 3.0  # log-odds
NOTHING: U64 = np.zeros(0, np.uint64)


@part
def deviation(signal, value):  # type: ignore[no-untyped-def]
    """How far a number stands out among those of its name, in standard deviations."""
    mean = signal.mean / max(signal.count, 1.0)
    spread = np.sqrt(max(signal.spread / max(signal.count, 1.0) - mean * mean, 0.0))
    return min(max((value - mean) / max(spread, NARROWEST), -FARTHEST), FARTHEST)


@part
def signals_log_odds(mine, signals):  # type: ignore[no-untyped-def]
    total = 0.0
    for number in range(mine.count):
        signal = signals[mine.names[number]]
        total += signal.weight * deviation(signal, mine.values[number])
    return min(max(total, -MOST_LOG_ODDS), MOST_LOG_ODDS)


@kernel(nothing(one_i64, URLS_SIGNALS, SIGNALS))
def observe(place, url_signals, signals):  # type: ignore[no-untyped-def]
    """Count the numbers of a URL among those of their names."""
    mine = url_signals[place]
    for number in range(mine.count):
        signal, value = signals[mine.names[number]], np.float64(mine.values[number])
        signal.count += 1.0
        signal.mean += value
        signal.spread += value * value


@kernel(nothing(i64s, i64s, URLS_SIGNALS, SIGNALS, LINKS))
def weigh(rows, places, url_signals, signals, links):  # type: ignore[no-untyped-def]
    """The log-odds that signals give these links, by the weights of now."""
    for number in range(len(rows)):
        links[rows[number]].outside = signals_log_odds(url_signals[places[number]], signals)


@kernel(nothing(i64s, f32s, URLS_SIGNALS, SIGNALS, CRAWLS))
def learn(places, label, url_signals, signals, crawls):  # type: ignore[no-untyped-def]
    """One step of the logistic model of signals for each fetch."""
    base = odds(rate(crawls[0]))
    for number in range(len(places)):
        mine = url_signals[places[number]]
        error = 1.0 / (1.0 + np.exp(-base - signals_log_odds(mine, signals))) - label[number]
        for at in range(mine.count):
            signal = signals[mine.names[at]]
            adagrad_step(signal, error * deviation(signal, mine.values[at]), STEP)


class AskSignals:
    def __init__(self, notebook: Notebook, memory: LayeredMemory) -> None:
        self._memory = memory
        self._signals = RecordTable(notebook.sheet("signals", SIGNAL))
        self._urls = LossyTable(URL_SIGNALS, notebook.sheet("told", URL_SIGNALS), MOST_URLS)
        self._yields = LossyTable(DOMAIN_YIELD, notebook.sheet("yields", DOMAIN_YIELD), MOST_DOMAINS)
        self._last: tuple[Ask | None, U64] = None, NOTHING

    def record(self, ask: Ask) -> U64:
        """Keep what an ask says; returns the URLs of which it says something new."""
        for domain, (visited, new) in ask.yields.items():
            place = int(self._yields.claim(np.array([domain], np.uint64))[0])
            self._yields.rows["visited"][place], self._yields.rows["new"][place] = visited, min(new, visited)
        if not ask.external:
            return NOTHING
        if ask is not self._last[0]:  # an ask that gathers again comes here again
            some = list(ask.external.items())[:URLS_OF_AN_ASK]
            self._last = ask, np.array([url for url, numbers in some if self._record_url(url, numbers)], np.uint64)
        return self._last[1]

    def _record_url(self, url: int, numbers: Mapping[str, float]) -> bool:
        """False if the same is known of the URL already."""
        record = np.zeros(1, URL_SIGNALS)
        for name, number in numbers.items():
            row, at = self._signal(name), int(record["count"][0])
            if row >= 0 and at < MOST_OF_A_URL:
                record["names"][0, at], record["values"][0, at] = row, np.copysign(np.log1p(abs(number)), number)
                record["count"] += 1
        record["key"] = url
        place, known = self._urls.claim_one(url)
        if not record["count"][0] or (known and self._urls.rows[[place]].tobytes() == record.tobytes()):
            return False
        self._urls.rows[place] = record[0]
        self._urls.sheet.changed(np.array([place]))
        observe(place, self._urls.rows, self._signals.records)
        self._signals.sheet.changed(record["names"][0, : record["count"][0]].astype(np.int64))
        return True

    def _signal(self, name: str) -> int:
        """The row of a name; -1 where there is no room for another name."""
        key = np.array([xxhash.xxh3_64_intdigest(name.encode())], np.uint64)
        row = int(self._signals.find(key)[0])
        if row < 0 and self._signals.sheet.used < MOST_SIGNALS:
            row = int(self._signals.claim(key)[0][0])
            self._signals.records["square"][row] = 0.1
        return row

    def refresh_links(self, rows: I64) -> None:
        """Signals of these links count by the weights of now."""
        if not self._urls.sheet.used:
            return
        rows, places = self._with_signals(rows)
        if len(rows):
            links = self._memory.links
            before = links.rows["outside"][rows]
            weigh(rows, places, self._urls.rows, self._signals.records, links.rows)
            changed = rows[links.rows["outside"][rows] != before]
            links.changed(changed)
            self._memory.generation += len(changed) > 0

    def refresh_hosts(self, rows: I64, names: Text | Lookup, host: I64) -> None:
        """Yields of domains count for the hosts of these links; `names` of hosts, and which of them each link has."""
        if not self._yields.sheet.used or not len(rows):
            return
        known, places = rows >= 0, self._memory.places
        hosts, first = np.unique(self._memory.links.rows["places"][rows[known], 0], return_index=True)
        keys = [domain_key(str(name)) for name in names[host[known][first]]]
        domains = self._yields.find(np.array(keys, np.uint64))
        hosts, history = hosts[domains >= 0].astype(np.int64), self._yield_log_odds(domains[domains >= 0])
        changed = places.rows["history"][hosts] != history
        places.rows["history"][hosts[changed]] = history[changed]
        places.changed(hosts[changed])
        self._memory.generation += len(hosts[changed]) > 0

    def learn(self, rows: I64, label: F32) -> None:
        """The rewards of these links: their signals weigh more or less from now on."""
        if not self._urls.sheet.used:
            return
        mine, places = self._with_signals(rows)
        if len(mine):
            rewards = dict(zip(rows.tolist(), label.tolist(), strict=True))
            labels = np.array([rewards[row] for row in mine.tolist()], np.float32)
            learn(places, labels, self._urls.rows, self._signals.records, self._memory.crawl.rows)
            self._signals.sheet.changed(np.arange(self._signals.sheet.used))

    def due_for_scoring(self, turn: int) -> U64:
        """Some of the URLs with signals, others at each turn: the weights of their signals have changed."""
        used = self._urls.sheet.used
        if not used:
            return NOTHING
        keys: U64 = self._urls.rows["key"][(turn * RESCORED + np.arange(RESCORED)) % used]
        return keys[keys > 0]

    def _with_signals(self, rows: I64) -> tuple[I64, I64]:
        """Those of these links that have signals, and where these are."""
        rows = rows[rows >= 0]
        places = self._urls.find(self._memory.links.rows["id"][rows])
        return rows[places >= 0], places[places >= 0]

    def _yield_log_odds(self, domains: I64) -> F32:
        """What domains yielded, as a difference of log-odds to the mean of all domains with a yield."""
        every = self._yields.rows[self._yields.rows["key"] > 0]
        usual = (HALF + float((every["new"] / np.maximum(every["visited"], 1.0)).sum())) / (1.0 + len(every))
        rows = self._yields.rows[domains]
        share = (rows["new"] + FEW_VISITS * usual) / (rows["visited"] + FEW_VISITS)
        found = np.log(share / (1.0 - share)) - np.log(usual / (1.0 - usual))
        return np.asarray(np.clip(found, -MOST_YIELD, MOST_YIELD), np.float32)


def domain_key(queue: str) -> int:
    """The hash by which crawlers name a domain in `domain_hash`."""
    return int(urls.domain_hash(urls.domain_of(queue)), 16)
