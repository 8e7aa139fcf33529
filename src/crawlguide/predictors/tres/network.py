"""The network 11 → 30 → 15 → 1 with LeakyReLU, and one step of Adam: loops over one column of weights.

It is so small that these loops answer for a hundred rows in the time in which another library is called.
"""

import numpy as np

from crawlguide.core.kernels import F32, F64, allocating_part, kernel, matrix_f32, nothing, one_i64, part
from crawlguide.predictors.chance import uniform
from crawlguide.predictors.tres.records import HIDDEN, WEIGHTS, X

FIRST, SECOND = HIDDEN
W1 = 0  # where the weights of each layer begin
B1 = W1 + X * FIRST
W2 = B1 + FIRST
B2 = W2 + FIRST * SECOND
W3 = B2 + SECOND
B3 = W3 + SECOND
SLOPE = np.float32(0.1)
BETA, BETA_SQUARED, SMALL = 0.9, 0.999, 1e-8
CLIP = np.float32(1.0)
ZERO = np.float32(0.0)


@kernel(nothing(F32, one_i64))
def begin(weights, seed):  # type: ignore[no-untyped-def]
    """He's normal weights; no bias."""
    weights[:] = ZERO
    for start, end, inputs in ((W1, B1, X), (W2, B2, FIRST), (W3, B3, SECOND)):
        for place in range(start, end):
            first, second = uniform(seed, 2 * place), uniform(seed, 2 * place + 1)
            normal = np.sqrt(-2.0 * np.log(1.0 - first)) * np.cos(2.0 * np.pi * second)
            weights[place] = normal * np.sqrt(2.0 / inputs)


@allocating_part
def layers_of(w):  # type: ignore[no-untyped-def]
    """Views of the column, layer by layer: loops over them need no sums of places, and run at once over many units."""
    first, second = w[W1:B1].reshape(X, FIRST), w[W2:B2].reshape(FIRST, SECOND)
    return first, w[B1:W2], second, w[B2:W3], w[W3:B3], w[B3:]


@part
def pass_through(layers, x, first, second):  # type: ignore[no-untyped-def]
    """The value of one row; leaves behind what its layers said."""
    w1, b1, w2, b2, w3, b3 = layers
    for unit in range(FIRST):
        first[unit] = b1[unit]
    for column in range(X):
        told = x[column]
        for unit in range(FIRST):
            first[unit] += told * w1[column, unit]
    for unit in range(SECOND):
        second[unit] = b2[unit]
    for inner in range(FIRST):
        told = first[inner] if first[inner] > ZERO else SLOPE * first[inner]
        first[inner] = told
        for unit in range(SECOND):
            second[unit] += told * w2[inner, unit]
    value = b3[0]
    for inner in range(SECOND):
        told = second[inner] if second[inner] > ZERO else SLOPE * second[inner]
        second[inner] = told
        value += told * w3[inner]
    return value


@kernel(nothing(F32, matrix_f32, F64))
def values(w, x, found):  # type: ignore[no-untyped-def]
    first, second, layers = np.empty(FIRST, np.float32), np.empty(SECOND, np.float32), layers_of(w)
    for row in range(len(x)):
        found[row] = pass_through(layers, x[row], first, second)


@part
def flow_back(layers, slopes, x, first, second, flow, back):  # type: ignore[no-untyped-def]
    """Adds what one row says of every weight to `slopes`; `flow` is how the loss changes with the row's value."""
    _, _, w2, _, w3, _ = layers
    s1, c1, s2, c2, s3, c3 = slopes
    c3[0] += flow
    for inner in range(FIRST):
        back[inner] = ZERO
    for unit in range(SECOND):
        s3[unit] += flow * second[unit]
        passed = flow * w3[unit] if second[unit] > ZERO else flow * w3[unit] * SLOPE
        c2[unit] += passed
        for inner in range(FIRST):
            s2[inner, unit] += passed * first[inner]
            back[inner] += passed * w2[inner, unit]
    for inner in range(FIRST):
        back[inner] = back[inner] if first[inner] > ZERO else SLOPE * back[inner]
        c1[inner] += back[inner]
    for column in range(X):
        told = x[column]
        for inner in range(FIRST):
            s1[column, inner] += told * back[inner]


@part
def adam(w, mean, square, slopes, rate, step):  # type: ignore[no-untyped-def]
    """Slopes are cut to ±1; `step` counts from 1."""
    mean_bias, square_bias = 1.0 - BETA**step, 1.0 - BETA_SQUARED**step
    for place in range(WEIGHTS):
        slope = min(max(slopes[place], -CLIP), CLIP)
        mean[place] = BETA * mean[place] + (1.0 - BETA) * slope
        square[place] = BETA_SQUARED * square[place] + (1.0 - BETA_SQUARED) * slope * slope
        w[place] -= rate * (mean[place] / mean_bias) / (np.sqrt(square[place] / square_bias) + SMALL)
