"""In which direction a link points: the meaning of its anchor and of its address together, in small numbers."""

import numpy as np

from crawlguide.core.kernels import F32, I64, kernel, matrix_f32, nothing, records
from crawlguide.predictors.layered.evidence import LINKS
from crawlguide.predictors.layered.records import MEANING, TASTE

LANES = 8
LARGEST = np.float32(127.0)
LEAST = np.float32(1e-6)


@kernel(nothing(I64, matrix_f32, matrix_f32, F32, F32, LINKS))
def mean(rows, said, named, anchor, address, links):  # type: ignore[no-untyped-def]
    """`said` and `named` are the vectors of anchors and addresses, `anchor` and `address` how alike the goal they are.

    Squares are added up in eight lanes, so that no step waits for the one before.
    """
    both, lanes = np.empty(MEANING, np.float32), np.empty(LANES, np.float32)
    for number in range(len(rows)):
        link = links[rows[number]]
        link.anchor, link.address = anchor[number], address[number]
        lanes[:] = np.float32(0.0)
        for first in range(0, MEANING, LANES):
            for lane in range(LANES):
                value = said[number, first + lane] + named[number, first + lane]
                both[first + lane] = value
                lanes[lane] += value * value
        size = np.sqrt(
            ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
        )
        size = max(size, LEAST)
        for at in range(MEANING):
            link.meaning[at] = np.int8(np.rint(LARGEST * both[at] / size))


@kernel(nothing(matrix_f32, I64, records(TASTE)))
def taste(pages, kind, tastes):  # type: ignore[no-untyped-def]
    """Each page counts for the taste of its kind, and for none if there is no such taste."""
    total = np.empty(MEANING, np.float32)
    for mine in range(len(tastes)):
        count = 0
        total[:] = np.float32(0.0)
        for number in range(len(pages)):
            if kind[number] == mine:
                count += 1
                for at in range(MEANING):
                    total[at] += pages[number, at]
        tastes[mine].count += count
        for at in range(MEANING):
            tastes[mine].sum[at] += total[at]
