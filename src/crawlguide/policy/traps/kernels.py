"""The budgets of templates, and what was met before, looked at for a whole batch at once."""

import numba
import numpy as np

from crawlguide.core.kernels import (
    bools,
    f64s,
    fixed_bytes,
    flag,
    i8s,
    i32s,
    i64s,
    kernel,
    matrix_i64,
    nothing,
    one_f64,
    one_i64,
    part,
    records,
    u64s,
)
from crawlguide.core.url_bytes import LINE_END, find, joined, skeleton

ACCOUNT = np.dtype(
    [("key", np.uint64), ("used", np.float64), ("paid", np.float64), ("suspicion", np.float64)]
    + [(level, np.int32) for level in ("own", "part", "fine", "coarse")]
    + [(count, np.int32) for count in ("pages", "copies", "probes", "taken")],
    align=True,
)
ACCOUNTS = records(ACCOUNT)
MATRIX_U64 = numba.uint64[:, ::1]
CERTAIN_FORM, COPY = 1, 2
IS_OPEN, RESTS, IS_OVER = 0, 1, 2  # states of a template


@part
def left_of(account, accounts, start, growth, proven):  # type: ignore[no-untyped-def]
    """How many more pages of a template may be fetched before one of them has to pay."""
    trust = 1.0 - account.suspicion
    tightest = growth * trust * account.paid - account.used
    if account.paid < proven:
        for level in (account.part, account.fine, account.coarse):
            wider = accounts[level]
            tightest = min(tightest, growth * trust * wider.paid - wider.used)
    return start * trust * trust + tightest


@kernel(nothing(i32s, ACCOUNTS, one_f64, one_f64, one_f64, f64s))
def count_left(numbers, accounts, start, growth, proven, left):  # type: ignore[no-untyped-def]
    for row in range(len(numbers)):
        number = numbers[row]
        left[row] = left_of(accounts[number], accounts, start, growth, proven) if number != 0 else np.inf


@part
def over_for_good(account, accounts, own_probes, all_probes):  # type: ignore[no-untyped-def]
    """Of a template without budget: its pages were mostly copies, or it has been probed in vain often enough."""
    for level in (account.own, account.part, account.fine, account.coarse):
        if 2 * accounts[level].copies > accounts[level].pages:
            return True
    return account.probes >= own_probes or accounts[account.coarse].probes >= all_probes


@kernel(nothing(i32s, ACCOUNTS, one_f64, one_f64, one_f64, one_i64, one_i64, i8s))
def count_states(numbers, accounts, start, growth, proven, own_probes, all_probes, states):  # type: ignore[no-untyped-def]
    for row in range(len(numbers)):
        account = accounts[numbers[row]]
        states[row] = IS_OPEN
        if numbers[row] != 0 and left_of(account, accounts, start, growth, proven) <= 0:
            states[row] = IS_OVER if over_for_good(account, accounts, own_probes, all_probes) else RESTS


@part
def give_back(numbers, accounts):  # type: ignore[no-untyped-def]
    for number in numbers:
        accounts[number].taken = 0
        accounts[accounts[number].fine].taken = 0
        accounts[accounts[number].coarse].taken = 0


@kernel(one_i64(i32s, f64s, ACCOUNTS, one_f64, one_f64, one_f64, one_f64, one_f64, bools))
def choose(numbers, given, accounts, start, growth, proven, suspect, at_once, keep):  # type: ignore[no-untyped-def]
    """Best first: a template that gives no ground for suspicion may give all, another only a few in one answer, and so
    may all hosts together of one that looks doubtful and has not paid anywhere.

    Whoever sets a priority by hand knows what it is for. What was taken is 0 in all accounts, and again at the end.
    Returns how many rows are kept.
    """
    count = 0
    for row in range(len(numbers)):
        account = accounts[numbers[row]]
        keep[row] = True
        if numbers[row] != 0:
            left, fine = left_of(account, accounts, start, growth, proven), accounts[account.fine]
            around = accounts[account.part]
            faultless = around.used <= around.paid and account.suspicion < suspect
            free = faultless or account.paid >= proven
            chosen = left > 0 and (free or account.taken < min(np.ceil(left), at_once))
            if account.suspicion > 0 and account.fine != 0 and account.paid < proven and fine.paid < proven:
                chosen = chosen and fine.taken < at_once
                fine.taken += chosen
            account.taken += chosen
            keep[row] = chosen or not np.isnan(given[row])
        count += keep[row]
    give_back(numbers, accounts)
    return count


@kernel(nothing(i32s, i8s, ACCOUNTS, bools))
def probe(numbers, states, accounts, keep):  # type: ignore[no-untyped-def]
    """There is nothing else: one page of each kind of template that rests, whatever the host."""
    for row in range(len(numbers)):
        coarse = accounts[accounts[numbers[row]].coarse]
        keep[row] = states[row] == RESTS and coarse.taken == 0
        coarse.taken += keep[row]
    give_back(numbers, accounts)


@kernel(nothing(ACCOUNTS, one_i64, one_f64, one_f64, flag, flag, flag))
def note(accounts, number, used, paid, everywhere, copied, probed):  # type: ignore[no-untyped-def]
    """Each of its levels hears of it once: home pages, and what there was no room for, have no account.

    A page that pays makes up for all probes in vain before it.
    """
    own = accounts[number]
    levels = (own.own, own.part, own.fine, own.coarse)
    for place in range(4 if everywhere else 2):
        if levels[place] != 0:
            level = accounts[levels[place]]
            level.used += used
            level.paid += paid
            level.pages += 1
            level.copies += copied
            if paid >= 1.0:
                level.probes = 0
            elif probed and (place in (0, 3)):
                level.probes += 1


@part
def slot_of(key, slots, accounts):  # type: ignore[no-untyped-def]
    """Where the number of a key stands, or has to stand."""
    last = np.uint64(len(slots) - 1)
    at = key & last
    while slots[at] != 0 and accounts[slots[at]].key != key:
        at = (at + np.uint64(1)) & last
    return at


@part
def opened(key, slots, accounts, count):  # type: ignore[no-untyped-def]
    """The account of a key, a new one if there is none; 0: there is no room."""
    at = slot_of(key, slots, accounts)
    if slots[at] == 0 and count[0] + 1 < len(accounts):
        count[0] += 1
        slots[at] = count[0]
        accounts[count[0]].key, accounts[count[0]].suspicion = key, 1.0
    return slots[at]


@part
def account_of(row, keys, much, slots, accounts, count):  # type: ignore[no-untyped-def]
    """The account of a URL's template on its host; the least suspicious URL speaks for all of them."""
    number = opened(keys[0, row], slots, accounts, count) if keys[0, row] != 0 else 0
    account = accounts[number]
    if number != 0 and account.own == 0:
        account.own = number
        account.part = opened(keys[1, row], slots, accounts, count)
        account.fine = opened(keys[2, row], slots, accounts, count)
        account.coarse = opened(keys[3, row], slots, accounts, count)
    account.suspicion = min(account.suspicion, much[row])
    return number


@kernel(nothing(MATRIX_U64, f64s, i32s, ACCOUNTS, i64s, i32s))
def open_accounts(keys, much, slots, accounts, count, numbers):  # type: ignore[no-untyped-def]
    for row in range(len(much)):
        numbers[row] = account_of(row, keys, much, slots, accounts, count)


@kernel(nothing(MATRIX_U64, f64s, i32s, ACCOUNTS, i64s, one_f64, one_f64, one_f64, one_i64, one_i64, i32s, bools))
def over_at_sight(keys, much, slots, accounts, count, start, growth, proven, own_probes, all_probes, numbers, over):  # type: ignore[no-untyped-def]
    """Whose template is over, by what was known when each URL was found: later ones do not speak for it."""
    for row in range(len(much)):
        number = numbers[row] = account_of(row, keys, much, slots, accounts, count)
        account = accounts[number]
        spent = number != 0 and left_of(account, accounts, start, growth, proven) <= 0
        over[row] = spent and over_for_good(account, accounts, own_probes, all_probes)


@kernel(one_i64(ACCOUNTS, i32s))
def index(accounts, slots):  # type: ignore[no-untyped-def]
    """Find accounts by their keys again; returns the highest number in use."""
    highest = 0
    for number in range(1, len(accounts)):
        if accounts[number].key != 0:
            slots[slot_of(accounts[number].key, slots, accounts)] = number
            highest = number
    return highest


@kernel(nothing(MATRIX_U64, f64s, i32s, ACCOUNTS, i32s))
def find_accounts(keys, much, slots, accounts, numbers):  # type: ignore[no-untyped-def]
    """Those that are open and as little suspicious as these URLs; 0 for the others."""
    for row in range(len(much)):
        number = slots[slot_of(keys[0, row], slots, accounts)] if keys[0, row] != 0 else 0
        numbers[row] = number if much[row] >= accounts[number].suspicion else 0


@part
def met(key, owner, keys, owners):  # type: ignore[no-untyped-def]
    """Was a key met before with another owner? From now on it was met."""
    place = key & np.uint64(len(keys) - 1)
    if keys[place] == key:
        return owners[place] != owner
    keys[place], owners[place] = key, owner
    return False


@kernel(nothing(f64s, u64s, u64s, u64s, one_f64, u64s, u64s, i8s))
def sight(much, bare, whole, clothed, certain, keys, owners, verdicts):  # type: ignore[no-untyped-def]
    """Which URLs are traps by their form, or another form of one that was met before; those with a verdict keep it."""
    for row in range(len(much)):
        if verdicts[row] == 0 and much[row] >= certain:
            verdicts[row] = CERTAIN_FORM
        elif verdicts[row] == 0 and met(bare[row], whole[row], keys, owners) and clothed[row] != 0:
            verdicts[row] = COPY


@kernel(nothing(i64s, u64s, u64s, u64s, u64s, u64s, bools, fixed_bytes, u64s, u64s, matrix_i64))
def spread(parent, here, part_of, words, ids, own, refused, anchors, keys, owners, counts):  # type: ignore[no-untyped-def]
    """For each page how many of its links echo, lead further inside, and elsewhere (see `lessons.py`)."""
    start = 0
    for link in range(len(parent)):
        end = find(anchors, start, len(anchors), LINE_END)
        said = words[link] if words[link] != 0 else skeleton(anchors, start, end)
        echo = said != 0 and met(joined(part_of[link], said), ids[link], keys, owners)
        if echo or refused[link]:
            counts[parent[link], 0] += 1
        elif here[link] == own[parent[link]]:
            counts[parent[link], 1] += 1
        else:
            counts[parent[link], 2] += 1
        start = end + 1
