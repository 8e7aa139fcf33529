"""Steps by which weights are learned one by one, as many of them are as there are words and places."""

import numpy as np

from crawlguide.core.kernels import part


@part
def sigmoid(x):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + np.exp(-min(max(x, -30.0), 30.0)))


@part
def adagrad_step(weight, slope, step):  # type: ignore[no-untyped-def]
    weight.square += slope * slope
    weight.weight -= step * slope / np.sqrt(weight.square)


@part
def word_scale(link):  # type: ignore[no-untyped-def]
    """Of the sum of the weights of a link's words, so that many words are not surer than few."""
    return 1.0 / np.sqrt(max(link.spoken, 1.0))
