"""How often pages change, and when each is worth a fetch again. Pure: columns in, columns out; no clock, no store.

`Rates` learns from one bit a look. Pages are row numbers, instants are seconds (as `time.time()` counts them, from 1 to
2^32 − 1), rates are changes a day, values are weighted days, weights are of any scale:

    rates = Rates()                                 # or .remember(notebook), to keep what it learns
    rates.fit(count)                                # room for the rows 0 to count − 1
    group = rates.grouped([(kind, host, template), …])  # 64-bit keys from the widest group to the narrowest, at most 3
    rates.begin(rows, at, group)                    # first looks: nothing is learned yet
    rates.observe(rows, at, changed)                # later looks, in their order: was it different since the last one?
    rates.values(rows, at, weight)                  # what fetching each is worth at an instant
    rates.due(rows, weight, price)                  # the instant at which each reaches its price; infinite: never
    rates.chance_changed(rows, at), rates.per_day(rows), rates.forget(rows)

Greedy is optimal: fetch what is worth most, as many as the budget allows; or, without looking at all pages, fetch what
is due at a price and move the price until the budget is used. `periodic_optimum(rate, weight, per_day)` is what anybody
could reach who knows the rates; `values(rate, weight, gap)` is the value then.

All columns are contiguous, rows are int64, the others float64 (`changed` is bool).
"""

from crawlguide.freshness.rates import Rates
from crawlguide.freshness.value import Optimum, freshness_at, gaps_at_price, periodic_optimum, values

__all__ = ["Optimum", "Rates", "freshness_at", "gaps_at_price", "periodic_optimum", "values"]
