"""Of every arm only its best few URLs stand in line, the others lie at the end of all queues.

What an arm is worth changes with every fetch, and with it the worth of all its URLs; but only those in line have to be
ranked anew. An arm has a floor: URLs whose key is not below it stand. It is let down when too few are left, and raised
when there are too many.
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
MOST_RANKED = 2_000  # what a learner may have ranked anew after a lesson
CROWDED = 4  # times as many as should stand


class Line:
    """The URLs that wait, by arm and key. All of it follows from the records, so none of it has to last."""

    def __init__(self, standing: int) -> None:
        self._standing = standing
        self._heaps = Heaps()

    def load(self, urls: Records, arms: int) -> None:
        """Line up all URLs that wait."""
        self._heaps = Heaps()
        self.push(np.flatnonzero(urls["state"] == WAITING), urls, arms)

    def push(self, rows: I64, urls: Records, arms: int) -> None:
        """Of equal keys the smaller id goes first, in whatever order they come."""
        self._heaps.fit(len(urls), arms)
        ties = (urls["id"][rows] >> np.uint64(1)).astype(np.int64)
        self._heaps.push(rows.astype(np.int32), urls["arm"][rows], urls["key"][rows], ties)

    def remove(self, rows: I64) -> None:
        self._heaps.remove(rows.astype(np.int32))

    def move(self, rows: I64, urls: Records) -> None:
        """Their keys are not as they were; rows that do not wait are left alone."""
        self._heaps.rekey(rows.astype(np.int32), urls["key"][rows])

    def first(self, arm: int) -> int:
        """The best row of an arm, -1 if none waits."""
        found = self._heaps.first(arm) if arm < len(self._heaps.groups) else None
        return -1 if found is None else found[1]

    @property
    def waiting(self) -> I64:
        """How many URLs of each arm wait."""
        sizes: I64 = self._heaps.groups["size"].astype(np.int64)
        return sizes

    def settle(self, arms: Records, which: I64, stirred: Mask) -> I64:
        """See to the floors of these arms; returns rows that stand or fall otherwise now, or whose arm was stirred."""
        found = np.empty(MOST_RANKED, np.int32)
        self._heaps.fit(0, int(which.max()) + 1 if len(which) else 0)
        count = settle(
            self._heaps.slots, self._heaps.groups, arms, which, stirred.astype(np.uint8), self._standing, found
        )
        return found[:count].astype(np.int64)


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
def better(slots, start, a, b):  # type: ignore[no-untyped-def]
    one, other = slots[start + a], slots[start + b]
    return one.key > other.key or (one.key == other.key and one.tie < other.tie)


@part
def key_of(slots, start, size, place, open_places):  # type: ignore[no-untyped-def]
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
def settle(slots, groups, arms, which, stirred, standing, found):  # type: ignore[no-untyped-def]
    """Floors where they belong; fills `found` with the items to rank anew and returns how many."""
    most = 2 * CROWDED * standing
    places, open_places, count = np.empty(most + 2, np.int64), np.empty(most + 2, np.int64), 0
    for number in range(len(which)):
        arm = arms[which[number]]
        start, size, old = groups[which[number]].start, groups[which[number]].size, arm.floor
        now = not_below(slots, start, size, old, places, most)
        if now <= standing // 2 and size > now:
            arm.floor = key_of(slots, start, size, standing - 1, open_places)
        elif now >= CROWDED * standing:
            arm.floor = key_of(slots, start, size, 2 * standing - 1, open_places)
        if stirred[number] or arm.floor != old:
            now = not_below(slots, start, size, min(old, arm.floor), places, most)
            for place in places[:now]:
                if count < len(found):
                    found[count] = slots[start + place].item
                    count += 1
    return count
