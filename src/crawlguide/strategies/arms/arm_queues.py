"""The URLs of each arm that wait, best first. Only the best few of an arm are active; the others are parked.

The value of an arm changes with every fetch, and with it the value of all its URLs. To rank thousands of them again
would cost too much, so only the active ones are ranked by the value of their arm; parked URLs wait at the end of the
frontier. The `floor` of an arm separates them: URLs whose key is at least the floor are active. It is lowered when too
few are left, and raised when there are too many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import i32s, i64s, kernel, one_i64, part, records, u8s
from crawlguide.store.queues.heaps import GROUPS, SLOTS, Heaps
from crawlguide.strategies.arms.records import ARM, WAITING

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import I64, Mask

ARMS = records(ARM)
MOST_RANKED = 2_000  # URLs that a learner may have ranked again after a lesson
CROWDED = 4  # times as many active URLs as there should be: then the floor is raised


class ArmQueues:
    """A heap of URLs for each arm, by key. It follows from the records of URLs, so it is not stored."""

    def __init__(self, active: int) -> None:
        self._active = active
        self._heaps = Heaps()

    def load(self, urls: Records, arms: int) -> None:
        """Fill the queues with all URLs that wait."""
        self._heaps = Heaps()
        self.push(np.flatnonzero(urls["state"] == WAITING), urls, arms)

    def fit(self, urls: Records, arms: int) -> None:
        """Make room for all URLs and arms: the kernels check no bounds."""
        self._heaps.fit(len(urls), arms)

    def push(self, rows: I64, urls: Records, arms: int) -> None:
        """Ties go by id, in whatever order they come."""
        self.fit(urls, arms)
        ties = (urls["id"][rows] >> np.uint64(1)).astype(np.int64)
        self._heaps.push(rows.astype(np.int32), urls["arm"][rows], urls["key"][rows], ties)

    def remove(self, rows: I64) -> None:
        self._heaps.remove(rows.astype(np.int32))

    def move(self, rows: I64, urls: Records) -> None:
        """The keys of these rows changed; rows that do not wait are left alone."""
        self._heaps.rekey(rows.astype(np.int32), urls["key"][rows])

    def first(self, arm: int) -> int:
        """The best row of an arm, -1 if none waits."""
        out = self._heaps.first(arm) if arm < len(self._heaps.groups) else None
        return -1 if out is None else out[1]

    @property
    def sizes(self) -> I64:
        """How many URLs of each arm wait."""
        sizes: I64 = self._heaps.groups["size"].astype(np.int64)
        return sizes

    def set_floors(self, arms: Records, which: I64, changed: Mask) -> I64:
        """Set the floors of these arms; returns the rows to rank again.

        Those are rows that became active or parked, and the active rows of arms whose value `changed`.
        """
        out = np.empty(MOST_RANKED, np.int32)
        self._heaps.fit(0, int(which.max()) + 1 if len(which) else 0)
        slots, groups = self._heaps.slots, self._heaps.groups
        count = set_floors(slots, groups, arms, which, changed.astype(np.uint8), self._active, out)
        return out[:count].astype(np.int64)


@part
def better(slots, start, a, b):  # type: ignore[no-untyped-def]
    one, other = slots[start + a], slots[start + b]
    return one.key > other.key or (one.key == other.key and one.tie < other.tie)


@part
def not_below(slots, start, size, floor, places, most):  # type: ignore[no-untyped-def]
    """How many items of a heap have at least this key, and their places; no more than `most`."""
    if size == 0 or slots[start].key < floor:
        return 0
    places[0] = 0
    count, looked = 1, 0
    while looked < count:
        at = places[looked]
        looked += 1
        for below in range(2 * at + 1, min(2 * at + 3, size)):
            if count < most and slots[start + below].key >= floor:
                places[count] = below
                count += 1
    return count


@part
def key_at(slots, start, size, place, open_places):  # type: ignore[no-untyped-def]
    """The key of the item that is so many places behind the best; 0 if there are not so many."""
    if size <= place:
        return 0.0
    open_places[0] = 0
    count = 1
    while True:
        best = 0
        for number in range(1, count):
            if better(slots, start, open_places[number], open_places[best]):
                best = number
        at = open_places[best]
        if place == 0:
            return slots[start + at].key
        place -= 1
        count -= 1
        open_places[best] = open_places[count]
        for below in range(2 * at + 1, min(2 * at + 3, size)):
            open_places[count] = below
            count += 1


@kernel(one_i64(SLOTS, GROUPS, ARMS, i64s, u8s, one_i64, i32s))
def set_floors(slots, groups, arms, which, changed, active, out):  # type: ignore[no-untyped-def]
    """Fills `out` with the rows to rank again and returns how many there are."""
    most = 2 * CROWDED * active
    places, open_places, count = np.empty(most + 2, np.int64), np.empty(most + 2, np.int64), 0
    for number in range(len(which)):
        arm = arms[which[number]]
        start, size, old = groups[which[number]].start, groups[which[number]].size, arm.floor
        now = not_below(slots, start, size, old, places, most)
        if now <= active // 2 and size > now:
            arm.floor = key_at(slots, start, size, active - 1, open_places)
        elif now >= CROWDED * active:
            arm.floor = key_at(slots, start, size, 2 * active - 1, open_places)
        if changed[number] or arm.floor != old:
            now = not_below(slots, start, size, min(old, arm.floor), places, most)
            for place in places[:now]:
                if count < len(out):
                    out[count] = slots[start + place].item
                    count += 1
    return count
