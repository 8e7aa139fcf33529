"""OPIC (Abiteboul, Preda, Cobena, WWW 2003): pages hold cash, and pass it on to the URLs they link to."""

from __future__ import annotations

import numpy as np

from crawlguide.core.kernels import allocating_part

SEEDS = -1  # the payer of seeds: those of one request share 1; any other negative payer has nothing to pass on


@allocating_part
def pass_on_cash(accounts, rows, parents, payers):  # type: ignore[no-untyped-def]
    """Each payer passes what it holds on to its links, to each once and the same share; its account is left as it is.

    `rows` are the accounts of the links, `parents` the fetches they were found on and `payers` the accounts of those;
    links of one fetch stand together.
    """
    start = 0
    while start < len(rows):
        end, payer = start, payers[start]
        while end < len(rows) and parents[end] == parents[start]:
            end += 1
        cash = 1.0 if payer == SEEDS else 0.0
        if payer >= 0:
            cash = accounts[payer].cash
        targets = np.unique(rows[start:end])
        for target in targets:
            accounts[target].cash += cash / len(targets)
        start = end
