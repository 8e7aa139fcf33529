"""The "End-to-End Walkthrough" of the source, step by step: a cycle of crawler c-902, and the beginning of the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import Guide
from crawlguide.scoring import REASONS
from crawlguide.testing import ManualClock
from tests.support import ask, fetched, state_of, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

WEIGHTS = {"relevance": 1, "freshness": 0.5, "authority": 0.3, "cost": 0.2, "politeness": 0.1, "focus": 0.1}
HOME = "https://example.com/"
NEWS = [f"https://example.com/news/{number}" for number in range(6)]
OTHER = ["https://other.com/about", "https://other.com/team"]
EARLIER = [f"https://earlier.org/{number}" for number in range(4)]
PENDING = [f"https://site{number}.net/" for number in range(40)]
MEGABYTES_50 = 50 * 1024 * 1024
POLITE = {"default_delay_s": 3.0}  # within the horizon of 5 s that makes two URLs of a host at a time
HURRIED = {"default_delay_s": 0.0, "max_per_host": 0}
MEMBERS = "https://example.com/members/list"  # the second best by its score; robots.txt disallows it
CALENDAR = "https://example.com/events?calendar=2025&month=11&day=3"  # one of endlessly many
FRAUD = "http://paypal-login.secure-update.xyz/webscr/login.php?cmd=verify"  # malicious, says the model
DOUBTFUL = (MEMBERS, CALENDAR, FRAUD)
ENDLESS = "calendar=[0-9]+&month=[0-9]+&day="
CAREFUL = HURRIED | {"robots": "obey", "risk_threshold": 0.8, "trap_patterns": [ENDLESS]}
CARELESS = HURRIED | {"robots": "ignore", "risk_threshold": 1.0, "traps": False}


@dataclass
class Story:
    """One guide, its clock, what was deferred before, and the answer that c-902 got."""

    guide: Guide
    clock: ManualClock
    before: dict[str, Any]
    answer: dict[str, Any]

    @property
    def assigned(self) -> list[dict[str, Any]]:
        urls: list[dict[str, Any]] = self.answer["assigned_urls"]
        return urls

    @property
    def urls(self) -> list[str]:
        return [given["url"] for given in self.assigned]


def told(policy: dict[str, Any], *links: str) -> Iterator[Story]:
    clock = ManualClock()
    with Guide.open(":memory:", clock=clock) as guide:
        guide.define("default", {"policy": policy, "strategy": {"kind": "best-first"}, "weights": WEIGHTS})
        guide.seed("default", list(EARLIER))
        before = ask(guide, "c-901", 10)  # an earlier cycle, which had to leave some URLs for later
        clock.advance(60.0)
        tell(guide, fetched("https://directory.net/", *PENDING, relevance=0.1), crawler_id="c-901")
        robots = "User-agent: *\nDisallow: /members/\n"
        tell(guide, fetched("https://example.com/robots.txt", text=robots), crawler_id="c-901")
        clock.advance(60.0)
        yield Story(guide, clock, before, cycle(guide, *links))


def cycle(guide: Guide, *links: str) -> dict[str, Any]:
    """Step 1: c-902 has just crawled a page of example.com; it can take 30 more URLs and 50 MB."""
    return ask(
        guide, "c-902", 30, max_bytes=MEGABYTES_50, request_id="123e4567-e89b-12d3-a456-426614174000",
        request_timestamp="2025-11-03T14:17:31Z", seed_urls=[HOME],
        recent_history=[fetched(HOME, *NEWS, *OTHER, HOME, *links, relevance=1.0, elapsed_ms=300, bytes=20_000)],
        external_features={OTHER[0]: {"pagerank": 0.4}, NEWS[0]: {"popularity": 0.3}, MEMBERS: {"pagerank": 0.25}},
    )  # fmt: skip


@pytest.fixture
def story() -> Iterator[Story]:
    yield from told(POLITE)


@pytest.fixture
def hurried() -> Iterator[Story]:
    """The same without politeness: how the scores alone would have it."""
    yield from told(HURRIED)


@pytest.fixture
def careful() -> Iterator[Story]:
    """The page also links to what robots.txt disallows, to a calendar without end and to a fraud."""
    yield from told(CAREFUL, *DOUBTFUL)


@pytest.fixture
def careless() -> Iterator[Story]:
    """The same with robots.txt, traps and risk left out of account."""
    yield from told(CARELESS, *DOUBTFUL)


# step 1: the crawler asks, and tells on its way what it has just crawled


def test_the_page_just_crawled_is_known_as_done(story: Story) -> None:
    assert state_of(story.guide, HOME) == "done"


def test_the_answer_belongs_to_the_request(story: Story) -> None:
    assert story.answer["metadata"]["request_id"] == "123e4567-e89b-12d3-a456-426614174000"


# step 2: the context of example.com is looked up


def test_what_is_known_of_the_host_gives_the_estimates(story: Story) -> None:
    news = [given for given in story.assigned if given["url"] in NEWS]
    assert {(given["estimated_fetch_ms"], given["estimated_bytes"]) for given in news} == {(300, 20_000)}


# step 3: candidates


def test_links_just_found_on_the_same_host_are_candidates(story: Story) -> None:
    assert set(story.urls) & set(NEWS)


def test_links_just_found_on_another_host_are_candidates(story: Story) -> None:
    assert set(OTHER) <= set(story.urls)


def test_some_urls_had_to_be_left_by_the_earlier_cycle(story: Story) -> None:
    assert {held["url"] for held in story.before["deferred"]} == set(EARLIER[2:])


def test_urls_deferred_by_an_earlier_cycle_are_candidates(story: Story) -> None:
    assert set(EARLIER[2:]) <= set(story.urls)


def test_pages_that_were_pending_are_candidates(story: Story) -> None:
    assert set(story.urls) & set(PENDING)


# step 4: the predictor


def test_links_of_a_relevant_page_are_worth_more_than_links_of_an_irrelevant_one(story: Story) -> None:
    worth = {given["url"]: given["p"] for given in story.assigned}
    pending = [p for url, p in worth.items() if url in PENDING]
    assert min(worth[url] for url in OTHER) > max(pending)


# step 5: scores


def test_authority_is_what_the_crawler_was_told_from_outside(story: Story) -> None:
    terms = {given["url"]: given["terms"] for given in story.assigned}
    assert terms[OTHER[0]]["authority"] == pytest.approx(0.3 * 0.4)


def test_authority_puts_one_of_two_equals_first(story: Story) -> None:
    assert story.urls.index(OTHER[0]) < story.urls.index(OTHER[1])


def test_the_focus_of_the_crawler_counts_for_its_host_alone(story: Story) -> None:
    in_focus = {given["url"] for given in story.assigned if given["terms"]["focus"] > 0}
    assert in_focus == set(story.urls) & set(NEWS)


def test_the_terms_of_every_url_sum_to_its_score(story: Story) -> None:
    for given in story.assigned:
        assert sum(given["terms"].values()) == pytest.approx(given["score"], abs=0.001)


def test_the_best_score_comes_first(story: Story) -> None:
    scores = [given["score"] for given in story.assigned]
    assert scores == sorted(scores, reverse=True)


# step 6 and 8: politeness


def test_by_their_scores_alone_the_first_urls_would_all_be_of_example_com(hurried: Story) -> None:
    assert set(hurried.urls[:6]) == set(NEWS)


def test_politeness_allows_two_of_example_com(story: Story) -> None:
    assert len(set(story.urls) & set(NEWS)) == 2


def test_the_two_are_a_delay_apart(story: Story) -> None:
    starts = sorted(given["not_before_ms"] for given in story.assigned if given["url"] in NEWS)
    assert starts[1] - starts[0] >= 3_000


def test_the_others_of_example_com_are_postponed_with_their_wait(story: Story) -> None:
    held = [item for item in story.answer["deferred"] if item["url"] in NEWS]
    assert {item["url"] for item in held} == set(NEWS) - set(story.urls)
    assert all(item["reason"] == "politeness" and item["retry_after_ms"] > 5_000 for item in held)


def test_lower_ranked_urls_of_other_hosts_move_up(story: Story, hurried: Story) -> None:
    assert set(hurried.urls) & set(PENDING) < set(story.urls) & set(PENDING)


# step 7: robots.txt


def test_by_its_score_alone_the_disallowed_url_would_be_the_second(careless: Story) -> None:
    assert careless.urls[:2] == [NEWS[0], MEMBERS]


def test_what_robots_txt_disallows_is_removed_and_the_next_moves_up(careful: Story) -> None:
    assert careful.urls[0] == NEWS[0]
    assert careful.urls[1] in NEWS
    assert MEMBERS not in careful.urls
    found = careful.guide.explain("default", MEMBERS)
    assert (found["state"], found["reason"]) == ("dropped", "robots")
    assert {"name": "robots", "verdict": "forbid", "why": "Disallow: /members/"} in found["filters"]


# step 9: the risk classifier


def test_without_it_the_calendar_and_the_fraud_would_be_given(careless: Story) -> None:
    assert {CALENDAR, FRAUD} <= set(careless.urls)


@pytest.mark.parametrize(("url", "filter_name"), [(CALENDAR, "traps"), (FRAUD, "risk")])
def test_what_is_flagged_as_a_trap_or_as_malicious_is_removed(careful: Story, url: str, filter_name: str) -> None:
    assert url not in careful.urls
    assert careful.guide.explain("default", url)["reason"] == filter_name


def test_the_probability_of_the_fraud_is_above_the_threshold_of_the_source(careful: Story) -> None:
    (risk,) = [one for one in careful.guide.explain("default", FRAUD)["filters"] if one["name"] == "risk"]
    assert float(risk["why"].partition("probability of ")[2].partition(",")[0]) > 0.8


def test_what_was_removed_leaves_no_hole_in_the_list(careful: Story) -> None:
    assert len(careful.urls) == 30


# step 10: what was crawled already


def test_a_url_already_crawled_is_not_given_again(story: Story) -> None:
    assert not {HOME, "https://directory.net/"} & set(story.urls)


def test_a_url_that_another_crawler_holds_is_not_given(story: Story) -> None:
    held = {given["url"] for given in story.before["assigned_urls"]}
    assert held == set(EARLIER[:2])
    assert not held & set(story.urls)


# step 11: the final list


def test_the_list_holds_thirty_urls(story: Story) -> None:
    assert len(story.urls) == len(set(story.urls)) == 30


def test_the_list_stays_within_fifty_megabytes(story: Story) -> None:
    assert 0 < sum(given["estimated_bytes"] for given in story.assigned) <= MEGABYTES_50


def test_every_url_comes_with_a_reason_of_two_terms(story: Story) -> None:
    for given in story.assigned:
        first, second = given["reason"].split("+")
        assert first != second
        assert {first, second} <= set(REASONS)


def test_every_url_comes_with_estimates(story: Story) -> None:
    assert all(given["estimated_fetch_ms"] > 0 and given["estimated_bytes"] > 0 for given in story.assigned)


def test_the_answer_names_the_filters_it_passed(story: Story) -> None:
    assert {"seen_ok", "risk_ok", "politeness_ok", "robots_ok", "budget_ok"} <= set(
        story.answer["metadata"]["filters_applied"]
    )


def test_the_same_request_sent_again_gives_the_same_list(story: Story) -> None:
    story.clock.advance(2.0)
    assert cycle(story.guide) == story.answer


# step 12: the crawler fetches, tells what it found, and the cycle continues


def next_cycle(story: Story) -> dict[str, Any]:
    story.clock.advance(30.0)
    found = [fetched(url, f"{url}?found", relevance=0.5, elapsed_ms=200, bytes=10_000) for url in story.urls]
    tell(story.guide, *found, crawler_id="c-902", report_id="after-the-first-cycle")
    return ask(story.guide, "c-902", 30, max_bytes=MEGABYTES_50, seed_urls=[HOME])


def test_what_was_fetched_is_done(story: Story) -> None:
    next_cycle(story)
    assert {state_of(story.guide, url) for url in story.urls} == {"done"}


def test_the_next_cycle_gives_thirty_new_urls(story: Story) -> None:
    later = [given["url"] for given in next_cycle(story)["assigned_urls"]]
    assert len(later) == 30
    assert not set(later) & set(story.urls)


def test_the_next_cycle_gives_two_more_of_what_was_postponed(story: Story) -> None:
    later = {given["url"] for given in next_cycle(story)["assigned_urls"]}
    assert len(later & {held["url"] for held in story.answer["deferred"]}) == 2


def test_the_next_cycle_gives_links_that_were_found_meanwhile(story: Story) -> None:
    later = [given["url"] for given in next_cycle(story)["assigned_urls"]]
    assert [url for url in later if url.endswith("?found")]


def test_every_cycle_counts_as_a_query(story: Story) -> None:
    first = story.answer["metadata"]["num_queries_completed"]
    assert next_cycle(story)["metadata"]["num_queries_completed"] == first + 1


def test_the_crawl_is_running_all_the_while(story: Story) -> None:
    states = [story.answer["metadata"]["crawl_state"], next_cycle(story)["metadata"]["crawl_state"]]
    assert states == ["running", "running"]
