"""How likely a link answers at all: by its host and place, and by its own form, age and words.

    p = chance that it answers · chance that it is relevant if it does

A host that answers may be full of dead links: to an old system, of old years, or those that a page calls archived. What
they have in common is learned from every fetch. What answered alone teaches the second factor: a dead link says nothing
of what it was about. As a product a low chance to answer counts however relevant the link would be; as one more term of
the log-odds it did not.
"""

import numpy as np

from crawlguide.core.kernels import part
from crawlguide.strategies.layered.steps import adagrad_step, sigmoid, word_scale

ANSWER_TRAITS = 6  # of a link; the weights of its words lie behind theirs
FIRST_YEAR, MIDDLE_YEAR = 70, 110  # from 1900 on
FEW_FETCHES = 2.0  # of a place, that weigh as much as the rate of its host


@part
def failure_rate(host, crawl):  # type: ignore[no-untyped-def]
    """Of a host, drawn to that of hosts fetched for the first time."""
    usual = (crawl.first_failed + 0.3) / (crawl.first_tried + 1.0)
    return (host.failed + usual) / (host.tried + 1.0)


@part
def answer_traits(link):  # type: ignore[no-untyped-def]
    """Its form, and how new the year in its address is, in decades."""
    dated = link.chosen >= FIRST_YEAR
    return (
        1.0,
        np.float64(dated),
        (np.float64(link.chosen) - MIDDLE_YEAR) / 10.0 if dated else 0.0,
        min(link.path, 10) / 10.0,
        np.float64(link.query),
        np.float64(link.abroad),
    )


@part
def answer_chance(link, tables):  # type: ignore[no-untyped-def]
    """That it answers: the odds of its host and place, moved by its traits and words."""
    host, place, weights = (
        tables.places[link.places[0]],
        tables.places[link.places[link.levels - 1]],
        tables.answer_weights,
    )
    lost = (place.failed + FEW_FETCHES * failure_rate(host, tables.crawl[0])) / (place.tried + FEW_FETCHES)
    lost = min(max(lost, 1e-3), 1.0 - 1e-3)
    odds, words, mine = np.log((1.0 - lost) / lost), 0.0, answer_traits(link)
    for number in range(ANSWER_TRAITS):
        odds += weights[number].weight * mine[number]
    for number in range(link.spoken):
        words += weights[ANSWER_TRAITS + link.words[number]].weight
    odds += words * word_scale(link)
    return sigmoid(odds)


@part
def learn_answers(link, answered, tables):  # type: ignore[no-untyped-def]
    """One step by the error of the chance, before the fetch itself is counted."""
    error, step, mine = answer_chance(link, tables) - answered, tables.tuning[0].word_step, answer_traits(link)
    for number in range(ANSWER_TRAITS):
        adagrad_step(tables.answer_weights[number], error * mine[number], step)
    for number in range(link.spoken):
        adagrad_step(tables.answer_weights[ANSWER_TRAITS + link.words[number]], error * word_scale(link), step)
