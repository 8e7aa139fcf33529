"""What crawlers say when they ask: numbers of their own about URLs, and what their domains yielded before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core import urls
from crawlguide.core.places import Places
from crawlguide.predictors.known import Known
from crawlguide.predictors.layered import signals
from crawlguide.predictors.layered.signals import MOST_OF_A_URL, SIGNAL, TOLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F32, I64, U64
    from crawlguide.core.types import Ask, Batch
    from crawlguide.predictors.layered.memory import Memory

YIELD = np.dtype([("key", np.uint64), ("visited", np.float64), ("new", np.float64)])  # of a registrable domain
MOST_SIGNALS, MOST_URLS, MOST_DOMAINS = 1_024, 1 << 16, 1 << 12
HEARD_AT_ONCE, STIRRED = 1_000, 256  # URLs of one ask, and places whose URLs a tell ranks anew
FEW_VISITS, HALF = 3.0, 0.5
MOST_YIELD = 3.0  # log-odds
NOTHING: U64 = np.zeros(0, np.uint64)


class Told:
    def __init__(self, notebook: Notebook, memory: Memory) -> None:
        self._memory = memory
        self._signals = Known(notebook.sheet("signals", SIGNAL))
        self._urls = Places(TOLD, notebook.sheet("told", TOLD), MOST_URLS)
        self._yields = Places(YIELD, notebook.sheet("yields", YIELD), MOST_DOMAINS)
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
        signals.notice(place, self._urls.rows, self._signals.records)
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
            signals.weigh(rows, places, self._urls.rows, self._signals.records, links.rows)
            other = rows[links.rows["outside"][rows] != before]
            links.changed(other)
            self._memory.turn += len(other) > 0

    def learn(self, rows: I64, label: F32) -> None:
        """These links turned out to be worth so much: so numbers weigh more or less."""
        mine, places = self._known(rows)
        if len(mine):
            worth = dict(zip(rows.tolist(), label.tolist(), strict=True))
            labels = np.array([worth[row] for row in mine.tolist()], np.float32)
            signals.learn(places, labels, self._urls.rows, self._signals.records, self._memory.crawl.rows)
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
