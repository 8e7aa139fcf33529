"""What callers say of URLs in numbers of their own: how each number is read, and how its weight is learned.

Nobody knows what a caller's numbers mean, so each begins with no weight. A number counts by how far it stands out among
those of its name; large ones count by their logarithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core import urls
from crawlguide.core.kernels import f32s, i64s, kernel, nothing, one_i64, part, records
from crawlguide.core.lossy_table import LossyTable
from crawlguide.strategies.layered.columns import odds, rate
from crawlguide.strategies.layered.evidence import CRAWLS, LINKS, PLACES
from crawlguide.strategies.layered.hubs import nudge
from crawlguide.strategies.shared.learning import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F32, I64, U64
    from crawlguide.core.types import Ask, Batch
    from crawlguide.strategies.layered.memory import LayeredMemory

MOST_OF_A_URL = 8
SIGNAL = np.dtype(
    [
        ("id", np.uint64),  # of its name
        ("count", np.float64),  # numbers so far
        ("mean", np.float64),
        ("spread", np.float64),
        ("weight", np.float32),
        ("square", np.float32),
    ],
    align=True,
)
TOLD = np.dtype(
    [
        ("key", np.uint64),  # of the URL
        ("names", np.int32, MOST_OF_A_URL),  # rows of signals
        ("values", np.float32, MOST_OF_A_URL),
        ("count", np.int32),
    ],
    align=True,
)
SIGNALS, TOLDS = records(SIGNAL), records(TOLD)
STEP = 0.2
FARTHEST, NARROWEST = 3.0, 1e-4  # in spreads; of spreads
MOST = 4.0  # log-odds that all of them together may bring


@part
def outstanding(signal, value):  # type: ignore[no-untyped-def]
    """How far a number stands out among those of its name, in spreads."""
    mean = signal.mean / max(signal.count, 1.0)
    spread = np.sqrt(max(signal.spread / max(signal.count, 1.0) - mean * mean, 0.0))
    return min(max((value - mean) / max(spread, NARROWEST), -FARTHEST), FARTHEST)


@part
def brought(told, signals):  # type: ignore[no-untyped-def]
    total = 0.0
    for number in range(told.count):
        signal = signals[told.names[number]]
        total += signal.weight * outstanding(signal, told.values[number])
    return min(max(total, -MOST), MOST)


@kernel(nothing(one_i64, TOLDS, SIGNALS))
def notice(place, tolds, signals):  # type: ignore[no-untyped-def]
    """Numbers as they come: what is usual among them."""
    told = tolds[place]
    for number in range(told.count):
        signal, value = signals[told.names[number]], np.float64(told.values[number])
        signal.count += 1.0
        signal.mean += value
        signal.spread += value * value


@kernel(nothing(i64s, i64s, TOLDS, SIGNALS, LINKS))
def weigh(rows, places, tolds, signals, links):  # type: ignore[no-untyped-def]
    """What is told of these links, as things stand."""
    for number in range(len(rows)):
        links[rows[number]].outside = brought(tolds[places[number]], signals)


@kernel(nothing(i64s, f32s, TOLDS, SIGNALS, CRAWLS))
def learn(places, label, tolds, signals, crawls):  # type: ignore[no-untyped-def]
    """A logistic model of its own, beside what else is known: one step for each fetch."""
    base = odds(rate(crawls[0]))
    for number in range(len(places)):
        told = tolds[places[number]]
        wrong = 1.0 / (1.0 + np.exp(-base - brought(told, signals))) - label[number]
        for at in range(told.count):
            signal = signals[told.names[at]]
            nudge(signal, wrong * outstanding(signal, told.values[at]), STEP)


@kernel(nothing(i64s, f32s, LINKS, PLACES, f32s))
def refuse(rows, refused, links, places, memory):  # type: ignore[no-untyped-def]
    """How often each host turns us away, of late."""
    for number in range(len(rows)):
        host = places[links[rows[number]].places[0]]
        host.banned = memory[0] * host.banned + refused[number]


# What crawlers say when they ask: numbers of their own about URLs, and what their domains yielded before.

YIELD = np.dtype([("key", np.uint64), ("visited", np.float64), ("new", np.float64)])  # of a registrable domain
MOST_SIGNALS, MOST_URLS, MOST_DOMAINS = 1_024, 1 << 16, 1 << 12
HEARD_AT_ONCE, STIRRED = 1_000, 256  # URLs of one ask, and places whose URLs a tell ranks anew
FEW_VISITS, HALF = 3.0, 0.5
MOST_YIELD = 3.0  # log-odds
NOTHING: U64 = np.zeros(0, np.uint64)


class AskSignals:
    def __init__(self, notebook: Notebook, memory: LayeredMemory) -> None:
        self._memory = memory
        self._signals = RecordTable(notebook.sheet("signals", SIGNAL))
        self._urls = LossyTable(TOLD, notebook.sheet("told", TOLD), MOST_URLS)
        self._yields = LossyTable(YIELD, notebook.sheet("yields", YIELD), MOST_DOMAINS)
        self._last: tuple[Ask | None, U64] = None, NOTHING

    def hear(self, ask: Ask) -> U64:
        """Returns the URLs of which something else was said than before."""
        for domain, (visited, new) in ask.yields.items():
            place = int(self._yields.claim(np.array([domain], np.uint64))[0])
            self._yields.rows["visited"][place], self._yields.rows["new"][place] = visited, min(new, visited)
        if not ask.external:
            return NOTHING
        if ask is not self._last[0]:  # who looks again at more URLs asks again
            said = list(ask.external.items())[:HEARD_AT_ONCE]
            self._last = ask, np.array([url for url, numbers in said if self._said(url, numbers)], np.uint64)
        return self._last[1]

    def _said(self, url: int, numbers: Mapping[str, float]) -> bool:
        """Write down what is said of a URL; False if it was said before."""
        told = np.zeros(1, TOLD)
        for name, number in numbers.items():
            row, at = self._signal(name), int(told["count"][0])
            if row >= 0 and at < MOST_OF_A_URL:
                told["names"][0, at], told["values"][0, at] = row, np.copysign(np.log1p(abs(number)), number)
                told["count"] += 1
        told["key"] = url
        place, known = self._urls.claim_one(url)
        if not told["count"][0] or (known and self._urls.rows[[place]].tobytes() == told.tobytes()):
            return False
        self._urls.rows[place] = told[0]
        self._urls.sheet.changed(np.array([place]))
        notice(place, self._urls.rows, self._signals.records)
        self._signals.sheet.changed(told["names"][0, : told["count"][0]].astype(np.int64))
        return True

    def _signal(self, name: str) -> int:
        """The row of a name; -1 where there is no more room for one."""
        key = np.array([xxhash.xxh3_64_intdigest(name.encode())], np.uint64)
        row = int(self._signals.find(key)[0])
        if row < 0 and self._signals.sheet.used < MOST_SIGNALS:
            row = int(self._signals.claim(key)[0][0])
            self._signals.records["square"][row] = 0.1
        return row

    def weigh(self, rows: I64) -> None:
        """What is told of these links counts by the weights of today."""
        rows, places = self._known(rows)
        if len(rows):
            links = self._memory.links
            before = links.rows["outside"][rows]
            weigh(rows, places, self._urls.rows, self._signals.records, links.rows)
            other = rows[links.rows["outside"][rows] != before]
            links.changed(other)
            self._memory.turn += len(other) > 0

    def learn(self, rows: I64, label: F32) -> None:
        """These links turned out to be worth so much: so numbers weigh more or less."""
        mine, places = self._known(rows)
        if len(mine):
            worth = dict(zip(rows.tolist(), label.tolist(), strict=True))
            labels = np.array([worth[row] for row in mine.tolist()], np.float32)
            learn(places, labels, self._urls.rows, self._signals.records, self._memory.crawl.rows)
            self._signals.sheet.changed(np.arange(self._signals.sheet.used))

    def stirred(self, turn: int) -> U64:
        """Some of the URLs of which something was told, others at each turn: what is told of them weighs another."""
        used = self._urls.sheet.used
        if not used:
            return NOTHING
        keys: U64 = self._urls.rows["key"][(turn * STIRRED + np.arange(STIRRED)) % used]
        return keys[keys > 0]

    def _known(self, rows: I64) -> tuple[I64, I64]:
        """Those of these links of which something was said, and where that is written."""
        if not self._urls.sheet.used:
            return rows[:0], rows[:0]
        rows = rows[rows >= 0]
        places = self._urls.find(self._memory.links.rows["id"][rows])
        return rows[places >= 0], places[places >= 0]

    def look(self, batch: Batch, rows: I64) -> None:
        """What domains yielded before counts for their hosts, as far as they are in this batch."""
        if not self._yields.sheet.used or not len(rows):
            return
        known, places = rows >= 0, self._memory.places
        mine, first = np.unique(self._memory.links.rows["places"][rows[known], 0], return_index=True)
        names = batch.hosts.name[batch.host[known][first]]
        said = self._yields.find(np.array([domain_of(str(name)) for name in names], np.uint64))
        hosts, stands = mine[said >= 0].astype(np.int64), self._standing(said[said >= 0])
        other = places.rows["history"][hosts] != stands
        places.rows["history"][hosts[other]] = stands[other]
        places.changed(hosts[other])
        self._memory.turn += len(hosts[other]) > 0

    def _standing(self, said: I64) -> F32:
        """What a domain yielded, as a difference of log-odds to what all did of which something was said."""
        every = self._yields.rows[self._yields.rows["key"] > 0]
        usual = (HALF + float((every["new"] / np.maximum(every["visited"], 1.0)).sum())) / (1.0 + len(every))
        rows = self._yields.rows[said]
        share = (rows["new"] + FEW_VISITS * usual) / (rows["visited"] + FEW_VISITS)
        found = np.log(share / (1.0 - share)) - np.log(usual / (1.0 - usual))
        return np.asarray(np.clip(found, -MOST_YIELD, MOST_YIELD), np.float32)


def domain_of(queue: str) -> int:
    """By its hash, as a crawler names its focus."""
    return int(urls.domain_hash(urls.domain_of(queue)), 16)
