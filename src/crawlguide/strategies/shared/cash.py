"""OPIC (Abiteboul, Preda, Cobena, WWW 2003): pages hold cash, and pass it on to the URLs they link to."""

from __future__ import annotations

from crawlguide.core.kernels import part

SEEDS = -1  # the payer of seeds: those of one request share 1; any other negative payer has nothing to pass on


@part
def pass_on_cash(accounts, rows, payers):  # type: ignore[no-untyped-def]
    """Each payer passes all its cash on to its links, to each the same share.

    `rows` are the accounts of the links and `payers` those of their pages; links of one page stand together, each once.
    """
    start = 0
    while start < len(rows):
        end, payer = start, payers[start]
        while end < len(rows) and payers[end] == payer:
            end += 1
        cash = 1.0 if payer == SEEDS else 0.0
        if payer >= 0:
            cash = accounts[payer].cash
            accounts[payer].cash = 0.0
        for number in range(start, end):
            accounts[rows[number]].cash += cash / (end - start)
        start = end
