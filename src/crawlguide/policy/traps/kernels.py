"""The budgets of templates, and what was met before, looked at for a whole batch at once."""

import numba
import numpy as np

from crawlguide.core.kernels import F64, I32, I64, MASK, U64, kernel, matrix_i32, matrix_i64, nothing, one_f64, part
from crawlguide.policy.traps.letters import joined

MATRIX_U64 = numba.uint64[:, ::1]


@part
def left_of(number, used, paid, suspicion, levels, start, growth, proven):  # type: ignore[no-untyped-def]
    """How many more pages of a template may be fetched before one of them has to pay."""
    if number == 0:
        return np.inf
    trust = 1.0 - suspicion[number]
    tightest = growth * trust * paid[number] - used[number]
    if paid[number] < proven:
        for place in range(levels.shape[1]):
            level = levels[number, place]
            tightest = min(tightest, growth * trust * paid[level] - used[level])
    return start * trust * trust + tightest


@kernel(nothing(I32, F64, F64, F64, matrix_i32, one_f64, one_f64, one_f64, F64))
def count_left(numbers, used, paid, suspicion, levels, start, growth, proven, left):  # type: ignore[no-untyped-def]
    for row in range(len(numbers)):
        left[row] = left_of(numbers[row], used, paid, suspicion, levels, start, growth, proven)


@kernel(nothing(I32, F64, F64, F64, matrix_i32, one_f64, one_f64, one_f64, one_f64, one_f64, I32, MASK))
def choose(numbers, used, paid, suspicion, levels, start, growth, proven, suspect, at_once, taken, keep):  # type: ignore[no-untyped-def]
    """Best first: a template that gives no ground for suspicion may give all, another only a few in one answer.

    `taken` is a column of zeros, and one again at the end.
    """
    for row in range(len(numbers)):
        number = numbers[row]
        left = left_of(number, used, paid, suspicion, levels, start, growth, proven)
        host = levels[number, 1]
        faultless = used[host] <= paid[host] and suspicion[number] < suspect
        free = number == 0 or faultless or paid[number] >= proven
        keep[row] = left > 0 and (free or taken[number] < min(np.ceil(left), at_once))
        taken[number] += keep[row]
    for number in numbers:
        taken[number] = 0


@part
def slot_of(key, slots, keys):  # type: ignore[no-untyped-def]
    """Where the number of a key stands, or has to stand."""
    last = np.uint64(len(slots) - 1)
    at = key & last
    while slots[at] != 0 and keys[slots[at]] != key:
        at = (at + np.uint64(1)) & last
    return at


@part
def opened(key, slots, keys, count, suspicion):  # type: ignore[no-untyped-def]
    """The account of a key, a new one if there is none; 0: there is no room."""
    at = slot_of(key, slots, keys)
    if slots[at] == 0 and count[0] + 1 < len(keys):
        count[0] += 1
        slots[at], keys[count[0]], suspicion[count[0]] = count[0], key, 1.0
    return slots[at]


@kernel(nothing(MATRIX_U64, F64, I32, U64, I64, matrix_i32, F64, I32))
def open_accounts(keys_of, much, slots, keys, count, levels, suspicion, numbers):  # type: ignore[no-untyped-def]
    """The least suspicious URL of a template speaks for all of them."""
    for row in range(len(much)):
        numbers[row] = opened(keys_of[0, row], slots, keys, count, suspicion) if keys_of[0, row] != 0 else 0
        own = numbers[row]
        if own != 0 and levels[own, 0] == 0:
            levels[own, 0] = own
            for level in range(1, levels.shape[1]):
                levels[own, level] = opened(keys_of[level, row], slots, keys, count, suspicion)
        suspicion[own] = min(suspicion[own], much[row])


@kernel(nothing(MATRIX_U64, F64, I32, U64, F64, I32))
def find_accounts(keys_of, much, slots, keys, suspicion, numbers):  # type: ignore[no-untyped-def]
    for row in range(len(much)):
        number = slots[slot_of(keys_of[0, row], slots, keys)] if keys_of[0, row] != 0 else 0
        numbers[row] = number if much[row] >= suspicion[number] else 0


@part
def met_one(key, owner, keys, owners):  # type: ignore[no-untyped-def]
    """Was a key met before with another owner? From now on it was met."""
    place = key & np.uint64(len(keys) - 1)
    if keys[place] == key:
        return owners[place] != owner
    keys[place], owners[place] = key, owner
    return False


@kernel(nothing(U64, U64, U64, U64, MASK))
def meet(found, by, keys, owners, met):  # type: ignore[no-untyped-def]
    for row in range(len(found)):
        met[row] = met_one(found[row], by[row], keys, owners)


@kernel(nothing(I64, MASK, U64, U64, U64, U64, MASK, U64, U64, matrix_i64))
def spread(parent, local, coarse, words, ids, own, refused, keys, owners, counts):  # type: ignore[no-untyped-def]
    """For each page how many of its links echo, lead further inside, and elsewhere (see `lessons.py`)."""
    for link in range(len(parent)):
        page = parent[link]
        met = words[link] != 0 and met_one(joined(coarse[link], words[link]), ids[link], keys, owners)
        if met or refused[link]:
            counts[page, 0] += 1
        elif local[link] and coarse[link] == own[page]:
            counts[page, 1] += 1
        else:
            counts[page, 2] += 1
