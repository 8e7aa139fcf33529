"""How far the guide's own judgements are to be trusted, learned from the pages that the crawler labels too.

Where a crawler labels nothing, `p` is the chance that the guide will judge a page relevant, and where it labels all,
the chance of its label. Where it labels some, everything is learned from both and URLs are ordered by both, but what is
told as `p` is the chance of a label:

    log-odds of p = steepness · log-odds of the chance + offset

The two numbers are normally distributed, and each label moves them by Bayes' rule, so ten labels say something already.
They are in more doubt again with each label, since a crawl goes on to other hosts.
"""

import numpy as np

from crawlguide.core.kernels import part, records
from crawlguide.strategies.layered.steps import sigmoid

TRUST = np.dtype(
    [
        ("judged", np.int64),  # pages that the guide judged
        ("steepness", np.float64),
        ("offset", np.float64),
        ("steep_doubt", np.float64),  # variance of the steepness
        ("offset_doubt", np.float64),
        ("both", np.float64),  # their covariance
    ],
    align=True,
)
TRUSTS = records(TRUST)
STEEP_DOUBT, OFFSET_DOUBT = 0.1, 1.0  # before the first label
DRIFT = 0.03  # of the offset: by so much its variance grows with each label
FLATTEST, LEAST_CURVE = 0.05, 0.02


@part
def trusted(logit, trust):  # type: ignore[no-untyped-def]
    """The chance that is told, where the log-odds of the chance by which URLs are ordered are these.

    Only where the guide judged some pages: there is nothing to trust or mistrust where the crawler labels all.
    """
    return sigmoid(trust.steepness * logit + trust.offset)


@part
def learn_trust(logit, label, trust):  # type: ignore[no-untyped-def]
    """One label: Bayes' rule for two weights, with the curve of the likelihood taken at the chance foreseen."""
    chance = sigmoid(trust.steepness * logit + trust.offset)
    steep = trust.steep_doubt * logit + trust.both  # how far each moves with an error
    level = trust.both * logit + trust.offset_doubt
    curve = max(chance * (1.0 - chance), LEAST_CURVE)
    share = 1.0 / (1.0 + curve * (steep * logit + level))
    trust.steepness = max(trust.steepness - steep * (chance - label) * share, FLATTEST)
    trust.offset -= level * (chance - label) * share
    trust.steep_doubt -= curve * share * steep * steep
    trust.both -= curve * share * steep * level
    trust.offset_doubt += DRIFT - curve * share * level * level
