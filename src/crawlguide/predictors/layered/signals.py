"""What callers say of URLs in numbers of their own: how each number is read, and how its weight is learned.

Nobody knows what a caller's numbers mean, so each begins with no weight. A number counts by how far it stands out among
those of its name; large ones count by their logarithm.
"""

import numpy as np

from crawlguide.core.kernels import F32, I64, kernel, nothing, one_i64, part, records
from crawlguide.predictors.layered.columns import odds, rate
from crawlguide.predictors.layered.evidence import CRAWLS, LINKS, PLACES
from crawlguide.predictors.layered.hubs import nudge

MOST_OF_A_URL = 8
SIGNAL = np.dtype(
    [
        ("id", np.uint64),  # of its name
        ("count", np.float64),  # numbers so far
        ("mean", np.float64),
        ("spread", np.float64),
        ("weight", np.float32),
        ("square", np.float32),
    ],
    align=True,
)
TOLD = np.dtype(
    [
        ("key", np.uint64),  # of the URL
        ("names", np.int32, MOST_OF_A_URL),  # rows of signals
        ("values", np.float32, MOST_OF_A_URL),
        ("count", np.int32),
    ],
    align=True,
)
SIGNALS, TOLDS = records(SIGNAL), records(TOLD)
STEP = 0.2
FARTHEST, NARROWEST = 3.0, 1e-4  # in spreads; of spreads
MOST = 4.0  # log-odds that all of them together may bring


@part
def outstanding(signal, value):  # type: ignore[no-untyped-def]
    """How far a number stands out among those of its name, in spreads."""
    mean = signal.mean / max(signal.count, 1.0)
    spread = np.sqrt(max(signal.spread / max(signal.count, 1.0) - mean * mean, 0.0))
    return min(max((value - mean) / max(spread, NARROWEST), -FARTHEST), FARTHEST)


@part
def brought(told, signals):  # type: ignore[no-untyped-def]
    total = 0.0
    for number in range(told.count):
        signal = signals[told.names[number]]
        total += signal.weight * outstanding(signal, told.values[number])
    return min(max(total, -MOST), MOST)


@kernel(nothing(one_i64, TOLDS, SIGNALS))
def notice(place, tolds, signals):  # type: ignore[no-untyped-def]
    """Numbers as they come: what is usual among them."""
    told = tolds[place]
    for number in range(told.count):
        signal, value = signals[told.names[number]], np.float64(told.values[number])
        signal.count += 1.0
        signal.mean += value
        signal.spread += value * value


@kernel(nothing(I64, I64, TOLDS, SIGNALS, LINKS))
def weigh(rows, places, tolds, signals, links):  # type: ignore[no-untyped-def]
    """What is told of these links, as things stand."""
    for number in range(len(rows)):
        links[rows[number]].outside = brought(tolds[places[number]], signals)


@kernel(nothing(I64, F32, TOLDS, SIGNALS, CRAWLS))
def learn(places, label, tolds, signals, crawls):  # type: ignore[no-untyped-def]
    """A logistic model of its own, beside what else is known: one step for each fetch."""
    base = odds(rate(crawls[0]))
    for number in range(len(places)):
        told = tolds[places[number]]
        wrong = 1.0 / (1.0 + np.exp(-base - brought(told, signals))) - label[number]
        for at in range(told.count):
            signal = signals[told.names[at]]
            nudge(signal, wrong * outstanding(signal, told.values[at]), STEP)


@kernel(nothing(I64, F32, LINKS, PLACES, F32))
def refuse(rows, refused, links, places, memory):  # type: ignore[no-untyped-def]
    """How often each host turns us away, of late."""
    for number in range(len(rows)):
        host = places[links[rows[number]].places[0]]
        host.banned = memory[0] * host.banned + refused[number]
