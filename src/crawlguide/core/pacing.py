"""How a host that takes long slows its crawlers down: the longer its fetches take, the further apart they are."""

import numpy as np

from crawlguide.core.kernels import part

LONGEST_S = 30.0  # by which slowness alone holds a host back


@part
def paced(delay_s, factor, median_ms):  # type: ignore[no-untyped-def]
    """The delay, or so many times what a fetch takes; NaN: not known. A delay of 0 means no pacing at all."""
    if delay_s <= 0.0 or np.isnan(median_ms):
        return delay_s
    return max(delay_s, min(factor * median_ms / 1_000.0, LONGEST_S))
