"""What is known of the risk of a batch's rows: one pass, no texts."""

import numpy as np

from crawlguide.core.kernels import F64, I64, MASK, U64, kernel, one_f64, one_i64


@kernel(one_i64(I64, F64, F64, F64, U64, U64, F64, one_f64, MASK, I64))
def recall(host, pages, depth, given, ids, known, risks, threshold, keep, unknown):  # type: ignore[no-untyped-def]
    """Returns how many rows have to be read. Not judged are those on a host that gave pages, seeds, and those for
    which a person has set a priority.
    """
    count, last = 0, np.uint64(len(known) - 1)
    for row in range(len(host)):
        place = ids[row] & last
        keep[row] = pages[host[row]] > 0 or depth[row] == 0 or not np.isnan(given[row])
        if keep[row]:
            continue
        if known[place] == ids[row]:
            keep[row] = risks[place] < threshold
        else:
            unknown[count] = row
            count += 1
    return count
