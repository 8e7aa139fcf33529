"""The budgets of templates, looked at for a whole batch at once."""

import numpy as np

from crawlguide.core.kernels import F64, I32, MASK, kernel, matrix_i32, nothing, one_f64, part


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
