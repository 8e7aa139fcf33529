"""In which direction a link points: the meaning of its anchor and of its address together, in small numbers."""

import numpy as np

from crawlguide.core.kernels import F32, I64, kernel, matrix_f32, nothing, records, summing_part
from crawlguide.predictors.layered.evidence import LINKS
from crawlguide.predictors.layered.records import MEANING, TASTE

LARGEST = np.float32(127.0)
LEAST = np.float32(1e-6)


@summing_part
def measured(vector, direction):  # type: ignore[no-untyped-def]
    """How long a vector is, and how alike the direction it is."""
    square = product = np.float32(0.0)
    for at in range(len(vector)):
        square += vector[at] * vector[at]
        product += vector[at] * direction[at]
    size = max(np.sqrt(square), LEAST)
    return size, product / size


@kernel(nothing(I64, matrix_f32, matrix_f32, F32, F32, F32, LINKS))
def mean(rows, said, named, direction, anchor, address, links):  # type: ignore[no-untyped-def]
    """`said` and `named` are the sums of anchors and addresses; `anchor` and `address` get how alike the goal they are.

    All in one pass, and no vector is written again.
    """
    both = np.empty(MEANING, np.float32)
    for number in range(len(rows)):
        link, mine, other = links[rows[number]], said[number], named[number]
        said_size, anchor[number] = measured(mine, direction)
        named_size, address[number] = measured(other, direction)
        link.anchor, link.address = anchor[number], address[number]
        for at in range(MEANING):
            both[at] = mine[at] / said_size + other[at] / named_size
        size, _ = measured(both, both)
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
