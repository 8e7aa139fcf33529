"""feedstock's focused crawl as it is, for comparison: with its state, its table of Q, and its faults.

Of the links of a page one group is chosen and the others are thrown away (value -1: behind everything, for good); the
reward goes to the group that was chosen last, not to that of the page; the order of the queue ignores Q; of equal
groups the first on the page is chosen; only links to the same host are followed, and only so deep.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.arms.naming import hashed
from crawlguide.strategies.groups.link_groups import merged, state_of
from crawlguide.strategies.shared.draws import uniform_by_id
from crawlguide.strategies.shared.learning import RecordTable, outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.tables import F64, I64
    from crawlguide.core.types import Ask, Batch, Lesson, Links
    from crawlguide.strategies.arms.link_features import Scan
    from crawlguide.strategies.groups import Options

URL = np.dtype([("id", np.uint64), ("value", np.float64), ("depth", np.int32), ("queued", np.int32)], align=True)
QUALITY = np.dtype([("id", np.uint64), ("q", np.float64), ("state", np.int64)], align=True)
HOST = np.dtype([("id", np.uint64)])
CRAWL = np.dtype(
    [
        ("epsilon", np.float64),
        ("relevance", np.float64),  # sum of all pages
        ("draws", np.int64),
        ("pages", np.int64),
        ("waiting", np.int64),
        ("updates", np.int64),
        ("chosen", np.int64),  # 1 + row in the table of Q that was chosen last; 0: none
    ],
    align=True,
)
THROWN_AWAY = -1.0
LARGEST = 2.0  # of a priority (share of words + relevance of the page), which is brought to 0…1


def updated(q: float, reward: float, best_next: float, rate: float, discount: float) -> float:
    """Q(s, a) + α · (r + γ · max Q(s′, a′) − Q(s, a))"""
    return q + rate * (reward + discount * best_next - q)


class Feedstock:
    version = "groups-faithful"

    def __init__(self, options: Options, scan: Scan, seed: int) -> None:
        self._options, self._scan, self._seed = options, scan, seed
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._urls = RecordTable(notebook.sheet("fs-urls", URL))
        self._hosts = RecordTable(notebook.sheet("fs-hosts", HOST))
        self._qualities = RecordTable(notebook.sheet("fs-q", QUALITY))
        self._crawls = notebook.sheet("fs-all", CRAWL)
        if not self._crawls.used:
            self._crawls.fit(1)
            self._crawl["epsilon"] = self._options.epsilon
        self._of_state: defaultdict[int, list[int]] = defaultdict(list)  # rows of the table
        for row, state in enumerate(self._qualities.records["state"][: self._qualities.sheet.used].tolist()):
            self._of_state[state].append(row)

    def predict(self, batch: Batch) -> F64:
        return self._urls.column("value", batch.id, THROWN_AWAY)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        """It does not look at what is being fetched."""

    def learn(self, lesson: Lesson) -> None:
        links = lesson.links
        pages, rows = self._claim(lesson.fetches.id), self._claim(links.id)
        seeds = links.parent < 0
        if seeds.any():
            self._hosts.claim(hashed(sorted(set(links.host[seeds]))))
            self._queue(rows[seeds], 1.0, 0)
        reward = np.nan_to_num(outcomes(lesson).reward)
        starts = np.searchsorted(links.parent, np.arange(len(pages) + 1))
        for page, row in enumerate(pages.tolist()):
            mine = slice(int(starts[page]), int(starts[page + 1]))
            self._fetched(row, float(reward[page]))
            home = addresses.queue(lesson.fetches.url[page])
            self._follow(links.take(np.arange(mine.start, mine.stop)), rows[mine], home, row, float(reward[page]))
            left = self._crawl["epsilon"] * self._options.epsilon_decay
            self._crawl["epsilon"] = max(self._options.min_epsilon, left)
        self._urls.sheet.changed(np.concatenate([pages, rows]))

    def stats(self) -> Mapping[str, float]:
        """As `get_stats()`."""
        crawl, size = self._crawl, self._qualities.sheet.used
        return {"q_table_size": size, "epsilon": float(crawl["epsilon"]), "total_updates": int(crawl["updates"])}

    @property
    def _crawl(self) -> Any:
        self._crawls.changed(np.zeros(1, np.int64))
        return self._crawls.rows[0]

    def _claim(self, ids: Any) -> I64:
        rows, new = self._urls.claim(ids)
        self._urls.records["value"][rows[new]] = THROWN_AWAY
        return rows

    def _fetched(self, row: int, reward: float) -> None:
        crawl, options = self._crawl, self._options
        self._urls.records["queued"][row] = 2  # never again
        crawl["waiting"] -= 1
        crawl["pages"] += 1
        crawl["relevance"] += reward
        if crawl["chosen"]:
            q, chosen = self._qualities.records["q"], int(crawl["chosen"]) - 1
            following = self._of_state[self._state(row, reward)]
            best_next = max(0.0, float(q[following].max())) if following else 0.0
            q[chosen] = updated(q[chosen], reward, best_next, options.learning_rate, options.discount_factor)
            self._qualities.sheet.changed(np.array([chosen]))
            crawl["updates"] += 1

    def _follow(self, links: Links, rows: I64, home: str, page: int, reward: float) -> None:
        """One group of the page's links is queued, the others are lost: that is its fault."""
        depth = int(self._urls.records["depth"][page])
        wanted = (links.host == home) & (self._urls.records["queued"][rows] < 2)
        if depth >= self._options.max_depth or not wanted.any():
            return
        links, rows = links.take(wanted), rows[wanted]
        names = merged([addresses.link_group(url, home) for url in links.url], self._options.max_action_groups)
        chosen = self._chosen(self._state(page, reward), list(dict.fromkeys(names)))
        mine = np.array([name == chosen for name in names], np.bool_)
        words = self._scan.share(links.url[mine].tolist(), links.anchor[mine].tolist())
        self._queue(rows[mine], float(words.mean()) + reward, depth + 1)

    def _chosen(self, state: int, names: Sequence[str]) -> str:
        """ε-greedy; of equals the first."""
        crawl = self._crawl
        rows, new = self._qualities.claim(hashed([f"{state}|{name}" for name in names]))
        self._qualities.records["state"][rows[new]] = state
        self._qualities.sheet.changed(rows)
        self._of_state[state] += rows[new].tolist()
        crawl["draws"] += 2
        chance, which = (float(uniform_by_id(self._seed, int(crawl["draws"]) + more)[0]) for more in (0, 1))
        place = (
            int(which * len(names)) if chance < crawl["epsilon"] else int(self._qualities.records["q"][rows].argmax())
        )
        crawl["chosen"] = int(rows[place]) + 1
        return names[place]

    def _queue(self, rows: I64, priority: float, depth: int) -> None:
        """A URL may be queued again, and the higher priority counts."""
        urls = self._urls.records
        new = np.unique(rows[urls["queued"][rows] == 0])
        urls["depth"][new] = depth
        urls["queued"][new] = 1
        self._crawl["waiting"] += len(new)
        urls["value"][rows] = np.maximum(urls["value"][rows], priority / LARGEST)

    def _state(self, page: int, reward: float) -> int:
        crawl = self._crawl
        mean = crawl["relevance"] / max(crawl["pages"], 1)
        depth, pages = self._urls.records["depth"][page] / 10, crawl["pages"] / self._options.max_pages
        return state_of([depth, pages, mean, reward, crawl["waiting"] / 500, self._hosts.sheet.used / 50])
