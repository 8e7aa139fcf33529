"""OPIC (Abiteboul, Preda, Cobena, WWW 2003): pages hold cash, and pass it on to the URLs they link to."""

from __future__ import annotations

from crawlguide.core.kernels import part

SEEDS = -1  # the payer of seeds: those of one request share 1; any other negative payer has nothing to pass on


@part
def pass_on_cash(accounts, rows, parents, payers):  # type: ignore[no-untyped-def]
    """Each payer passes what it holds on to its links, to each the same share; its own account is left as it is.

    `rows` are the accounts of the links, `parents` the fetches they were found on and `payers` the accounts of those;
    links of one fetch stand together, each once.
    """
    start = 0
    while start < len(rows):
        end, payer = start, payers[start]
        while end < len(rows) and parents[end] == parents[start]:
            end += 1
        cash = 1.0 if payer == SEEDS else 0.0
        if payer >= 0:
            cash = accounts[payer].cash
        for number in range(start, end):
            accounts[rows[number]].cash += cash / (end - start)
        start = end
