"""What an estimator makes of the course of a crawl."""

from __future__ import annotations

import math

import numpy as np
import pytest

from crawlguide.crawler.estimate import MOST_WINDOWS, Estimate, Estimator

TOTAL, PAGES = 400, 20_000


def heard(hits: list[int] | np.ndarray, p: float = 0.1) -> Estimator:
    estimator = Estimator()
    for hit in hits:
        estimator.fetched(p, float(hit))
    return estimator


def thinning(total: int = TOTAL, pages: int = PAGES, half: int = 500, seed: int = 0) -> np.ndarray:
    """A whole crawl whose hits thin out: after `half` requests about half of them are found."""
    at = np.arange(pages)
    chance = 1 / (at + half) ** 2
    hits = np.zeros(pages)
    hits[np.random.default_rng(seed).choice(pages, total, replace=False, p=chance / chance.sum())] = 1
    return hits


def stopped(hits: np.ndarray, share: float) -> float:
    """The share that was really found when the estimate first says so."""
    estimator = Estimator()
    for number, hit in enumerate(hits, 1):
        estimator.fetched(0.1, float(hit))
        if number % 50 == 0 and estimator.estimate(len(hits) - number).share >= share:
            break
    return float(hits[:number].sum() / hits.sum())


def test_before_anything_was_fetched_nothing_is_found_and_everything_may_remain() -> None:
    said = Estimator().estimate(100)
    assert (said.found, said.share, said.low, said.high) == (0, 0.0, 0.0, 100.0)


def test_a_crawl_without_hits_never_says_that_it_is_done() -> None:
    assert heard([0] * 5_000).estimate(100).share == 0.0


def test_when_nothing_waits_everything_is_found() -> None:
    assert heard([1, 0] * 50).estimate(0) == Estimate(50, 0.0, 0.0, 0.0, 1.0, math.inf)


def test_when_nothing_waits_even_a_crawl_without_hits_is_done() -> None:
    assert heard([0] * 5).estimate(0).share == 1.0


def test_hits_that_come_as_often_as_ever_go_on_through_all_that_waits() -> None:
    said = heard([1, 0, 0, 0] * 250, p=0.25).estimate(1_000)
    assert said.remaining == pytest.approx(250, rel=0.2)
    assert said.next_price == pytest.approx(4, rel=0.2)


def test_no_more_remains_than_waits() -> None:
    said = heard([1] * 100).estimate(10)
    assert said.remaining <= 10
    assert said.high <= 10


def test_the_thinner_the_hits_the_more_is_found_and_the_dearer_the_next() -> None:
    hits = thinning()
    said = [heard(hits[:requests]).estimate(PAGES - requests) for requests in (500, 2_000, 8_000)]
    assert [one.share for one in said] == sorted(one.share for one in said)
    assert [one.next_price for one in said] == sorted(one.next_price for one in said)


@pytest.mark.parametrize("share", [0.8, 0.9, 0.95])
def test_crawls_that_stop_at_a_share_have_found_about_that_share(share: float) -> None:
    found = [stopped(thinning(seed=seed), share) for seed in range(5)]
    assert np.mean(found) == pytest.approx(share, abs=0.05)


def test_the_price_lies_between_what_the_guide_says_and_what_the_hits_say() -> None:
    cheap, dear = (heard([1, 0, 0, 0] * 250, p=p).estimate(1_000).next_price for p in (0.5, 0.05))
    assert 2 < cheap < 4 < dear < 20


def test_a_crawl_that_found_all_in_one_corner_soon_knows_it() -> None:
    said = heard([1] * 1_000 + [0] * 3_000).estimate(50_000)
    assert said.share > 0.95


def test_bursts_make_it_more_careful() -> None:
    hits = thinning()[:4_000]
    bursts = hits.copy()
    bursts[1_000:4_000] = 0
    bursts[3_000 : 3_000 + int(hits[1_000:].sum())] = 1  # as many, but in one place
    even, bursting = (heard(one).estimate(PAGES) for one in (hits, bursts))
    assert bursting.remaining > even.remaining
    assert bursting.high > even.high


def test_the_interval_holds_the_estimate_and_the_truth() -> None:
    hits = thinning()
    for requests in (1_000, 3_000, 9_000):
        said = heard(hits[:requests]).estimate(PAGES - requests)
        assert said.low <= said.remaining <= said.high
        assert said.low <= hits[requests:].sum() <= said.high


def test_relevance_counts_from_one_half_as_the_guide_counts_it() -> None:
    estimator = Estimator()
    for relevance in (0.49, 0.5, 0.9, 1.0):
        estimator.fetched(0.5, relevance)
    assert estimator.estimate(10).found == 3


def test_without_a_queue_length_what_was_discovered_and_not_fetched_waits() -> None:
    told, counted = Estimator(), Estimator()
    for _ in range(100):
        told.fetched(0.5, 1.0)
        counted.fetched(0.5, 1.0, discovered=3)
    assert told.estimate(200) == counted.estimate()


def test_a_long_crawl_takes_no_more_memory_and_says_nearly_the_same() -> None:
    hits = thinning(pages=64 * MOST_WINDOWS + 1)
    estimator = heard(hits)
    assert estimator._hits.sum() == hits.sum()
    assert len(estimator._hits) == MOST_WINDOWS
    assert estimator.estimate(1_000).remaining == pytest.approx(heard(hits[:-1]).estimate(1_001).remaining, rel=0.05)
