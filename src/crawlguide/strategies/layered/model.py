"""From evidence to a chance: one logistic model, learned a step at a time, from weights that are good to begin with."""

import numpy as np

from crawlguide.core.kernels import f32s, f64s, i64s, kernel, nothing, one_i64, part, records, summing_part
from crawlguide.strategies.layered.columns import REACH, describe, odds, rate
from crawlguide.strategies.layered.evidence import CRAWLS, LINKS, PAGES, PLACES, arrive
from crawlguide.strategies.layered.host_bonus import ANSWERS, hope_for, left
from crawlguide.strategies.layered.hubs import TUNINGS, WEIGHTS, hub_score, lead, nudge
from crawlguide.strategies.layered.records import COLUMNS, DONE, EXAMPLE, JUDGED, MEANING, SEED
from crawlguide.strategies.shared.draws import uniform

EXAMPLES, JUDGEMENTS = records(EXAMPLE), records(JUDGED)
ERRORS_KEPT, FIRST_SQUARE = 0.99, 1.0  # of the squares of old errors with each fetch; and the least of them
MEANINGS = COLUMNS  # weights of meanings lie behind those of columns


@part
def sigmoid(x):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + np.exp(-min(max(x, -30.0), 30.0)))


@part
def word_scale(link):  # type: ignore[no-untyped-def]
    return 1.0 / np.sqrt(max(link.spoken, 1.0))


@part
def score(link, columns, base, dense, words, places):  # type: ignore[no-untyped-def]
    """Log-odds: the crawl's own, what the columns say, the words, and the meaning."""
    total = base
    for number in range(COLUMNS):
        total += dense[number].weight * columns[number]
    spoken = 0.0
    for number in range(link.spoken):
        spoken += words[link.words[number]].weight
    total += spoken * word_scale(link)
    for level in range(link.levels):
        total += places[link.places[level]].weight
    return total + meant(link, dense) / 127.0


@summing_part
def meant(link, dense):  # type: ignore[no-untyped-def]
    """What the meaning says, of which 127 is the most."""
    total = 0.0
    for number in range(MEANING):
        total += dense[MEANINGS + number].weight * link.meaning[number]
    return total


@part
def teach(link, columns, base, label, dense, words, places, tuning):  # type: ignore[no-untyped-def]
    wrong = sigmoid(score(link, columns, base, dense, words, places)) - label
    for number in range(COLUMNS):
        if columns[number] != 0.0:
            nudge(dense[number], wrong * columns[number], tuning.dense_step)
    for level in range(link.levels):
        nudge(places[link.places[level]], wrong, tuning.place_step)
    scale = word_scale(link)
    for number in range(link.spoken):
        nudge(words[link.words[number]], wrong * scale, tuning.word_step)
    for number in range(MEANING):
        if link.meaning[number] != 0:
            nudge(dense[MEANINGS + number], wrong * link.meaning[number] / 127.0, tuning.meaning_step)


@part
def calibrated(logit, crawl):  # type: ignore[no-untyped-def]
    """An honest chance: what was promised is compared with what came of it."""
    return sigmoid(crawl.steepness * logit + crawl.offset)


@part
def calibrate(logit, label, crawl, tuning):  # type: ignore[no-untyped-def]
    """One step, by how wrong it was.

    Old errors are forgotten, or steps would be too small when a host runs dry late; but never the first square, or a
    crawl that finds nothing for long would go so far that nothing brings it back.
    """
    wrong = calibrated(logit, crawl) - label
    crawl.steep_square = max(ERRORS_KEPT * crawl.steep_square, FIRST_SQUARE) + (wrong * logit) ** 2
    crawl.offset_square = max(ERRORS_KEPT * crawl.offset_square, FIRST_SQUARE) + wrong**2
    crawl.steepness = max(crawl.steepness - tuning.honest_step * wrong * logit / np.sqrt(crawl.steep_square), 0.2)
    crawl.offset -= tuning.honest_step * wrong / np.sqrt(crawl.offset_square)


@part
def remember(row, columns, label, examples, crawl):  # type: ignore[no-untyped-def]
    example = examples[crawl.examples % len(examples)]
    example.link, example.label = row, label
    for number in range(COLUMNS):
        example.columns[number] = columns[number]
    crawl.examples += 1


@part
def replay(seed, positive, base, links, examples, dense, words, places, crawl, tuning):  # type: ignore[no-untyped-def]
    """One earlier fetch again; one of worth if that is wanted and some try finds one. Returns its link, -1: none."""
    known = min(crawl.examples, len(examples))
    if known == 0:
        return -1
    for _ in range(16 if positive else 1):
        number = np.int64(uniform(seed, crawl.draws) * known)
        crawl.draws += 1
        if not positive or examples[number].label >= 0.5:
            example = examples[number]
            teach(links[example.link], example.columns, base, example.label, dense, words, places, tuning)
            return example.link
    return -1


@kernel(nothing(
    one_i64, i64s, f32s, f32s, i64s, f32s, i64s, f32s, TUNINGS, LINKS, one_i64, PAGES, PLACES, CRAWLS, EXAMPLES,
    WEIGHTS, WEIGHTS, i64s,
))  # fmt: skip
def learn(  # type: ignore[no-untyped-def]
    seed, rows, label, relevant, answered, title, page, taste, tunings, links, used, pages, places, crawls, examples,
    dense, words, again,
):  # fmt: skip
    """Learn from each fetch by what was known before it, then let it be known; `again` gets the links of replays.

    A page that is fetched again teaches nothing; one that failed does, when it answers at last. What is promised is a
    chance to be relevant, whatever else a page is worth for.
    """
    crawl, tuning, columns = crawls[0], tunings[0], np.zeros(COLUMNS, np.float32)
    for number in range(len(rows)):
        row = rows[number]
        link = links[row]
        if link.state != DONE:
            describe(row, links, used, pages, places, crawl, taste, tuning, columns)
            base = odds(rate(crawl))
            calibrate(score(link, columns, base, dense, words, places), relevant[number], crawl, tuning)
            teach(link, columns, base, label[number], dense, words, places, tuning)
            for turn in range(tuning.replays):
                again[number * tuning.replays + turn] = replay(
                    seed, turn % 2 == 0, base, links, examples, dense, words, places, crawl, tuning
                )
            remember(row, columns, label[number], examples, crawl)
        arrive(row, page[number], label[number], answered[number], title[number], links, pages, places, crawl, tuning)


@part
def fresh(said, row, turn):  # type: ignore[no-untyped-def]
    """Whether that was said of this link, and nothing was learned since."""
    return said.row == row and said.turn == turn


@part
def touched(rows, links, used, judged, turn):  # type: ignore[no-untyped-def]
    """Look at all records that will be read, so that the processor waits for many of them at once.

    They lie anywhere in much memory; else it would wait for one after the other. Returns no number of any meaning.
    """
    seen = 0
    for row in rows:
        if row >= 0 and not fresh(judged[row & (len(judged) - 1)], row, turn):
            seen += (links[row].count > 0.0) + links[row].words[0] + (links[row].meaning[0] > 0)
            for other in range(max(row - REACH, 0), min(row + REACH + 1, used)):
                seen += links[other].state
    return seen


@part
def judge_one(row, base, taste, tuning, links, used, pages, places, crawl, dense, words, hub, hub_words, columns, said):  # type: ignore[no-untyped-def]
    """The chance of a link, what it is worth with the bonus for what is little known, and the hope in that."""
    link = links[row]
    describe(row, links, used, pages, places, crawl, taste, tuning, columns)
    logit = score(link, columns, base, dense, words, places)
    said.value = calibrated(logit, crawl)
    if link.finder == SEED and link.count == 0.0:  # somebody vouches for it, and it makes a host known
        said.wish, said.hope = tuning.seed + (1.0 - tuning.seed) * said.value, 0.0
        return
    opening = hub_score(link, places, crawl, hub, hub_words)
    little_known = tuning.little_known * columns[26] * opening
    said.hope = hope_for(link, columns, places, crawl, tuning)
    said.wish = calibrated(logit + tuning.new_place * columns[14] + little_known, crawl)
    said.wish += left(said.hope, places[link.places[0]], 0.0)
    said.wish += lead(opening, crawl, tuning) * np.exp(columns[ANSWERS])


@kernel(nothing(
    i64s, f32s, TUNINGS, LINKS, one_i64, PAGES, PLACES, CRAWLS, WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, one_i64, JUDGEMENTS,
    f64s, f64s, f64s,
))  # fmt: skip
def judge(  # type: ignore[no-untyped-def]
    rows, taste, tunings, links, used, pages, places, crawls, dense, words, hub, hub_words, turn, judged, value, wish,
    hope,
):  # fmt: skip
    """What each link is worth. In one `turn` nothing is learned: what was `judged` in it is not judged again."""
    if touched(rows, links, used, judged, turn) < 0:
        return  # never; but so the looks are not left out as of no use
    crawl, tuning, columns = crawls[0], tunings[0], np.zeros(COLUMNS, np.float32)
    base = odds(rate(crawl))
    for number in range(len(rows)):
        row = rows[number]
        if row < 0:
            value[number] = wish[number] = rate(crawl)
            hope[number] = 0.0
            continue
        said = judged[row & (len(judged) - 1)]
        if not fresh(said, row, turn):
            said.row, said.turn = row, turn
            judge_one(
                row, base, taste, tuning, links, used, pages, places, crawl, dense, words, hub, hub_words, columns, said
            )
        value[number], wish[number], hope[number] = said.value, said.wish, said.hope


@kernel(nothing(one_i64, f32s, TUNINGS, LINKS, one_i64, PAGES, PLACES, CRAWLS, f32s))
def look(row, taste, tunings, links, used, pages, places, crawls, columns):  # type: ignore[no-untyped-def]
    """The columns of one link."""
    describe(row, links, used, pages, places, crawls[0], taste, tunings[0], columns)
