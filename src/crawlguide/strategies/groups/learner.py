"""feedstock's link groups, with its faults mended: the best links of the groups that pay best come first.

    value   = (Q(s, g) + share of relevant pages among those that link here + share of the goal's words) / 3
    Q(g)    = (Σ (1 − α)^age · reward + expected first reward) / (Σ (1 − α)^age + 1)
    Q(s, g) = the same in the state the crawl is in, drawn towards Q(g) while little is known of it

Every fetch is credited to the group of its own page and no link is thrown away, so no guess about what follows (γ) is
needed. A group that was never tried is expected to pay what others paid when they were tried first. With every fetch,
and with probability ε, the best link of a random group goes before all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_f64, records
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.arms.arm_table import ArmTable
from crawlguide.strategies.arms.naming import hashed
from crawlguide.strategies.groups.link_groups import state_of
from crawlguide.strategies.shared.draws import mixed_with, uniform_by_id
from crawlguide.strategies.shared.learning import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.notebook import Sheet
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson
    from crawlguide.strategies.arms.arm_table import ArmLesson, ArmSettings
    from crawlguide.strategies.groups import Options

CHANGED = 0.02  # a change of Q for which the group's links are ranked again
LITTLE = 3.0  # fetches of a group in a state, before Q(s, g) counts as much as Q(g)
NOTHING: U64 = np.zeros(0, np.uint64)
HOST = np.dtype([("id", np.uint64)])
CELL = np.dtype([("id", np.uint64), ("plays", np.float64), ("reward", np.float64)])
CELLS = records(CELL)


class Groups:
    version = "groups-1"

    def __init__(self, settings: ArmSettings, options: Options) -> None:
        self._settings, self._options = settings, options
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        prefix = self._settings.prefix
        self._table = ArmTable(self._settings, notebook, self._key, self._value)
        self._qualities = QTable(notebook.sheet(f"{prefix}q", CELL), self._settings.decay)
        self._hosts = RecordTable(notebook.sheet(f"{prefix}hosts", HOST))
        if self._table.is_new:
            self._table.crawl["epsilon"] = self._options.epsilon

    def predict(self, batch: Batch) -> F64:
        return self._table.predict(batch)

    def assigned(self, batch: Batch, ask: Ask) -> None:
        self._table.assigned(batch)

    def learn(self, lesson: Lesson) -> U64:
        table, state = self._table, int(self._table.crawl["state"])
        learned = table.learn(lesson)
        group = table.urls["arm"][learned.fetched]
        counted = np.flatnonzero(learned.counted & (group >= 0))
        self._qualities.learn(state, table.arms["id"][group[counted]], learned.reward[counted])
        self._enter_state(lesson, learned, counted)
        now = self._quality(learned.arms)
        changed = np.abs(now - table.arms["value"][learned.arms]) > CHANGED
        table.arms["value"][learned.arms[changed]] = now[changed]
        explored = [self._explore() for _ in range(self._explorations(len(counted)))]
        return np.concatenate([*explored, table.to_rank(learned.arms, changed)])

    def stats(self) -> Mapping[str, float]:
        """As feedstock's `get_stats()`."""
        crawl, size = self._table.crawl, len(self._qualities)
        return {"q_table_size": size, "epsilon": float(crawl["epsilon"]), "total_updates": int(crawl["updates"])}

    def _enter_state(self, lesson: Lesson, learned: ArmLesson, counted: I64) -> None:
        """The state that the crawl is in from now on: feedstock's six values of it."""
        table, crawl = self._table, self._table.crawl
        hosts, new = self._hosts.claim(hashed(sorted(set(lesson.links.host))))
        self._hosts.sheet.changed(hosts[new])
        crawl["updates"] += len(counted)
        if len(counted):
            crawl["pages"] += len(counted)
            crawl["reward"] += learned.reward[counted].sum()
            mean, last = crawl["reward"] / crawl["pages"], learned.reward[counted[-1]]
            depth, pages = (
                table.urls["depth"][learned.fetched[counted[-1]]] / 10,
                crawl["pages"] / self._options.max_pages,
            )
            crawl["state"] = state_of([depth, pages, mean, last, table.waiting / 500, self._hosts.sheet.used / 50])

    def _value(self, rows: I64) -> F64:
        urls = self._table.urls
        value: F64 = (self._quality(urls["arm"][rows]) + urls["key"][rows]) / 3.0
        return value

    def _key(self, rows: I64) -> F64:
        """What speaks for a link within its group."""
        urls = self._table.urls
        relevant_pages = (urls["total"][rows] + 0.5) / (urls["parents"][rows] + 2.0)
        value: F64 = relevant_pages + urls["words"][rows]
        return value

    def _quality(self, groups: I64) -> F64:
        """Q of these groups in the present state."""
        arms, prior = self._table.arms, self._table.expected_first_reward(self._options.optimism)
        overall = (arms["reward"][groups] + prior) / (arms["plays"][groups] + 1.0)
        return self._qualities.of(int(self._table.crawl["state"]), arms["id"][groups], overall)

    def _explorations(self, pages: int) -> int:
        """So many pages more were fetched: with each ε falls, and with probability ε another group is to be tried."""
        crawl, passed, decay = self._table.crawl, np.arange(pages), self._options.epsilon_decay
        epsilon = np.maximum(crawl["epsilon"] * decay**passed, self._options.min_epsilon)
        crawl["epsilon"] = max(crawl["epsilon"] * decay**pages, self._options.min_epsilon)
        chance = uniform_by_id(self._settings.seed, self._next_draw(), passed.astype(np.uint64))
        return int(np.count_nonzero(chance < epsilon))

    def _explore(self) -> U64:
        """The best link of a random group goes before all others."""
        groups = self._table.nonempty()
        if not len(groups):
            return NOTHING
        names = self._table.arms["id"][groups]  # drawn by name, so that the order in which they came does not count
        chance = uniform_by_id(self._settings.seed, self._next_draw(), names)
        return self._table.best_to_front(int(groups[chance.argmin()]))

    def _next_draw(self) -> int:
        crawl = self._table.crawl
        crawl["draws"] += 1
        return int(crawl["draws"])


class QTable:
    """Q by state and group. `decay` is how much of what was learned still counts after the next fetch."""

    def __init__(self, sheet: Sheet, decay: float) -> None:
        self._cells, self._decay = RecordTable(sheet), decay

    def __len__(self) -> int:
        return self._cells.sheet.used

    def of(self, state: int, groups: U64, overall: F64) -> F64:
        """Q of these groups in a state, given what each of them pays in all states."""
        rows = self._cells.find(_cell_ids(state, groups))
        if not len(self):
            return overall
        plays, reward = self._cells.records["plays"][rows], self._cells.records["reward"][rows]
        return np.where(rows < 0, overall, (reward + LITTLE * overall) / (plays + LITTLE))

    def learn(self, state: int, groups: U64, reward: F64) -> None:
        """Fetches of these groups in a state, one after the other."""
        rows, _ = self._cells.claim(_cell_ids(state, groups))
        add(self._cells.records, rows, reward, self._decay)
        self._cells.sheet.changed(rows)


def _cell_ids(state: int, groups: U64) -> U64:
    return mixed_with(groups, int(mixed_with(np.array([state + 1], np.uint64), 0)[0]))


@kernel(nothing(CELLS, i64s, f64s, one_f64))
def add(cells, rows, reward, decay):  # type: ignore[no-untyped-def]
    for number in range(len(rows)):
        cell = cells[rows[number]]
        cell.plays = decay * cell.plays + 1.0
        cell.reward = decay * cell.reward + reward[number]
