"""feedstock's state of a crawl: six values, each in one of three bins, as one number."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.arms.naming import hashed
from crawlguide.strategies.groups.learner import merged
from crawlguide.strategies.groups.tabular import binned
from crawlguide.strategies.shared.draws import drawn
from crawlguide.strategies.shared.outcomes import outcomes
from crawlguide.strategies.shared.record_table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.tables import F64, I64
    from crawlguide.core.types import Ask, Batch, Lesson, Links
    from crawlguide.strategies.arms.naming import Scan

# A table of Q by state and group. Where little is known of a group in a state, what it pays in all of them counts.

# feedstock's focused crawl as it is, for comparison: with its state, its table of Q, and its faults.
#
# Of the links of a page one group is chosen and the others are thrown away (worth -1: behind everything, for good); the
# reward goes to the group that was chosen last, not to that of the page; the order of the queue ignores Q; of equal
# groups the first on the page is chosen; only links to the same host are followed, and only so deep.

URL = np.dtype([("id", np.uint64), ("value", np.float64), ("depth", np.int32), ("queued", np.int32)], align=True)
QUALITY = np.dtype([("id", np.uint64), ("q", np.float64), ("state", np.int64)], align=True)
HOST = np.dtype([("id", np.uint64)])
CRAWL = np.dtype(
    [
        ("epsilon", np.float64),
        ("relevance", np.float64),  # of all pages
        ("draws", np.int64),
        ("pages", np.int64),
        ("waiting", np.int64),
        ("updates", np.int64),
        ("chosen", np.int64),  # row of the state and group that were chosen last, 1 added; 0: none
    ],
    align=True,
)
THROWN_AWAY = -1.0
LARGEST = 2.0  # words and relevance of the page, brought down to 0…1


class Settings(NamedTuple):
    """feedstock's names and defaults."""

    epsilon: float = 0.15
    epsilon_decay: float = 0.995
    min_epsilon: float = 0.05
    discount_factor: float = 0.9
    learning_rate: float = 0.2
    max_action_groups: int = 10
    max_depth: int = 3
    max_pages: int = 100


class Feedstock:
    version = "groups-faithful"

    def __init__(self, settings: Settings, scan: Scan, seed: int) -> None:
        self._settings, self._scan, self._seed = settings, scan, seed
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._known = RecordTable(notebook.sheet("fs-urls", URL))
        self._hosts = RecordTable(notebook.sheet("fs-hosts", HOST))
        self._table = RecordTable(notebook.sheet("fs-q", QUALITY))
        self._all = notebook.sheet("fs-all", CRAWL)
        if not self._all.used:
            self._all.fit(1)
            self._crawl["epsilon"] = self._settings.epsilon
        self._of_state: defaultdict[int, list[int]] = defaultdict(list)  # rows of the table
        for row, state in enumerate(self._table.records["state"][: self._table.sheet.used].tolist()):
            self._of_state[state].append(row)

    def predict(self, batch: Batch) -> F64:
        rows = self._known.find(batch.id)
        value = np.full(len(batch), THROWN_AWAY)
        value[rows >= 0] = self._known.records["value"][rows[rows >= 0]]
        return value

    def assigned(self, batch: Batch, ask: Ask) -> None:
        """It does not look at what is under way."""

    def learn(self, lesson: Lesson) -> None:
        links = lesson.links
        pages, rows = self._claimed(lesson.fetches.id), self._claimed(links.id)
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
            left = self._crawl["epsilon"] * self._settings.epsilon_decay
            self._crawl["epsilon"] = max(self._settings.min_epsilon, left)
        self._known.sheet.changed(np.concatenate([pages, rows]))

    def stats(self) -> Mapping[str, float]:
        """As `get_stats()`."""
        crawl = self._crawl
        size = self._table.sheet.used
        return {"q_table_size": size, "epsilon": float(crawl["epsilon"]), "updates": int(crawl["updates"])}

    @property
    def _crawl(self) -> Any:
        self._all.changed(np.zeros(1, np.int64))
        return self._all.rows[0]

    def _claimed(self, ids: Any) -> I64:
        rows, new = self._known.claim(ids)
        self._known.records["value"][rows[new]] = THROWN_AWAY
        return rows

    def _fetched(self, row: int, reward: float) -> None:
        crawl, settings = self._crawl, self._settings
        self._known.records["queued"][row] = 2  # never again
        crawl["waiting"] -= 1
        crawl["pages"] += 1
        crawl["relevance"] += reward
        if crawl["chosen"]:
            table, chosen = self._table.records, int(crawl["chosen"]) - 1
            following = self._of_state[self._state(row, reward)]
            best = max(0.0, float(table["q"][following].max())) if following else 0.0
            goal = reward + settings.discount_factor * best
            table["q"][chosen] += settings.learning_rate * (goal - table["q"][chosen])
            self._table.sheet.changed(np.array([chosen]))
            crawl["updates"] += 1

    def _follow(self, links: Links, rows: I64, home: str, page: int, reward: float) -> None:
        """One group of the page's links is queued; what happens to the others is its fault."""
        depth = int(self._known.records["depth"][page])
        wanted = (links.host == home) & (self._known.records["queued"][rows] < 2)
        if depth >= self._settings.max_depth or not wanted.any():
            return
        links, rows = links.take(wanted), rows[wanted]
        names = merged([addresses.link_group(url, home) for url in links.url], self._settings.max_action_groups)
        chosen = self._chosen(self._state(page, reward), list(dict.fromkeys(names)))
        mine = np.array([name == chosen for name in names], np.bool_)
        words = self._scan.share(links.url[mine].tolist(), links.anchor[mine].tolist())
        self._queue(rows[mine], float(words.mean()) + reward, depth + 1)

    def _chosen(self, state: int, names: Sequence[str]) -> str:
        """ε-greedy; of equals the first."""
        crawl = self._crawl
        rows, new = self._table.claim(hashed([f"{state}|{name}" for name in names]))
        self._table.records["state"][rows[new]] = state
        self._table.sheet.changed(rows)
        self._of_state[state] += rows[new].tolist()
        crawl["draws"] += 2
        chance, which = (float(drawn(self._seed, int(crawl["draws"]) + more)[0]) for more in (0, 1))
        place = int(which * len(names)) if chance < crawl["epsilon"] else int(self._table.records["q"][rows].argmax())
        crawl["chosen"] = int(rows[place]) + 1
        return names[place]

    def _queue(self, rows: I64, priority: float, depth: int) -> None:
        """A URL may be queued again, and the higher priority counts."""
        known = self._known.records
        new = np.unique(rows[known["queued"][rows] == 0])
        known["depth"][new] = depth
        known["queued"][new] = 1
        self._crawl["waiting"] += len(new)
        known["value"][rows] = np.maximum(known["value"][rows], priority / LARGEST)

    def _state(self, page: int, reward: float) -> int:
        crawl = self._crawl
        mean = crawl["relevance"] / max(crawl["pages"], 1)
        depth, pages = self._known.records["depth"][page] / 10, crawl["pages"] / self._settings.max_pages
        return binned([depth, pages, mean, reward, crawl["waiting"] / 500, self._hosts.sheet.used / 50])
