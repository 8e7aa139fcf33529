"""The outer tier follows the inner one: groups ordered by the best item they hold."""

from crawlguide.core.kernels import I32, I64, kernel, one_i64
from crawlguide.store.kernels.heaps import GROUPS, ITEMS, SLOTS, push_one, rekey_one, remove_one

OPEN, SHUT = 0, 1


@kernel(one_i64(SLOTS, GROUPS, SLOTS, GROUPS, ITEMS, I64, I64, I32, one_i64))
def settle(slots, groups, outer_slots, outer_groups, outer_items, free, used, which, done):
    """Bring the outer tier in line with what these groups now hold: an empty one leaves, a shut one stays shut.

    Returns how many groups are done: fewer than all if the outer slots must grow first.
    """
    for number in range(done, len(which)):
        group = which[number]
        if groups[group].size == 0:
            remove_one(outer_slots, outer_groups, outer_items, group)
            continue
        queued = outer_items[group].place >= 0
        if queued and outer_items[group].group == SHUT:
            continue
        head = slots[groups[group].start]
        if queued:
            rekey_one(outer_slots, outer_groups, outer_items, group, head.key, head.tie)
        elif not push_one(outer_slots, outer_groups, outer_items, free, used, group, OPEN, head.key, head.tie):
            return number
    return len(which)
