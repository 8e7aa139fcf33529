"""Authority as it comes: pages pass on what they hold to the URLs they link to, each once (OPIC)."""

import numpy as np

from crawlguide.core.kernels import I64, kernel, nothing
from crawlguide.predictors.layered.evidence import LINKS, PAGES
from crawlguide.predictors.layered.records import SEED


@kernel(nothing(I64, I64, LINKS, PAGES))
def spend(rows, parents, links, pages):  # type: ignore[no-untyped-def]
    """A page gives all it has to its links; seeds share 1, and a page that is not known has nothing.

    Links of one page lie one behind the other.
    """
    start = 0
    while start < len(rows):
        end, parent = start, parents[start]
        while end < len(rows) and parents[end] == parent:
            end += 1
        cash = np.float32(1.0 if parent == SEED else 0.0)
        if parent >= 0:
            page = links[pages[parent].link]
            cash, page.cash = page.cash, np.float32(0.0)
        for number in range(start, end):
            links[rows[number]].cash += cash / (end - start)
        start = end
