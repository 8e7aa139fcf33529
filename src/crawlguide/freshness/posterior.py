"""What is believed of one page's change rate: a Gamma distribution, and how an observation changes it.

A page that changes x times a day has changed after t days with the chance 1 − e^(−xt). Whoever fetches it sees one bit:
is it different? With x ~ Gamma(shape a, exposure b) the chance that it is not is (b/(b+t))^a, and everything below has
a closed form. The belief after an observation is no Gamma any more; the one with the same mean and the same mean
logarithm takes its place, which is the closest one (assumed-density filtering: Minka, "A family of algorithms for
approximate Bayesian inference", 2001). Observations may be wrong: `false_alarm` is the chance that an unchanged page
looks different (a date, an advertisement), `miss` that a changed one looks the same.
"""

from __future__ import annotations

from math import exp, expm1, log, log1p, sqrt

from crawlguide.core.kernels import part

SMALLEST_SPREAD = 1e-4  # of log mean − mean log: a belief is never surer than some 10,000 observations make it


@part
def digamma(x):  # type: ignore[no-untyped-def]
    """ψ(x) for x > 0 (https://dlmf.nist.gov/5.11#E2)."""
    below = 0.0
    while x < 6.0:
        below += 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    return log(x) - 0.5 / x - inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse / 252)) - below


@part
def shape_of(spread):  # type: ignore[no-untyped-def]
    """The shape of the Gamma whose log mean is so far above its mean log (Minka, "Estimating a Gamma distribution",
    2002)."""
    spread = max(spread, SMALLEST_SPREAD)
    return (3.0 - spread + sqrt((spread - 3.0) ** 2 + 24.0 * spread)) / (12.0 * spread)


@part
def chance_unchanged(shape, exposure, gap):  # type: ignore[no-untyped-def]
    """(b/(b+t))^a"""
    return exp(-shape * log1p(gap / exposure))


@part
def believed(shape, exposure, gap, changed, false_alarm, miss):  # type: ignore[no-untyped-def]
    """Shape, exposure and mean logarithm of the rate after an observation."""
    same = chance_unchanged(shape, exposure, gap)
    always, else_same = (1.0 - miss, -(1.0 - miss - false_alarm)) if changed else (miss, 1.0 - miss - false_alarm)
    evidence = max(always + else_same * same, 1e-12)
    mean = shape / exposure * (always + else_same * same * exposure / (exposure + gap)) / evidence
    at_shape = digamma(shape)
    mean_log = (always * (at_shape - log(exposure)) + else_same * same * (at_shape - log(exposure + gap))) / evidence
    after = shape_of(log(mean) - mean_log)
    return after, after / mean, mean_log


@part
def expected_value(shape, exposure, gap):  # type: ignore[no-untyped-def]
    """The mean of the crawl value V(τ) = (1 − e^(−xτ)(1 + xτ)) / x over the belief, in days.

    E[(1 − e^(−xτ))/x] − τ·E[e^(−xτ)]. Where the shape is below one it grows without bound: a page of which little is
    known is looked at again some day, however poor it seems.
    """
    doublings = log1p(gap / exposure)
    less = shape - 1.0
    fresh = exposure * doublings if abs(less) < 1e-7 else -exposure * expm1(-less * doublings) / less
    return max(fresh - gap * exp(-shape * doublings), 0.0)
