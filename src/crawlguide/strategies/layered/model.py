"""From features to a probability: one logistic model, learned a step at a time from hand-set first weights.

Of the weights of columns, which are few and related, it is known how sure each is (a normal distribution with all
covariances, moved by each fetch); the many others, each of which few links have, take AdaGrad steps.

log-odds = log-odds of the crawl's rate + weights · columns + weights of words, places and meaning
chance   = sigmoid(steepness · log-odds + offset), where steepness and offset are learned too (calibration)
p        = chance that it answers · chance, since what answers alone teaches these weights (`answers.py`)
"""

import numpy as np

from crawlguide.core.kernels import f32s, i64s, kernel, nothing, one_i64, part, summing_part
from crawlguide.strategies.layered.answers import learn_answers
from crawlguide.strategies.layered.columns import describe, odds, rate
from crawlguide.strategies.layered.evidence import reward_link
from crawlguide.strategies.layered.records import COLUMNS, DONE, MEANING, SEED, TABLES
from crawlguide.strategies.layered.steps import adagrad_step, sigmoid, word_scale
from crawlguide.strategies.layered.trust import learn_trust
from crawlguide.strategies.shared.draws import uniform

ERRORS_KEPT, FIRST_SQUARE = 0.99, 1.0  # decay of the sum of squared errors with each fetch; and the least it can be
MEANING_WEIGHTS = COLUMNS  # weights of the meaning lie behind those of the columns
LEAST_CURVE = 0.02  # a fetch that was thought certain teaches a little, too
HIT_TRIES = 16  # random examples looked at to find a hit among them


@summing_part
def meaning_sum(link, weights):  # type: ignore[no-untyped-def]
    """Weights times the meaning, whose largest number is 127."""
    total = 0.0
    for number in range(MEANING):
        total += weights[MEANING_WEIGHTS + number].weight * link.meaning[number]
    return total


@part
def log_odds(link, columns, base, tables):  # type: ignore[no-untyped-def]
    total = base
    for number in range(COLUMNS):
        total += tables.weights[number].weight * columns[number]
    words = 0.0
    for number in range(link.spoken):
        words += tables.word_weights[link.words[number]].weight
    total += words * word_scale(link)
    for level in range(link.levels):
        total += tables.places[link.places[level]].weight
    return total + meaning_sum(link, tables.weights) / 127.0


@part
def learn_columns(columns, chance, label, tables, gain):  # type: ignore[no-untyped-def]
    """Move the weights of columns by Bayes' rule, with the curve of the likelihood taken at the chance foreseen.

    Weights that are in doubt move most, and after that they are less so. `gain` is room for how much each moves.
    """
    weights, covariance, doubt = tables.weights, tables.covariance, 0.0
    for one in range(COLUMNS):
        gain[one] = 0.0
        for other in range(COLUMNS):
            gain[one] += covariance[one].of[other] * columns[other]
        doubt += gain[one] * columns[one]
    curve = max(chance * (1.0 - chance), LEAST_CURVE)
    share = 1.0 / (1.0 + curve * doubt)
    for one in range(COLUMNS):
        weights[one].weight -= gain[one] * (chance - label) * share
        for other in range(COLUMNS):
            covariance[one].of[other] -= gain[one] * gain[other] * curve * share


@part
def learn_details(link, error, tables):  # type: ignore[no-untyped-def]
    """One AdaGrad step of the weights of places, words and meaning."""
    tuning = tables.tuning[0]
    for level in range(link.levels):
        adagrad_step(tables.places[link.places[level]], error, tuning.place_step)
    scale = word_scale(link)
    for number in range(link.spoken):
        adagrad_step(tables.word_weights[link.words[number]], error * scale, tuning.word_step)
    for number in range(MEANING):
        if link.meaning[number] != 0:
            slope = error * link.meaning[number] / 127.0
            adagrad_step(tables.weights[MEANING_WEIGHTS + number], slope, tuning.meaning_step)


@part
def teach(link, columns, logit, label, tables, gain):  # type: ignore[no-untyped-def]
    """Learn from a fetch all that it says."""
    chance = sigmoid(logit)
    learn_columns(columns, chance, label, tables, gain)
    learn_details(link, chance - label, tables)


@part
def calibrated(logit, crawl):  # type: ignore[no-untyped-def]
    """The log-odds of the chance."""
    return crawl.steepness * logit + crawl.offset


@part
def calibrate(logit, label, crawl, tuning):  # type: ignore[no-untyped-def]
    """One step, by the error of the calibrated probability.

    Old errors are forgotten, or steps would be too small when a host runs dry late; but never the first square, or a
    crawl that finds nothing for long would go so far that nothing brings it back.
    """
    error = sigmoid(calibrated(logit, crawl)) - label
    crawl.steep_square = max(ERRORS_KEPT * crawl.steep_square, FIRST_SQUARE) + (error * logit) ** 2
    crawl.offset_square = max(ERRORS_KEPT * crawl.offset_square, FIRST_SQUARE) + error**2
    step = tuning.calibration_step
    crawl.steepness = max(crawl.steepness - step * error * logit / np.sqrt(crawl.steep_square), 0.2)
    crawl.offset -= step * error / np.sqrt(crawl.offset_square)


@part
def add_example(row, columns, label, tables):  # type: ignore[no-untyped-def]
    crawl = tables.crawl[0]
    example = tables.examples[crawl.examples % len(tables.examples)]
    example.link, example.label = row, label
    for number in range(COLUMNS):
        example.columns[number] = columns[number]
    crawl.examples += 1


@part
def replay(seed, hit, base, tables):  # type: ignore[no-untyped-def]
    """Learn the details of an earlier fetch again; of a hit, if that is wanted and some try finds one.

    Returns its link, -1: none.
    """
    crawl, examples = tables.crawl[0], tables.examples
    kept = min(crawl.examples, len(examples))
    if kept == 0:
        return -1
    for _ in range(HIT_TRIES if hit else 1):
        number = np.int64(uniform(seed, crawl.draws) * kept)
        crawl.draws += 1
        if not hit or examples[number].label >= 0.5:
            example = examples[number]
            link = tables.links[example.link]
            learn_details(link, sigmoid(log_odds(link, example.columns, base, tables)) - example.label, tables)
            return example.link
    return -1


@part
def calibrate_to(logit, relevant, labelled, tables):  # type: ignore[no-untyped-def]
    """What a page is says how far off its chance was; and a label, how far judgements are to be trusted."""
    crawl, trust = tables.crawl[0], tables.trust[0]
    if labelled:
        learn_trust(calibrated(logit, crawl), relevant, trust)
    else:
        trust.judged += 1
    calibrate(logit, relevant, crawl, tables.tuning[0])


@kernel(nothing(one_i64, i64s, f32s, f32s, i64s, i64s, f32s, i64s, TABLES, i64s))
def learn(seed, rows, label, relevant, answered, labelled, title, page, tables, replayed):  # type: ignore[no-untyped-def]
    """Learn from each fetch by what was known before it, then count it; `replayed` gets the links of replays.

    `label` is the reward that the weights learn; `relevant` is what the probability is calibrated to, since `p` is a
    chance to be relevant, whatever else a page is rewarded for; `labelled` is 1 where the crawler said so itself. A
    page that is fetched again teaches nothing; one that failed does, when it answers at last; until then it teaches
    which links answer.
    """
    crawl, tuning = tables.crawl[0], tables.tuning[0]
    columns, gain = np.zeros(COLUMNS, np.float32), np.zeros(COLUMNS)
    for number in range(len(rows)):
        row = rows[number]
        link = tables.links[row]
        if link.state != DONE:
            describe(row, tables, columns)
            base = odds(rate(crawl))
            if link.finder != SEED:  # somebody knew that a seed answers: it says nothing of links that are found
                learn_answers(link, answered[number], tables)
            if answered[number]:
                logit = log_odds(link, columns, base, tables)
                calibrate_to(logit, relevant[number], labelled[number], tables)
                teach(link, columns, logit, label[number], tables, gain)
            for turn in range(tuning.replays):
                replayed[number * tuning.replays + turn] = replay(seed, turn % 2 == 0, base, tables)
            if answered[number]:
                add_example(row, columns, label[number], tables)
        reward_link(row, page[number], label[number], answered[number], title[number], tables)
